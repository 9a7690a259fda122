package incident

import (
	"cmp"
	"slices"
	"strings"
)

// longestTypo is the length of a word for which a nearest one is looked for.
const longestTypo = 64

// nearest are the known words closest to a wrong one, best first, at most
// three: those that begin with it or it with them, and those a few edits away.
func nearest(wrong string, known []string) []string {
	wrong = slug(wrong)
	words := []string{}
	if wrong == "" || len(wrong) > longestTypo {
		return words
	}
	type candidate struct {
		word string
		far  int
	}
	var list []candidate
	for _, k := range known {
		if len(k) > longestTypo {
			continue
		}
		low := strings.ToLower(k)
		d := distance(wrong, low)
		switch {
		case d < 2+len(wrong)/3: // more edits than this is another word
			list = append(list, candidate{k, d})
		case len(wrong) >= 3 && strings.Contains(low, wrong):
			list = append(list, candidate{k, longestTypo + d})
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

// distance is the number of edits between two words, an exchange of
// neighbours counting as one.
func distance(a, b string) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
