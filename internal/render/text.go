package render

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes one line of a text that anybody may have written: nothing in it
// moves a cursor, changes a colour or the direction of writing, and XML can
// hold it.
func clean(s string) string {
	if isClean(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == '\u2028', r == '\u2029':
			return ' '
		case r&0xfffe == 0xfffe: // no characters at all
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// isClean says that there is nothing to do for a text, which is so of nearly all.
func isClean(s string) bool {
	before := byte(' ')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == ' ' && before == ' ' {
			return false
		}
		before = s[i]
	}
	return s == "" || before != ' '
}

// command is what GitHub's runner takes for one of its own in the output of a
// step: the first at the beginning of a line, the second anywhere.
var command = regexp.MustCompile(`(?m)^([ \t]*:):|##\[`)

// Inert is text of many lines without what a pipeline would act on.
func Inert(text string) string {
	return command.ReplaceAllStringFunc(text, func(s string) string {
		if s == "##[" {
			return "## ["
		}
		return s[:len(s)-1] + " :"
	})
}

// cut is at most n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// wrap breaks cleaned text into lines of at most n columns, between words where
// it can.
func wrap(s string, n int) []string {
	n = max(n, 8)
	var lines []string
	var line []byte
	used := 0
	flush := func() { lines, line, used = append(lines, string(line)), line[:0], 0 }
	for _, word := range strings.Fields(s) {
		w := columns(word)
		if used > 0 && used+1+w > n {
			flush()
		}
		if used > 0 {
			line, used = append(line, ' '), used+1
		}
		for _, r := range word {
			if used+width(r) > n {
				flush()
			}
			line, used = utf8.AppendRune(line, r), used+width(r)
		}
	}
	if used > 0 {
		flush()
	}
	return lines
}

func columns(s string) int {
	n := 0
	for _, r := range s {
		n += width(r)
	}
	return n
}

// width is the columns that a character takes on a terminal: two for the wide
// ones of East Asia and pictures, none for marks on another.
func width(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
