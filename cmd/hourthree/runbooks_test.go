package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunbookCommands: every command of the runbooks is one, with its flags.
func TestRunbookCommands(t *testing.T) {
	files, _ := filepath.Glob("../../docs/runbooks/*.md")
	command := regexp.MustCompile("(?m)(?:`|^)hourthree ([^`#\n]+)")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found := command.FindAllStringSubmatch(string(text), -1)
		if len(found) < 3 {
			t.Errorf("%s has %d commands", f, len(found))
		}
		for _, m := range found {
			args := words(strings.ReplaceAll(m[1], `"`, "'"))
			root := rootCommand()
			c, rest, err := root.Find(args)
			if err != nil || c == root {
				t.Errorf("%s: hourthree %s: %v", f, m[1], err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("%s: hourthree %s: %v", f, m[1], err)
			} else if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("%s: hourthree %s: %v", f, m[1], err)
			}
		}
	}
}
