package incident

// Record is one public incident. Times are UTC; what the sources do not say is
// absent. Everything that is stated as a fact is a claim with its kind and its
// source: see Claim.
type Record struct {
	// ID is HT- and four digits for the records that come with the program.
	// A user's own carry another prefix of two to eight capital letters.
	ID       string   `yaml:"id" json:"id"`
	Title    string   `yaml:"title" json:"title"`
	Provider string   `yaml:"provider" json:"provider"`
	Service  string   `yaml:"service" json:"service"`
	Date     string   `yaml:"date,omitempty" json:"date,omitempty"`   // of its beginning: 2006-01-02, 2006-01 or 2006
	Start    string   `yaml:"start,omitempty" json:"start,omitempty"` // 2006-01-02T15:04Z
	End      string   `yaml:"end,omitempty" json:"end,omitempty"`
	Regions  []string `yaml:"regions,omitempty" json:"regions"`
	Domain   string   `yaml:"domain" json:"domain"` // a word of the vocabulary
	Tags     Tags     `yaml:"tags" json:"tags"`
	Summary  string   `yaml:"summary" json:"summary"`
	Timeline []Moment `yaml:"timeline,omitempty" json:"timeline"`

	// Minutes from the start of the impact.
	TimeToDetect      *int   `yaml:"time_to_detect,omitempty" json:"time_to_detect,omitempty"`
	TimeToAcknowledge *int   `yaml:"time_to_acknowledge,omitempty" json:"time_to_acknowledge,omitempty"`
	TimeToResolve     *int   `yaml:"time_to_resolve,omitempty" json:"time_to_resolve,omitempty"`
	TimeBasis         string `yaml:"time_basis,omitempty" json:"time_basis,omitempty"` // what the minutes are counted from, and who says so

	Trigger     string      `yaml:"trigger,omitempty" json:"trigger,omitempty"`
	RootCause   string      `yaml:"root_cause,omitempty" json:"root_cause,omitempty"`
	Detection   string      `yaml:"detection,omitempty" json:"detection,omitempty"`
	Remediation []string    `yaml:"remediation,omitempty" json:"remediation"`
	Lessons     []string    `yaml:"lessons,omitempty" json:"lessons"`
	Figures     []Figure    `yaml:"figures,omitempty" json:"figures"`
	Claims      []Claim     `yaml:"claims" json:"claims"`
	Sources     []Source    `yaml:"sources" json:"sources"`
	Related     []string    `yaml:"related,omitempty" json:"related"`
	Conditions  []Condition `yaml:"conditions,omitempty" json:"conditions"`
	Drills      []string    `yaml:"drills,omitempty" json:"drills"` // names that `hourthree drill run` takes

	// Origin is the file the record was read from; set by the library.
	Origin string `yaml:"-" json:"-"`
}

// Tags are words of the vocabulary.
type Tags struct {
	Causes     []string `yaml:"causes" json:"causes"`
	Symptoms   []string `yaml:"symptoms" json:"symptoms"`
	Topics     []string `yaml:"topics" json:"topics"`
	Components []string `yaml:"components,omitempty" json:"components"`
}

// Moment is one entry of a timeline.
type Moment struct {
	At   string `yaml:"at" json:"at"`
	What string `yaml:"what" json:"what"`
}

// Figure is a number that a claim carries.
type Figure struct {
	Name  string  `yaml:"name" json:"name"`
	Value float64 `yaml:"value" json:"value"`
	Unit  string  `yaml:"unit" json:"unit"`
	Claim string  `yaml:"claim" json:"claim"`
}

// Kind is how well a claim is carried. It is shown wherever the claim is.
type Kind string

// The kinds, best carried first.
const (
	Confirmed    Kind = "confirmed"    // the operator's own record says it, or two independent sources agree
	Reported     Kind = "reported"     // one source says it
	Derived      Kind = "derived"      // computed or inferred from other claims of the incident
	Unconfirmed  Kind = "unconfirmed"  // the source says it is not confirmed, or sources disagree
	Illustrative Kind = "illustrative" // an assumption for modelling, never a fact about the incident
)

// Claim is one statement about the incident.
type Claim struct {
	ID     string `yaml:"id" json:"id"` // c1, c2, ... in the order of the report
	Text   string `yaml:"text" json:"text"`
	Kind   Kind   `yaml:"kind" json:"kind"`
	Source string `yaml:"source" json:"source"`                     // id of a source of the record
	Second string `yaml:"second,omitempty" json:"second,omitempty"` // id of an independent source that says the same
	Basis  string `yaml:"basis,omitempty" json:"basis,omitempty"`   // how a derived claim was got, or what is against an unconfirmed one
}

// Source is where claims come from.
type Source struct {
	ID        string `yaml:"id" json:"id"` // s1, s2, ...
	Title     string `yaml:"title" json:"title"`
	URL       string `yaml:"url,omitempty" json:"url,omitempty"`
	Publisher string `yaml:"publisher" json:"publisher"`
	Date      string `yaml:"date,omitempty" json:"date,omitempty"`
	Access    string `yaml:"access" json:"access"` // a word of the vocabulary: how it was read
	Via       string `yaml:"via,omitempty" json:"via,omitempty"`
	// Official says that the publisher ran the service that failed.
	Official bool `yaml:"official,omitempty" json:"official"`
}

// Condition is what in a stack made, or would make, the incident possible. The
// checks that look for it are the vocabulary's.
type Condition struct {
	Slug string `yaml:"slug" json:"slug"` // a word of the vocabulary
	Text string `yaml:"text" json:"text"` // as it was here
}
