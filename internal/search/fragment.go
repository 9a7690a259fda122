package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
)

// Fragment is a short part of a record that shows why it was found.
type Fragment struct {
	Field string
	Kind  incident.Kind // of the claim that the text is of, for field claims
	Text  string
	Marks [][2]int // what matched in Text, as bytes from and to, in order
}

// longestFragment bounds a fragment, in bytes.
const longestFragment = 220

// hit is a match as it is shown.
func (ix *index) hit(m *match) Hit {
	names := slices.SortedFunc(maps.Keys(m.fields), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.fields[b], m.fields[a]), strings.Compare(a, b))
	})
	return Hit{Record: m.record, Score: m.score, Fields: names, Fragment: ix.fragment(m)}
}

// fragment is the sentence of a record that has most of what is looked for;
// the summary's first when none has anything.
func (ix *index) fragment(m *match) Fragment {
	best, most := Fragment{Field: "summary", Text: cut(m.record.Summary, 0)}, 0.0
	for _, f := range fields {
		if f.name == "title" || f.name == "provider" { // they are shown anyhow
			continue
		}
		for i, text := range f.texts(m.record) {
			for _, s := range sentences(text) {
				if marks, worth := ix.marks(s, m.stems); worth > most {
					best, most = clipped(f.name, s, marks), worth
					if f.name == fieldClaims {
						best.Kind = m.record.Claims[i].Kind
					}
				}
			}
		}
	}
	return best
}

// marks are where the stems are in a text, and what they tell together.
func (ix *index) marks(text string, stems map[string]bool) ([][2]int, float64) {
	var marks [][2]int
	worth, seen := 0.0, map[string]bool{}
	for _, t := range ix.analyzer.Analyze([]byte(text)) {
		s := string(t.Term)
		if !stems[s] {
			continue
		}
		marks = append(marks, [2]int{t.Start, t.End})
		if !seen[s] {
			seen[s] = true
			worth += ix.rarity(s)
		}
	}
	return marks, worth
}

// sentences cuts a text after each full stop, question mark and line.
func sentences(text string) []string {
	var list []string
	for len(text) > 0 {
		end := len(text)
		for _, stop := range []string{". ", "? ", "\n"} {
			if i := strings.Index(text, stop); i >= 0 {
				end = min(end, i+len(stop))
			}
		}
		list = append(list, strings.TrimSpace(text[:end]))
		text = text[end:]
	}
	return list
}

// clipped is a sentence cut around its first mark.
func clipped(field, text string, marks [][2]int) Fragment {
	from := 0
	if len(text) > longestFragment && marks[0][0] > longestFragment/2 {
		from = 1 + strings.LastIndexByte(text[:marks[0][0]-longestFragment/4], ' ')
	}
	f := Fragment{Field: field, Text: cut(text, from)}
	shift := from
	if from > 0 {
		shift -= len("… ")
	}
	for _, m := range marks {
		if a, b := m[0]-shift, m[1]-shift; a >= 0 && b <= len(strings.TrimSuffix(f.Text, "…")) {
			f.Marks = append(f.Marks, [2]int{a, b})
		}
	}
	return f
}

// cut is a text from a place on, in whole words.
func cut(text string, from int) string {
	head, rest := "", text[from:]
	if from > 0 {
		head = "… "
	}
	if len(rest) <= longestFragment {
		return head + rest
	}
	end := strings.LastIndexByte(rest[:longestFragment], ' ')
	if end <= 0 {
		return head + strings.ToValidUTF8(rest[:longestFragment], "") + "…"
	}
	return head + strings.TrimRight(rest[:end], " ,;:") + " …"
}
