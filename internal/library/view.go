// Package library shows the incident library: over REST, as pages, and as the
// documents that the command line prints. It decides what is shown of a record
// and how a wrong request is told so; it never changes a record and asks for
// no credential, which is up to whoever mounts it.
package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/search"
)

// Library is an incident library that is to be shown, with its index.
type Library struct {
	*incident.Library
	index *search.Index
}

// New makes a library ready to be shown.
func New(l *incident.Library) (*Library, error) {
	x, err := search.Open(l)
	if err != nil {
		return nil, err
	}
	return &Library{l, x}, nil
}

// Brief is a record in a list.
type Brief struct {
	ID            string        `json:"id"`
	Title         string        `json:"title"`
	Provider      string        `json:"provider"`
	Service       string        `json:"service"`
	Date          string        `json:"date,omitempty"`
	Regions       []string      `json:"regions"`
	Domain        string        `json:"domain"`
	Tags          incident.Tags `json:"tags"`
	Summary       string        `json:"summary"`
	TimeToResolve *int          `json:"time_to_resolve,omitempty"` // minutes
	Evidence      int           `json:"evidence"`                  // score, 0 to 100
	Drills        []string      `json:"drills"`
}

func brief(r *incident.Record) Brief {
	return Brief{
		ID: r.ID, Title: r.Title, Provider: r.Provider, Service: r.Service, Date: r.Date, Regions: list(r.Regions), Domain: r.Domain,
		Tags: tags(r.Tags), Summary: r.Summary, TimeToResolve: r.TimeToResolve, Evidence: r.Evidence().Score, Drills: list(r.Drills),
	}
}

// list is never null in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func tags(t incident.Tags) incident.Tags {
	return incident.Tags{Causes: list(t.Causes), Symptoms: list(t.Symptoms), Topics: list(t.Topics), Components: list(t.Components)}
}

func briefs(records []*incident.Record) []Brief {
	out := make([]Brief, len(records))
	for i, r := range records {
		out[i] = brief(r)
	}
	return out
}

// Listing is one page of records.
type Listing struct {
	Incidents []Brief `json:"incidents"`
	Total     int     `json:"total"` // on all pages
	Next      string  `json:"next,omitempty"`
}

// Browse lists the records that a filter selects, newest first.
func (l *Library) Browse(f incident.Filter, cursor string, limit int) (*Listing, error) {
	records, err := l.List(f)
	if err != nil {
		return nil, err
	}
	page, next, err := incident.Page(records, cursor, limit)
	if err != nil {
		return nil, err
	}
	return &Listing{briefs(page), len(records), next}, nil
}

// Everything lists all records that a filter selects, on one page.
func (l *Library) Everything(f incident.Filter) (*Listing, error) {
	records, err := l.List(f)
	if err != nil {
		return nil, err
	}
	return &Listing{Incidents: briefs(records), Total: len(records)}, nil
}

// Finding is a record that a search found.
type Finding struct {
	Brief
	Score    float64  `json:"score"` // to compare within one search only
	Matched  []string `json:"matched"`
	Fragment Fragment `json:"fragment"`
}

// Fragment is a part of the record that shows why it was found.
type Fragment struct {
	Field string        `json:"field"`
	Kind  incident.Kind `json:"kind,omitempty"` // of the claim that the text is of
	Text  string        `json:"text"`
	Marks [][2]int      `json:"marks"` // what matched in text: from and to, in UTF-8 bytes
}

// Findings is one page of a search.
type Findings struct {
	Query     string    `json:"query"`
	Incidents []Finding `json:"incidents"`
	Total     int       `json:"total"` // on all pages
	Next      string    `json:"next,omitempty"`
}

// Search finds records.
func (l *Library) Search(ctx context.Context, q search.Query) (*Findings, error) {
	res, err := l.index.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &Findings{Query: q.Text, Incidents: make([]Finding, len(res.Hits)), Total: res.Total, Next: res.Next}
	for i, h := range res.Hits {
		out.Incidents[i] = Finding{
			Brief: brief(h.Record), Score: h.Score, Matched: h.Fields,
			Fragment: Fragment{h.Fragment.Field, h.Fragment.Kind, h.Fragment.Text, list(h.Fragment.Marks)},
		}
	}
	return out, nil
}

// Detail is a record with all that the library knows to it.
type Detail struct {
	*incident.Record
	Conditions []Exposure        `json:"conditions"`
	Ledger     []incident.Ranked `json:"ledger"` // the claims, the best carried first
	Evidence   incident.Evidence `json:"evidence"`
	Replays    []Replay          `json:"replays"`
	Relations  []Relation        `json:"relations"`
}

