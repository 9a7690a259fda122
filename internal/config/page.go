package config

import (
	"reflect"
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
	lines []string            // nil when lines cannot be told apart as YAML does
	runes map[int][]rune      // lines that were looked at, by number
	spans map[int]map[int]int // by line: stretches that may be shown, from and to, in runes from 0
	names bool                // outside the spans, names of settings may be shown
}

// longestLine is as much of a line as is looked through for an excerpt.
const longestLine = 64 << 10

func newPage(data []byte) *page {
	p := &page{runes: map[int][]rune{}, spans: map[int]map[int]int{}}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	if !strings.ContainsAny(text, "\r\u0085\u2028\u2029") { // YAML's other line breaks
		p.lines = strings.Split(text, "\n")
	}
	return p
}

// line returns a line by its number, from 1; nil when it cannot be shown.
func (p *page) line(number int) []rune {
	if number < 1 || number > len(p.lines) || len(p.lines[number-1]) > longestLine {
		return nil
	}
	r, ok := p.runes[number]
	if !ok {
		r = []rune(p.lines[number-1])
		p.runes[number] = r
	}
	return r
}

// show marks the first n bytes of a node's value as fit to be shown. A value
// that is not on its line as it stands (folded, escaped) is not marked.
func (p *page) show(node *yaml.Node, n int) {
	line, at := p.line(node.Line), node.Column-1
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
	if p.spans[node.Line] == nil {
		p.spans[node.Line] = map[int]int{}
	}
	p.spans[node.Line][at] = at + len(value)
}

// excerpt is a line as it may be shown and the place of a column in it; ""
// when the line cannot be shown.
func (p *page) excerpt(number, column int) (string, int) {
	line := p.line(number)
	if line == nil || column < 1 {
		return "", 0
	}
	var out []rune
	caret := -1
	for i := 0; i < len(line); {
		end, shown := p.stretch(number, i)
		if end == i { // a comment
			break
		}
		if column > i && column <= end {
			caret = len(out)
			if shown {
				caret += column - 1 - i
			}
		}
		if shown {
			for _, r := range line[i:end] {
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

// stretch is the end of what begins at a place in a line and is shown or
// hidden as one. It is the place itself where a comment begins.
func (p *page) stretch(number, i int) (end int, shown bool) {
	line, spans := p.line(number), p.spans[number]
	if to, ok := spans[i]; ok {
		return to, true
	}
	if line[i] == '#' && (i == 0 || unicode.IsSpace(line[i-1])) {
		return i, false
	}
	if !word(line[i]) {
		return i + 1, true
	}
	for end = i + 1; end < len(line) && word(line[end]); end++ {
		if _, ok := spans[end]; ok {
			break
		}
	}
	short := end-i <= 2 && !strings.ContainsFunc(string(line[i:end]), wordy) // as in "- "
	return end, short || p.names && end < len(line) && line[end] == ':' && settings[string(line[i:end])]
}

// settings are the names of all settings.
var settings = settingsOf(reflect.TypeFor[Config](), map[string]bool{})

func settingsOf(t reflect.Type, names map[string]bool) map[string]bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return settingsOf(t.Elem(), names)
	case reflect.Struct:
		for i := range t.NumField() {
			if name := t.Field(i).Tag.Get("yaml"); name != "" {
				names[name] = true
				settingsOf(t.Field(i).Type, names)
			}
		}
	}
	return names
}

// word reports whether a rune is part of what a secret may consist of.
func word(r rune) bool {
	return wordy(r) || strings.ContainsRune(`_-.+/=~$@%!^|\<>;`, r)
}

// wordy reports what makes a word more than punctuation.
func wordy(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || r > unicode.MaxASCII && !unicode.IsSpace(r)
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
