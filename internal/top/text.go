package top

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// longest bounds a text before it is looked at, in bytes.
const longest = 2048

// harmless is a text of others without what moves a cursor, changes a colour, turns
// the direction of reading, or is shown in another width than is counted.
func harmless(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), longest)], "?")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return '�'
		case unicode.Is(unicode.M, r), unicode.Is(unicode.Co, r): // marks pile up, and variants change widths
			return -1
		}
		return r
	}, s)
}

// fit is a text of others in exactly so many columns.
func fit(s string, columns int) string {
	s = clip(s, columns)
	return s + strings.Repeat(" ", max(0, columns-ansi.StringWidth(s)))
}

// clip is a text of others in so many columns at most.
func clip(s string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return ansi.Truncate(harmless(s), columns, "…")
}

// right is a short text of our own at the right of so many columns.
func right(s string, columns int) string {
	return strings.Repeat(" ", max(0, columns-ansi.StringWidth(s))) + s
}

// style is how a stretch of text looks where there are colours. What it says is said
// in words too.
type style string

const (
	plain  style = ""
	strong style = "1"
	faint  style = "2"
	bad    style = "1;31"
	warn   style = "33"
	good   style = "32"
	chosen style = "7"
)

// line is a row of the screen. Its text is harmless and fits.
type line struct {
	text  string
	look  style
	group bool // names what the rows below have in common
}

func row(text string, look style) line { return line{text: text, look: look} }

func (l line) render(colour bool) string {
	text := strings.TrimRight(l.text, " ")
	if !colour || l.look == plain || text == "" {
		return text
	}
	return "\x1b[" + string(l.look) + "m" + text + "\x1b[0m"
}