// Exposure is a condition of a record, with the checks that look for it.
type Exposure struct {
	Slug   string   `json:"slug"`
	Text   string   `json:"text"`
	Title  string   `json:"title"`
	Fails  string   `json:"fails"`
	Checks []string `json:"checks"`
}

// Replay is a drill and the command that runs it.
type Replay struct {
	Drill   string `json:"drill"`
	Command string `json:"command"`
}

// Relation is another record with its title.
type Relation struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Date  string `json:"date,omitempty"`
}

// NotFound says that there is no record with an id.
type NotFound struct {
	ID   string
	Near []string
}

func (e *NotFound) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("there is no incident %q", e.ID)
	}
	return fmt.Sprintf("there is no incident %q; did you mean %s?", e.ID, strings.Join(e.Near, " or "))
}

// Show is a record by its id. The error is a *NotFound.
func (l *Library) Show(id string) (*Detail, error) {
	r, ok := l.Get(id)
	if !ok {
		return nil, &NotFound{id, l.Near(id)}
	}
	known := l.Vocabulary().Conditions
	d := &Detail{Record: whole(r), Conditions: []Exposure{}, Ledger: list(r.Ledger()), Evidence: r.Evidence(), Replays: []Replay{}, Relations: []Relation{}}
	for _, c := range r.Conditions {
		w := known[c.Slug]
		d.Conditions = append(d.Conditions, Exposure{c.Slug, c.Text, w.Title, w.Fails, list(w.Checks)})
	}
	for _, name := range r.Drills {
		d.Replays = append(d.Replays, Replay{name, "hourthree drill run " + name})
	}
	for _, other := range r.Related {
		if o, ok := l.Get(other); ok {
			d.Relations = append(d.Relations, Relation{o.ID, o.Title, o.Date})
		}
	}
	return d, nil
}

// whole is a copy of r whose lists are never null.
func whole(r *incident.Record) *incident.Record {
	c := *r
	c.Regions, c.Timeline, c.Remediation, c.Lessons = list(r.Regions), list(r.Timeline), list(r.Remediation), list(r.Lessons)
	c.Figures, c.Claims, c.Sources, c.Related, c.Drills = list(r.Figures), list(r.Claims), list(r.Sources), list(r.Related), list(r.Drills)
	c.Tags = tags(r.Tags)
	return &c
}

// Subject is what the library has under a word.
type Subject struct {
	Kind       incident.Facet   `json:"kind"`
	Slug       string           `json:"slug"`
	Word       incident.Word    `json:"word"`
	Incidents  []Brief          `json:"incidents"`
	Together   []incident.Count `json:"together"`
	Conditions []incident.Count `json:"conditions"`
	Checks     []string         `json:"checks"`
}

// Subject gathers what there is under a word of a kind.
func (l *Library) Subject(kind, slug string) (*Subject, error) {
	t, err := l.Topic(incident.Facet(kind), slug)
	if err != nil {
		return nil, err
	}
	return &Subject{t.Facet, t.Slug, t.Word, briefs(t.Records), list(t.Together), list(t.Conditions), list(t.Checks)}, nil
}

// Kind is a kind of words with its words.
type Kind struct {
	Kind  incident.Facet   `json:"kind"`
	Words []incident.Found `json:"words"`
}

// Words are all words of the vocabulary that records are listed by.
type Words struct {
	Kinds      []Kind            `json:"kinds"`
	ClaimKinds map[string]string `json:"claim_kinds"` // what the kinds of claims mean
	Access     map[string]string `json:"access"`      // how a source was read
}

// Theme is a word in a list of those that there is something under.
type Theme struct {
	Kind      incident.Facet `json:"kind"`
	Slug      string         `json:"slug"`
	Meaning   string         `json:"meaning"`
	Incidents int            `json:"incidents"`
}

// Themes are the words that records have, by kind, the most frequent first.
type Themes struct {
	Topics []Theme `json:"topics"`
}

// Topics lists the words that there is something under.
func (l *Library) Topics() *Themes {
	out := &Themes{Topics: []Theme{}}
	for _, k := range l.Words().Kinds {
		slices.SortStableFunc(k.Words, func(a, b incident.Found) int { return b.Records - a.Records })
		for _, w := range k.Words {
			if w.Records > 0 {
				out.Topics = append(out.Topics, Theme{k.Kind, w.Slug, w.Word.Meaning, w.Records})
			}
		}
	}
	return out
}

