package incident

// Vocabulary is the closed set of words that records are tagged with.
type Vocabulary struct {
	Causes     map[string]Word `yaml:"causes" json:"causes"`
	Symptoms   map[string]Word `yaml:"symptoms" json:"symptoms"`
	Topics     map[string]Word `yaml:"topics" json:"topics"`
	Components map[string]Word `yaml:"components" json:"components"`
	Domains    map[string]Word `yaml:"domains" json:"domains"`
	Kinds      map[string]Word `yaml:"kinds" json:"kinds"`   // of claims
	Access     map[string]Word `yaml:"access" json:"access"` // how a source was read
	Conditions map[string]Word `yaml:"conditions" json:"conditions"`
}

// Word is one word's meaning.
type Word struct {
	Meaning string `yaml:"meaning" json:"meaning"`
	// Also are other names for it that people use; search and lookup know them.
	Also []string `yaml:"also,omitempty" json:"also,omitempty"`
	// Title, Fails and Checks are a condition's: its name, when a stack has it,
	// and the checks of the audit that look for it.
	Title  string   `yaml:"title,omitempty" json:"title,omitempty"`
	Fails  string   `yaml:"fails,omitempty" json:"fails,omitempty"`
	Checks []string `yaml:"checks,omitempty" json:"checks,omitempty"`
}

// Facet is a family of words that records can be listed by.
type Facet string

// The facets.
const (
	Cause     Facet = "cause"
	Symptom   Facet = "symptom"
	Topic     Facet = "topic"
	Component Facet = "component"
	Domain    Facet = "domain"
	Needs     Facet = "condition"
)

// Facets are all of them, in the order in which they are shown.
func Facets() []Facet { return []Facet{Cause, Symptom, Topic, Component, Domain, Needs} }

// Words are the facet's words, nil for no such facet.
func (v *Vocabulary) Words(f Facet) map[string]Word {
	switch f {
	case Cause:
		return v.Causes
	case Symptom:
		return v.Symptoms
	case Topic:
		return v.Topics
	case Component:
		return v.Components
	case Domain:
		return v.Domains
	case Needs:
		return v.Conditions
	}
	return nil
}

// Words are the record's words of a facet.
func (r *Record) Words(f Facet) []string {
	switch f {
	case Cause:
		return r.Tags.Causes
	case Symptom:
		return r.Tags.Symptoms
	case Topic:
		return r.Tags.Topics
	case Component:
		return r.Tags.Components
	case Domain:
		return []string{r.Domain}
	case Needs:
		list := make([]string, len(r.Conditions))
		for i, c := range r.Conditions {
			list[i] = c.Slug
		}
		return list
	}
	return nil
}
