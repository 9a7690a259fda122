package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/library"
)

const incidentsDoc = "../../docs/incidents.md"

// TestDocumentedIncidents runs every command of the console blocks and compares
// what is printed; "…" as the last line stands for the rest of it. With
// UPDATE_SCRIPTS=1 the document is rewritten.
func TestDocumentedIncidents(t *testing.T) {
	old, err := os.ReadFile(incidentsDoc)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(old), "```console\n")
	var b strings.Builder
	b.WriteString(parts[0])
	for _, p := range parts[1:] {
		block, rest, ok := strings.Cut(p, "```\n")
		if !ok {
			t.Fatal("a console block has no end")
		}
		b.WriteString("```console\n" + asPlayed(t, block) + "```\n" + rest)
	}
	if b.String() == string(old) {
		return
	}
	if os.Getenv("UPDATE_SCRIPTS") == "" {
		t.Errorf("docs/incidents.md is not what the commands print; with UPDATE_SCRIPTS=1 it is:\n%s", b.String())
		return
	}
	if err := os.WriteFile(incidentsDoc, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// asPlayed is a block as it should be.
func asPlayed(t *testing.T, block string) string {
	lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	most := 0
	if lines[len(lines)-1] == "…" {
		most = len(lines) - 2 // without the command
	}
	var b strings.Builder
	for _, l := range lines {
		if cmd, ok := strings.CutPrefix(l, "$ "); ok {
			b.WriteString(l + "\n" + firstLines(printed(t, cmd), most))
		}
	}
	if most > 0 {
		b.WriteString("…\n")
	}
	return b.String()
}

func firstLines(s string, n int) string {
	lines := strings.SplitAfter(s, "\n")
	if n == 0 || n >= len(lines) {
		return s
	}
	return strings.Join(lines[:n], "")
}

// printed is what a command prints.
func printed(t *testing.T, cmd string) string {
	t.Helper()
	args := words(cmd)
	if args[0] == "curl" {
		r := httptest.NewRequest("GET", args[len(args)-1], nil)
		w := httptest.NewRecorder()
		library.Handler(library.Embedded, library.Options{}).ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Body)
		return string(body)
	}
	if len(args) < 2 || args[0] != "hourthree" || args[1] != "incidents" {
		t.Fatalf("what is %q?", cmd)
	}
	var out bytes.Buffer
	c := incidentsCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args[2:])
	c.SetOut(&out)
	if err := c.Execute(); err != nil {
		fmt.Fprintln(&out, "hourthree:", err)
	}
	return out.String()
}

// words are a command's, with '…' around those that have spaces.
func words(cmd string) []string {
	var list []string
	for i, part := range strings.Split(cmd, "'") {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}
