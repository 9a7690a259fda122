package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/config"
)

// TestDocumentedAccess: the configurations of docs/access.md are taken as they
// stand, but for the certificate, which is not there.
func TestDocumentedAccess(t *testing.T) {
	text, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d configurations", len(blocks))
	}
	const rest = "providers: {a: {type: simulated}, b: {type: simulated}}\nmodels: {m: {targets: [{provider: a}, {provider: b}], degraded: {message: away}}}\n"
	for _, b := range blocks {
		y := regexp.MustCompile(`(?m)^  tls:.*\n`).ReplaceAllString(b[1], "")
		y = strings.ReplaceAll(y, "sha256:…", access.Digest("a-key-of-prometheus"))
		c, problems := config.Parse("access.md", []byte(y+rest), func(name string) (string, bool) { return "the-value-of-" + name, true })
		if problems.Fatal() || !c.Admin.Guarded() {
			t.Errorf("%s\n%s", problems.Report(), y)
		}
	}
}
