package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// What is in a record's file cannot steer a terminal, and no line is longer
// than the paper is wide.
func TestPaper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &paper{width: rapid.IntRange(leastWidth, mostWidth).Draw(t, "width")}
		part := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"word", strings.Repeat("long", 50), "\x1b[31m", "\u202e", "\u009b", "\r", " ", "\n"}))
		text := strings.Join(rapid.SliceOfN(part, 0, 20).Draw(t, "text"), "")
		p.wrap("  label: ", text)
		for _, line := range strings.Split(p.String(), "\n") {
			if utf8.RuneCountInString(line) > p.width {
				t.Fatalf("%d columns of %d: %q", utf8.RuneCountInString(line), p.width, line)
			}
			if strings.ContainsAny(line, "\x1b\r\u202e\u009b") {
				t.Fatalf("a control character: %q", line)
			}
		}
		if got, want := strings.Join(strings.Fields(strings.ReplaceAll(p.String(), "\n", "")), ""), "label:"+strings.Join(strings.Fields(plainText(text)), ""); got != want {
			t.Fatalf("%q of %q", got, want)
		}
	})
}

func TestMarkdownIsText(t *testing.T) {
	if got, want := md("a|b\n*c* <d> [e](f) # `g`_"), "a\\|b \\*c\\* &lt;d&gt; \\[e\\](f) \\# \\`g\\`\\_"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
