// Package incident is the library of public incidents: what went wrong
// elsewhere, as records whose every claim has a kind and a source. It reads and
// validates records, lists them by words of a closed vocabulary, and ranks a
// record's claims. It knows nothing of the network, of the router or of the
// audit; search over the records is in package search.
//
// A Library is immutable after it was opened and safe for concurrent use.
package incident

import (
	"cmp"
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

//go:embed data
var data embed.FS

// Library is a set of records and the vocabulary that they use.
type Library struct {
	vocab   Vocabulary
	records []*Record // by date, newest first, then by id
	byID    map[string]*Record
	checks  []string // ids that conditions name, sorted
	drills  []string // names that records name, sorted
}

// Open reads the records that come with the program and merges those of the
// folders, which are looked through for *.yaml files. A record of a folder
// takes the place of one with the same id; a folder's vocabulary.yaml adds
// words. The error is Faults: every fault of every file, with its path, line,
// column and remedy.
func Open(folders ...fs.FS) (*Library, error) {
	own, err := fs.Sub(data, "data")
	if err != nil {
		return nil, err
	}
	return read(own, folders)
}

func newLibrary(v Vocabulary, records []*Record) *Library {
	l := &Library{vocab: v, byID: map[string]*Record{}}
	for _, r := range records {
		l.byID[r.ID] = r
	}
	l.records = slices.SortedFunc(maps.Values(l.byID), order)
	for _, c := range v.Conditions {
		l.checks = append(l.checks, c.Checks...)
	}
	for _, r := range records {
		l.drills = append(l.drills, r.Drills...)
	}
	slices.Sort(l.checks)
	slices.Sort(l.drills)
	l.checks, l.drills = slices.Compact(l.checks), slices.Compact(l.drills)
	return l
}

// order is that of the library: newest first, then by id.
func order(a, b *Record) int {
	return cmp.Or(strings.Compare(b.Date, a.Date), strings.Compare(a.ID, b.ID))
}

// Vocabulary is the library's; not to be changed.
func (l *Library) Vocabulary() *Vocabulary { return &l.vocab }

// All are the records, newest first; not to be changed.
func (l *Library) All() []*Record { return l.records }

// Get finds a record by its id, in any case of letters.
func (l *Library) Get(id string) (*Record, bool) {
	r, ok := l.byID[strings.ToUpper(strings.TrimSpace(id))]
	return r, ok
}

// Filter selects records. Each word must be in the vocabulary; words of one
// facet are alternatives, facets are all required. The zero Filter selects all.
type Filter struct {
	Words    map[Facet][]string
	Provider string // contained in the provider's or service's name, in any case
	Since    string // date, inclusive
	Until    string // date, inclusive
	Drill    string // name of a drill
	Check    string // id of a check
}

// List are the records that f selects, newest first. The error is an
// UnknownWord, with the nearest known ones, or a BadValue.
func (l *Library) List(f Filter) ([]*Record, error) {
	if err := l.check(f); err != nil {
		return nil, err
	}
	list := []*Record{}
	for _, r := range l.records {
		if l.selects(f, r) {
			list = append(list, r)
		}
	}
	return list, nil
}

func (l *Library) selects(f Filter, r *Record) bool {
	for facet, words := range f.Words {
		if len(words) > 0 && !slices.ContainsFunc(r.Words(facet), func(w string) bool { return slices.Contains(words, w) }) {
			return false
		}
	}
	name := strings.ToLower(r.Provider + " " + r.Service)
	switch {
	case !strings.Contains(name, strings.ToLower(f.Provider)),
		f.Since != "" && (r.Date == "" || r.Date+"~" < f.Since),
		f.Until != "" && (r.Date == "" || r.Date > f.Until+"~"),
		f.Drill != "" && !slices.Contains(r.Drills, f.Drill),
		f.Check != "" && !slices.Contains(l.Checks(r), f.Check):
		return false
	}
	return true
}

// Checks are the ids of the audit's checks that look for a condition of r, each
// once, in order.
func (l *Library) Checks(r *Record) []string {
	ids := []string{}
	for _, c := range r.Conditions {
		ids = append(ids, l.vocab.Conditions[c.Slug].Checks...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Citing are the records that have a condition which the check looks for: those
// that the drill replays first, then the best evidenced. The drill is the one
// that shows the check, "" for none.
func (l *Library) Citing(check, drill string) []*Record {
	list, _ := l.List(Filter{Check: check})
	other := func(r *Record) int { return no(drill != "" && slices.Contains(r.Drills, drill)) }
	slices.SortStableFunc(list, func(a, b *Record) int {
		return cmp.Or(other(a)-other(b), cmp.Compare(b.Evidence().Score, a.Evidence().Score))
	})
	return list
}
