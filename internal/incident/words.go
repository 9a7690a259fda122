package incident

import (
	"fmt"
	"maps"
	"slices"
)

// UnknownWord is a word that was asked for and is not in the vocabulary.
type UnknownWord struct {
	Facet Facet    `json:"facet"`
	Word  string   `json:"word"`
	Near  []string `json:"near"` // the nearest that are, best first
}

func (e *UnknownWord) Error() string {
	return fmt.Sprintf("no %s %s in the vocabulary; %s", e.Facet, quoted(e.Word), didYouMean(e.Near, "see its list of words"))
}

// check refuses a filter with words that are not in the vocabulary.
func (l *Library) check(f Filter) error {
	for _, facet := range slices.Sorted(maps.Keys(f.Words)) {
		known := l.vocab.Words(facet)
		for _, w := range f.Words[facet] {
			if _, ok := known[w]; !ok {
				return &UnknownWord{Facet: facet, Word: w, Near: near(w, known)}
			}
		}
	}
	return nil
}
