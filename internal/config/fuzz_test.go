package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: no file makes the loader panic, an error has a place within the
// file, a report fits, and a secret from the environment shows nowhere.
func FuzzParse(f *testing.F) {
	paths, _ := filepath.Glob("../../examples/*.yaml")
	for _, p := range paths {
		if text, err := os.ReadFile(p); err == nil {
			f.Add(text)
		}
	}
	f.Add([]byte(base))
	f.Add([]byte("a: &a [*a]\n? {x: y}\n: z\n"))
	f.Add([]byte(strings.Repeat("[", 3000)))
	f.Add([]byte("listen: ${KEY}\nmodels: {\"${KEY}\": *x}\n"))
	f.Add([]byte("\ufefflisten: \"\\u2028\"\r\n--- !t &a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		const secret = "Zq81-from-outside"
		c, ps := Parse("h.yaml", text, func(name string) (string, bool) { return secret, name == "KEY" })
		if c == nil || c.ID() == "unknown" {
			t.Fatal("no configuration")
		}
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + strings.Count(string(text), "\u2028") + strings.Count(string(text), "\u2029") + strings.Count(string(text), "\u0085") + 2
		for _, p := range ps {
			if p.Line > lines || p.Line < 0 || p.Column < 0 {
				t.Errorf("place %d:%d of %d lines", p.Line, p.Column, lines)
			}
		}
		report := ps.Report()
		if strings.Contains(report+ps.Error(), "Zq81") && !strings.Contains(string(text), "Zq81") {
			t.Errorf("shows a secret:\n%s", report)
		}
		for _, line := range strings.Split(report, "\n") {
			if len([]rune(line)) > width || clean(line) != line {
				t.Errorf("does not fit: %q", line)
			}
		}
	})
}
