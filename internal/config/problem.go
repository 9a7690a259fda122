package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 for the file as a whole
	Column  int    `json:"column"` // from 1
	Path    string `json:"path"`   // models.gpt-5.targets[0].provider
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // the remedy
	Warning bool   `json:"warning"`

	source string // the line itself, for the excerpt
}

// Problems is everything wrong with a configuration, in file order. It is an
// error as soon as one of them is not a warning.
type Problems []Problem

// Error lists the problems that are not warnings, one a line.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps {
		if !p.Warning {
			lines = append(lines, p.short())
		}
	}
	return strings.Join(lines, "\n")
}

func (p Problem) short() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d:%d", p.Line, p.Column)
	}
	s += ": "
	if p.Path != "" {
		s += p.Path + ": "
	}
	s += p.Message
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// width is what a report fits into.
const width = 80

// Report shows each problem with the line it stands in and a caret below it,
// within 80 columns.
func (ps Problems) Report() string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteByte('\n')
		}
		head := "error"
		if p.Warning {
			head = "warning"
		}
		if p.Line > 0 {
			fmt.Fprintf(&b, "%s:%d:%d: %s\n", p.File, p.Line, p.Column, head)
		} else {
			fmt.Fprintf(&b, "%s: %s\n", p.File, head)
		}
		text := p.Message
		if p.Path != "" {
			text = p.Path + ": " + text
		}
		if p.Hint != "" {
			text += "; " + p.Hint
		}
		b.WriteString(wrap(text, "  "))
		b.WriteString(p.excerpt())
	}
	return b.String()
}

func (p Problem) excerpt() string {
	if p.source == "" || p.Column < 1 {
		return ""
	}
	line, at := []rune(strings.ReplaceAll(p.source, "\t", " ")), p.Column-1
	if at > len(line) {
		at = len(line)
	}
	number := fmt.Sprintf("%5d | ", p.Line)
	room := width - len(number)
	if from := at - room/2; from > 0 && len(line) > room {
		line, at = line[from:], at-from
	}
	if len(line) > room {
		line = line[:room]
	}
	return number + string(line) + "\n" + strings.Repeat(" ", len(number)-2) + "| " + strings.Repeat(" ", at) + "^\n"
}

func wrap(text, indent string) string {
	var b strings.Builder
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line)+len(word) > width && len(line) > len(indent) {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}

// fatal reports whether one of the problems is not a warning.
func (ps Problems) fatal() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return !p.Warning })
}

// nearest is the known name closest to a wrong one, "" when none is close.
func nearest(wrong string, known []string) string {
	best, most := "", 1+len(wrong)/3
	for _, k := range known {
		if d := distance(wrong, k); d <= most && (best == "" || d < distance(wrong, best)) {
			best = k
		}
	}
	return best
}

// distance is the number of edits between two names, an exchange of
// neighbours counting as one.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
