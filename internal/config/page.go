package config

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// page is the text of the file, for the excerpts below problems. A line may
// hold a key beside what is wrong in it, so nothing is shown but what was
// recognised: names of settings, values of settings that are not secret, and
// punctuation. Every other word becomes ***, and comments are left out.
type page struct {
	lines []string // nil when lines cannot be told apart as YAML does
	spans map[int][]span
	rest  bool // words outside the spans are still names when a colon follows
}

// span is a stretch of a line that may be shown, in runes from 0.
type span struct{ from, to int }

func newPage(data []byte) *page {
	p := &page{spans: map[int][]span{}}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	if !strings.ContainsAny(text, "\r\u0085\u2028\u2029") { // YAML's other line breaks
		p.lines = strings.Split(text, "\n")
	}
	return p
}

// show marks the first n bytes of a node's value as fit to be shown. A value
// that is not on its line as it stands (folded, escaped) is not marked.
func (p *page) show(node *yaml.Node, n int) {
	if node.Line < 1 || node.Line > len(p.lines) {
		return
	}
	line, at := []rune(p.lines[node.Line-1]), node.Column-1
	if at < 0 || at >= len(line) {
		return
	}
	if line[at] == '"' || line[at] == '\'' {
		at++
	}
	value := []rune(node.Value[:n])
	if len(value) == 0 || len(value) > len(line)-at || !slices.Equal(line[at:at+len(value)], value) {
		return
	}
	p.spans[node.Line] = append(p.spans[node.Line], span{at, at + len(value)})
}

// excerpt is a line as it may be shown and the place of a column in it; ""
// when the line cannot be shown.
func (p *page) excerpt(number, column int) (string, int) {
	if number < 1 || number > len(p.lines) || column < 1 {
		return "", 0
	}
	line := []rune(p.lines[number-1])
	spans := p.spans[number]
	var out []rune
	caret := -1
	for i := 0; i < len(line); {
		start, end, shown := i, i+1, true
		if j := slices.IndexFunc(spans, func(s span) bool { return s.from == i }); j >= 0 {
			end = spans[j].to
		} else if line[i] == '#' && (i == 0 || unicode.IsSpace(line[i-1])) {
			break // a comment
		} else if word(line[i]) {
			for end < len(line) && word(line[end]) && !slices.ContainsFunc(spans, func(s span) bool { return s.from == end }) {
				end++
			}
			shown = p.rest && end < len(line) && line[end] == ':' && (end+1 == len(line) || line[end+1] == ' ') && end-start <= 40
		}
		if column-1 >= start && column-1 < end {
			caret = len(out)
			if shown {
				caret += column - 1 - start
			}
		}
		if shown {
			for _, r := range line[start:end] {
				out = append(out, printable(r))
			}
		} else {
			out = append(out, '*', '*', '*')
		}
		i = end
	}
	if caret < 0 {
		caret = len(out)
	}
	return strings.TrimRight(string(out), " "), caret
}

// word reports whether a rune is part of what a secret may consist of.
func word(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("_-.+/=~$@%!^|\\<>;", r) || r > unicode.MaxASCII && !unicode.IsSpace(r)
}

// printable replaces what would move or colour a terminal.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r):
		return '?'
	}
	return r
}

// clean makes text from the file fit for one line of output.
func clean(s string) string { return strings.Map(printable, s) }
