package render

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/hourthree/hourthree/internal/audit"
)

// TestEachCheckHasItsAddress: the link that outputs give leads to a heading.
func TestEachCheckHasItsAddress(t *testing.T) {
	page, err := os.ReadFile("../../docs/checks.md")
	if err != nil {
		t.Fatal(err)
	}
	heads := map[string]bool{}
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(page))
	_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && in {
			heads[strings.ToLower(string(h.Lines().Value(page)))] = true
		}
		return ast.WalkContinue, nil
	})
	for _, c := range audit.Catalogue() {
		if _, at, _ := strings.Cut(helpURI(c.ID), "#"); !heads[at] {
			t.Errorf("%s leads nowhere", helpURI(c.ID))
		}
	}
}

// TestChecksAsText: the list and each explanation fit the screen and have every
// part.
func TestChecksAsText(t *testing.T) {
	l, err := library()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Checks(&b, audit.Groups(), Screen{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range audit.Catalogue() {
		if !strings.Contains(b.String(), "  "+c.ID+"  ") {
			t.Errorf("%s is not listed", c.ID)
		}
		var e bytes.Buffer
		if err := Explain(&e, c, l, Screen{Width: 60}); err != nil {
			t.Fatal(err)
		}
		for _, head := range []string{"\nWhen\n", "\nWhy\n", "\nFix\n"} {
			if !strings.Contains(e.String(), head) {
				t.Errorf("%s lacks %q", c.ID, head)
			}
		}
		for line := range strings.Lines(e.String()) {
			if columns(strings.TrimSuffix(line, "\n")) > 60 && !strings.HasPrefix(line, "    http") && !strings.Contains(c.Patch, strings.TrimSpace(line)) {
				t.Errorf("%s: %s", c.ID, line)
			}
		}
	}
}
