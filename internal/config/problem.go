package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a configuration. No part of it holds a
// secret, not even when the secret is in the wrong place.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 for the file as a whole
	Column  int    `json:"column"` // from 1, in characters
	Path    string `json:"path"`   // models.gpt-5.targets[0].provider
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // the remedy
	Warning bool   `json:"warning"`        // the configuration is usable all the same

	excerpt string // the line, as far as it may be shown
	caret   int    // the place of Column in it, in characters from 0
}

// Problems is everything wrong with a configuration, in file order. It is an
// error as soon as one of them is not a warning.
type Problems []Problem

// Error lists the problems that are not warnings, one a line. It is empty
// when there are none.
func (ps Problems) Error() string {
	var lines []string
	for _, p := range ps {
		if !p.Warning {
			lines = append(lines, p.place()+": "+p.text())
		}
	}
	return strings.Join(lines, "\n")
}

// Fatal reports whether one of the problems is not a warning.
func (ps Problems) Fatal() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return !p.Warning })
}

func (p Problem) place() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

func (p Problem) text() string {
	s := p.Message
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// width is what a report fits into, in columns. Only the name of the file may
// be longer.
const width = 80

// Report shows each problem with the line it stands in and a caret below it.
func (ps Problems) Report() string {
	var b strings.Builder
	for i, p := range ps {
		if i > 0 {
			b.WriteByte('\n')
		}
		kind := "error"
		if p.Warning {
			kind = "warning"
		}
		fmt.Fprintf(&b, "%s: %s\n%s%s", p.place(), kind, wrap(p.text(), "  "), p.window())
	}
	return b.String()
}

// window is the part of the line around the caret that fits.
func (p Problem) window() string {
	if p.excerpt == "" {
		return ""
	}
	line, at := []rune(p.excerpt), p.caret
	number := fmt.Sprintf("%5d | ", p.Line)
	room := width - len(number)
	if from := at - room/2; from > 0 && len(line) > room {
		from = min(from, len(line)-room)
		line, at = line[from:], at-from
	}
	if len(line) > room {
		line = line[:room]
	}
	blank := strings.Repeat(" ", len(number)-2)
	return number + string(line) + "\n" + blank + "| " + strings.Repeat(" ", min(at, room-1)) + "^\n"
}

// wrap breaks text into indented lines. A word longer than a line is broken.
func wrap(text, indent string) string {
	var b strings.Builder
	line := []rune(indent)
	end := func() {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
		line = []rune(indent)
	}
	for _, w := range strings.Fields(text) {
		word := []rune(w)
		if len(line)+len(word) > width && len(line) > len(indent) {
			end()
		}
		for len(line)+len(word) > width {
			room := width - len(line)
			line = append(line, word[:room]...)
			word = word[room:]
			end()
		}
		line = append(append(line, word...), ' ')
	}
	if len(line) > len(indent) {
		end()
	}
	return b.String()
}
