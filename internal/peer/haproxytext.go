package peer

import (
	"fmt"
	"slices"
	"strings"
)

// section is one of HAProxy's.
type section struct {
	kind, name, from string
	line             int
	lines            []line
}

// line is a keyword and its arguments.
type line struct {
	words []string
	line  int
}

func (l line) word(i int) string {
	if i >= len(l.words) {
		return ""
	}
	return l.words[i]
}

// starts says whether the line starts with the words.
func (l line) starts(words ...string) bool {
	return len(l.words) >= len(words) && slices.Equal(l.words[:len(words)], words)
}

var sections = []string{
	"global", "defaults", "frontend", "backend", "listen", "resolvers", "peers", "userlist", "cache", "program", "mailers",
	"http-errors", "ring", "log-forward", "fcgi-app", "crt-store", "traces", "log-profile", "acme",
}

// parseHAProxy cuts a text into sections.
func parseHAProxy(text string) ([]*section, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("line 1: the text is longer than %d MiB", maxText>>20)
	}
	var list []*section
	rest, number := text, 0
	for count := 0; rest != ""; {
		words, used, lines, err := haproxyLine(rest)
		at := number + 1
		rest, number = rest[used:], number+lines
		if err != nil {
			return list, fmt.Errorf("line %d: %w", at, err)
		}
		if len(words) == 0 || strings.HasPrefix(words[0], ".") { // conditions of the reader itself
			continue
		}
		if count++; count > maxDirectives {
			return list, fmt.Errorf("line %d: there are more than %d lines", at, maxDirectives)
		}
		if slices.Contains(sections, words[0]) {
			list = append(list, newSection(words, at))
			continue
		}
		if len(list) == 0 {
			return list, fmt.Errorf("line %d: %q stands before the first section", at, words[0])
		}
		s := list[len(list)-1]
		s.lines = append(s.lines, line{words, at})
	}
	return list, nil
}

func newSection(words []string, at int) *section {
	s := &section{kind: words[0], line: at}
	rest := words[1:]
	if len(rest) > 0 && rest[0] != "from" {
		s.name, rest = rest[0], rest[1:]
	}
	if i := slices.Index(rest, "from"); i >= 0 && i+1 < len(rest) {
		s.from = rest[i+1]
	}
	return s
}

// haproxyLine is the next line's words, the bytes it takes and the lines. A
// backslash before its end, or an open quote, goes on with the next.
func haproxyLine(text string) (words []string, used, lines int, err error) {
	var b strings.Builder
	inWord := false
	flush := func() {
		if inWord {
			words = append(words, b.String())
			b.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			flush()
			return words, i + 1, lines + 1, nil
		case c == '#':
			flush()
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return words, len(text), lines + 1, nil
			}
			return words, i + end + 1, lines + 1, nil
		case c == ' ' || c == '\t' || c == '\r':
			flush()
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == '\n' {
				lines++
				flush()
				continue
			}
			inWord = true
			if !strings.ContainsRune(` \#'"`, rune(text[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		case c == '"' || c == '\'':
			inWord = true
			n, more, ok := haproxyQuote(text[i:], &b)
			if !ok {
				return words, len(text), lines + more + 1, fmt.Errorf("a quote is not closed")
			}
			i, lines = i+n-1, lines+more
		default:
			inWord = true
			b.WriteByte(c)
		}
	}
	flush()
	return words, len(text), lines + 1, nil
}

// haproxyQuote copies a quoted part and says how long it is with its quotes. In
// double quotes a backslash escapes; in single ones nothing does.
func haproxyQuote(text string, b *strings.Builder) (length, lines int, ok bool) {
	mark := text[0]
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == mark:
			return i + 1, lines, true
		case c == '\\' && mark == '"' && i+1 < len(text):
			i++
			if text[i] == '\n' {
				lines++
				continue
			}
			if !strings.ContainsRune(` \#'"$`, rune(text[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		default:
			if c == '\n' {
				lines++
			}
			b.WriteByte(c)
		}
	}
	return len(text), lines, false
}
