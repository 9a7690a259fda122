package search

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
)

//go:embed synonyms.txt
var synonymsFile string

// A name is found by its stems; what else it stands for are other names and
// words of the vocabulary.
type name struct {
	text  string
	other []string
	tags  []string
}

// thesaurus knows other names. It is filled once, by stem.
type thesaurus struct {
	names   []name
	byStems map[string]*meaning // by stems with a space between
	longest int                 // stems of the longest name
}

// meaning is what a name stands for besides itself.
type meaning struct {
	other [][]string // names, as stems
	tags  []string   // words of the vocabulary
}

// synonyms reads the list and adds the names of the vocabulary.
func synonyms(v *incident.Vocabulary) (*thesaurus, error) {
	t := &thesaurus{}
	for i, line := range strings.Split(synonymsFile, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if narrow, wide, ok := strings.Cut(line, "<"); ok {
			t.names = append(t.names, name{text: narrow, other: strings.Split(wide, "=")})
			continue
		}
		group := strings.Split(line, "=")
		if len(group) < 2 {
			return nil, fmt.Errorf("synonyms.txt:%d: %q stands alone; give it another name or remove it", i+1, line)
		}
		for _, g := range group {
			t.names = append(t.names, name{text: g, other: group})
		}
	}
	for _, facet := range incident.Facets() {
		for slug, w := range v.Words(facet) {
			for _, n := range append([]string{strings.ReplaceAll(slug, "-", " "), w.Title}, w.Also...) {
				t.names = append(t.names, name{text: n, tags: []string{slug}})
			}
		}
	}
	return t, nil
}

// stem fills the thesaurus.
func (t *thesaurus) stem(stems func(string) []string) {
	t.byStems = map[string]*meaning{}
	for _, n := range t.names {
		own := stems(n.text)
		if len(own) == 0 {
			continue
		}
		key := strings.Join(own, " ")
		m := t.byStems[key]
		if m == nil {
			m = &meaning{}
			t.byStems[key] = m
		}
		t.longest = max(t.longest, len(own))
		for _, o := range n.other {
			if s := stems(o); len(s) > 0 && !slices.Equal(s, own) && !slices.ContainsFunc(m.other, func(x []string) bool { return slices.Equal(x, s) }) {
				m.other = append(m.other, s)
			}
		}
		for _, tag := range n.tags {
			if !slices.Contains(m.tags, tag) {
				m.tags = append(m.tags, tag)
			}
		}
	}
	for _, m := range t.byStems {
		slices.Sort(m.tags)
	}
}
