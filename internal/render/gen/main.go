// Command gen writes docs/checks.md from the catalogue of the audit's checks and
// the incidents that cite them. Run it with go generate ./internal/render; a test
// of package render holds the page to it.
package main

import (
	"log"
	"os"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/render"
)

func main() {
	l, err := incident.Open()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("../../docs/checks.md", render.Catalogue(audit.Groups(), l), 0o644); err != nil {
		log.Fatal(err)
	}
}
