package incident

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// UnknownWord is a word that was asked for and is not in the vocabulary.
type UnknownWord struct {
	Facet Facet    `json:"facet"` // also check, drill, and facet for a facet that there is not
	Word  string   `json:"word"`
	Near  []string `json:"near"` // the nearest that are, best first
}

func (e *UnknownWord) Error() string {
	return fmt.Sprintf("no %s %s; %s", e.Facet, quoted(e.Word), didYouMean(e.Near, "see the vocabulary"))
}

// BadValue is a value that was asked with and cannot be understood.
type BadValue struct {
	Name   string `json:"name"` // since, until, cursor, limit
	Value  string `json:"value"`
	Remedy string `json:"remedy"`
}

func (e *BadValue) Error() string {
	return fmt.Sprintf("%s %s cannot be used; %s", e.Name, quoted(e.Value), e.Remedy)
}

// What UnknownWord says of what is not a facet's word.
const (
	noFacet Facet = "facet"
	noCheck Facet = "check"
	noDrill Facet = "drill"
)

// check refuses a filter that cannot be meant: unknown words, what is no date.
func (l *Library) check(f Filter) error {
	for _, facet := range slices.Sorted(maps.Keys(f.Words)) {
		for _, w := range f.Words[facet] {
			if err := l.known(facet, w); err != nil {
				return err
			}
		}
	}
	for _, d := range [][2]string{{"since", f.Since}, {"until", f.Until}} {
		if d[1] != "" && !date(d[1]) {
			return &BadValue{d[0], d[1], "write it as 2026-05-29, 2026-05 or 2026"}
		}
	}
	if f.Check != "" && !slices.Contains(l.checks, f.Check) {
		return &UnknownWord{noCheck, f.Check, nearest(f.Check, l.checks)}
	}
	if f.Drill != "" && !slices.Contains(l.drills, f.Drill) {
		return &UnknownWord{noDrill, f.Drill, nearest(f.Drill, l.drills)}
	}
	return nil
}

// known is nil for a word of a facet.
func (l *Library) known(f Facet, w string) error {
	words := l.vocab.Words(f)
	if words == nil && !slices.Contains(Facets(), f) {
		var names []string
		for _, x := range Facets() {
			names = append(names, string(x))
		}
		return &UnknownWord{noFacet, string(f), nearest(string(f), names)}
	}
	if _, ok := words[w]; !ok {
		return &UnknownWord{f, w, near(w, words)}
	}
	return nil
}

// Found is a word of the vocabulary in its facet.
type Found struct {
	Facet   Facet  `json:"facet"`
	Slug    string `json:"slug"`
	Word    Word   `json:"word"`
	Records int    `json:"records"` // that carry it
}

// Word finds a word by its slug or by another name that people use for it, in
// any case of letters, with spaces or hyphens. Several facets may have it.
func (l *Library) Word(name string) []Found {
	var found []Found
	for _, f := range Facets() {
		words := l.vocab.Words(f)
		for _, s := range slices.Sorted(maps.Keys(words)) {
			if w := words[s]; s == slug(name) || w.named(name) {
				found = append(found, Found{f, s, w, len(l.carrying(f, s))})
			}
		}
	}
	return found
}

// named reports whether name is one of the other names of w.
func (w Word) named(name string) bool {
	return slices.ContainsFunc(w.Also, func(a string) bool { return slug(a) == slug(name) })
}

// carrying are the records that have a word, newest first.
func (l *Library) carrying(f Facet, w string) []*Record {
	list := []*Record{}
	for _, r := range l.records {
		if slices.Contains(r.Words(f), w) {
			list = append(list, r)
		}
	}
	return list
}

// Count is how many records have a word.
type Count struct {
	Facet   Facet  `json:"facet"`
	Slug    string `json:"slug"`
	Records int    `json:"records"`
}

// Subject is what the library has under one word.
type Subject struct {
	Facet      Facet     `json:"facet"`
	Slug       string    `json:"slug"`
	Word       Word      `json:"word"`
	Records    []*Record `json:"records"`    // newest first
	Together   []Count   `json:"together"`   // words of the records' tags, the most frequent first
	Conditions []Count   `json:"conditions"` // of the records, the most frequent first
	Checks     []string  `json:"checks"`     // of the audit, for those conditions; for a condition its own
}

// mostTogether is how many words of each list a Subject has.
const mostTogether = 12

// Topic gathers what the library has under a word of a facet, which may be
// given by another of its names. The error is an UnknownWord.
func (l *Library) Topic(f Facet, name string) (*Subject, error) {
	words, s := l.vocab.Words(f), slug(name)
	if _, ok := words[s]; !ok {
		for _, other := range slices.Sorted(maps.Keys(words)) {
			if words[other].named(name) {
				s = other
			}
		}
	}
	if err := l.known(f, s); err != nil {
		return nil, err
	}
	t := &Subject{Facet: f, Slug: s, Word: words[s], Records: l.carrying(f, s), Together: []Count{}, Conditions: []Count{}, Checks: []string{}}
	for _, c := range count(t.Records) {
		switch {
		case c.Facet == f && c.Slug == s || c.Facet == Domain:
		case c.Facet == Needs:
			t.Conditions = append(t.Conditions, c)
		default:
			t.Together = append(t.Together, c)
		}
	}
	t.Together, t.Conditions = first(t.Together, mostTogether), first(t.Conditions, mostTogether)
	if f == Needs {
		t.Checks = append(t.Checks, words[s].Checks...)
		return t, nil
	}
	for _, c := range t.Conditions {
		t.Checks = append(t.Checks, l.vocab.Conditions[c.Slug].Checks...)
	}
	slices.Sort(t.Checks)
	t.Checks = slices.Compact(t.Checks)
	return t, nil
}

func first[T any](list []T, n int) []T { return list[:min(n, len(list)):min(n, len(list))] }

// count counts the records of each word, the most frequent first.
func count(records []*Record) []Count {
	n := map[Count]int{}
	for _, r := range records {
		for _, f := range Facets() {
			for _, w := range r.Words(f) {
				n[Count{Facet: f, Slug: w}]++
			}
		}
	}
	var list []Count
	for c, k := range n {
		c.Records = k
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(place(Facets(), a.Facet), place(Facets(), b.Facet)), strings.Compare(a.Slug, b.Slug))
	})
	return list
}
