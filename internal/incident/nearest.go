package incident

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/spelling"
)

// nearest are the known words closest to a wrong one, best first, at most
// three: those that begin with it or it with them, and those a few edits away.
func nearest(wrong string, known []string) []string {
	wrong = slug(wrong)
	words := []string{}
	if wrong == "" || len(wrong) > spelling.Longest {
		return words
	}
	type candidate struct {
		word string
		far  int
	}
	var list []candidate
	for _, k := range known {
		if len(k) > spelling.Longest {
			continue
		}
		low := strings.ToLower(k)
		d := spelling.Distance(wrong, low)
		switch {
		case d < spelling.Far(wrong):
			list = append(list, candidate{k, d})
		case len(wrong) >= 3 && strings.Contains(low, wrong):
			list = append(list, candidate{k, spelling.Longest + d})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.word, b.word))
	})
	for _, c := range list[:min(3, len(list))] {
		words = append(words, c.word)
	}
	return words
}

// slug is text as a word of the vocabulary would be written.
func slug(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r == ' ' || r == '-' || r == '_' || r == '\t' || r == '\n'
	}), "-")
}