// numbers are statistics whose lists are never null.
func numbers(s incident.Stats) incident.Stats {
	s.Years = list(s.Years)
	for f, words := range s.Words {
		s.Words[f] = list(words)
	}
	return s
}

// Words lists the vocabulary with the number of records of each word.
func (l *Library) Words() *Words {
	n := map[incident.Facet]map[string]int{}
	for _, r := range l.All() {
		for _, f := range incident.Facets() {
			if n[f] == nil {
				n[f] = map[string]int{}
			}
			for _, w := range r.Words(f) {
				n[f][w]++
			}
		}
	}
	out := &Words{ClaimKinds: meanings(l.Vocabulary().Kinds), Access: meanings(l.Vocabulary().Access)}
	for _, f := range incident.Facets() {
		k := Kind{Kind: f, Words: []incident.Found{}}
		for slug, w := range l.Vocabulary().Words(f) {
			k.Words = append(k.Words, incident.Found{Facet: f, Slug: slug, Word: w, Records: n[f][slug]})
		}
		slices.SortFunc(k.Words, func(a, b incident.Found) int { return strings.Compare(a.Slug, b.Slug) })
		out.Kinds = append(out.Kinds, k)
	}
	return out
}

func meanings(words map[string]incident.Word) map[string]string {
	m := map[string]string{}
	for slug, w := range words {
		m[slug] = w.Meaning
	}
	return m
}

// Meanings are what a word stands for; several kinds may have it.
type Meanings struct {
	Word  string           `json:"word"`
	Found []incident.Found `json:"found"`
}

// NoWord says that nothing in the vocabulary is called so.
type NoWord struct {
	Word string
	Near []string
}

func (e *NoWord) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("%q is not in the vocabulary", e.Word)
	}
	return fmt.Sprintf("%q is not in the vocabulary; did you mean %s?", e.Word, strings.Join(e.Near, " or "))
}

// Meaning looks a word up. The error is a *NoWord.
func (l *Library) Meaning(word string) (*Meanings, error) {
	if found := l.Word(word); len(found) > 0 {
		return &Meanings{word, found}, nil
	}
	e := &NoWord{Word: word}
	for _, f := range incident.Facets() {
		var unknown *incident.UnknownWord
		if _, err := l.Topic(f, word); errors.As(err, &unknown) && unknown.Facet == f {
			e.Near = append(e.Near, unknown.Near...)
		}
	}
	slices.Sort(e.Near)
	e.Near = slices.Compact(e.Near)
	return nil, e
}

// Arithmetic is how a score comes about.
func Arithmetic(e incident.Evidence) string {
	if e.Counted == 0 {
		return "0: no claim that counts"
	}
	var parts []string
	for _, k := range incident.Kinds() {
		if n := e.Kinds[k]; n > 0 && k != incident.Illustrative {
			parts = append(parts, fmt.Sprintf("%d %s × %d", n, k, k.Weight()))
		}
	}
	return fmt.Sprintf("%d × (%s) / (10 × %s) = %d, and 10 × %s read, at most %d, = %d; together %d of 100",
		incident.MaxKindPoints, strings.Join(parts, " + "), counted(e.Counted, "claim"), e.KindPoints, counted(e.Publishers, "publisher"), incident.MaxSourcePoints, e.SourcePoints, e.Score)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// When is when a record's incident was, as one says it.
func When(r *incident.Record) string {
	switch {
	case r.Start != "" && r.End != "":
		from, to := Moment(r.Start), Moment(r.End)
		if day, clock, ok := strings.Cut(to, " "); ok && strings.HasPrefix(from, day+" ") {
			to = clock
		}
		return from + " to " + to + " UTC"
	case r.Start != "":
		return "from " + Moment(r.Start) + " UTC"
	case r.Date != "":
		return r.Date
	}
	return "the sources do not say"
}

// Moment is a time of a record as one reads it.
func Moment(s string) string { return strings.TrimSuffix(strings.Replace(s, "T", " ", 1), "Z") }

// Minutes is a number of minutes as one says it.
func Minutes(n int) string {
	switch h, m := n/60, n%60; {
	case h == 0:
		return fmt.Sprintf("%d min", m)
	case h < 48 && m == 0:
		return fmt.Sprintf("%d h", h)
	case h < 48:
		return fmt.Sprintf("%d h %d min", h, m)
	default:
		return fmt.Sprintf("%d d %d h", h/24, h%24)
	}
}

// Reading is how a source was read, as one says it.
func Reading(access string) string {
	switch access {
	case "full":
		return "read in full"
	case "excerpt":
		return "read in part"
	case "summary":
		return "read as a summary by others"
	case "not-read":
		return "not read"
	}
	return access
}
