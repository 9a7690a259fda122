package mcpserver

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of texts in results, in characters.
const (
	shortText = 200
	someText  = 600
	longText  = 2000
)

// plain makes one bounded line of a text that anybody may have written: without
// control characters and those that change the direction of writing or are not
// seen.
func plain(s string, most int) string {
	if len(s) > 8*most { // more is not looked at
		s = s[:8*most]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return cut(strings.Join(strings.Fields(s), " "), most)
}

// networkAddress is where a program speaks to, in an error of the network.
var networkAddress = regexp.MustCompile(`https?://[^\s"]+|\btcp \S+|\blookup \S+`)

// unaddressed is a text without the addresses that an error of the network
// names: where the API server is is the kubeconfig's.
func unaddressed(s string) string { return networkAddress.ReplaceAllString(s, "(address)") }

// cut is at most n characters of s.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// mapped applies f to each of a list; the result is never nil.
func mapped[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// plains are the first texts of a list, each a line.
func plains(list []string, n, most int) []string {
	return mapped(list[:min(n, len(list))], func(s string) string { return plain(s, most) })
}

// counted is a number with its word: 1 finding, 2 findings.
func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}
