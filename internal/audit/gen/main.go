// Command gen writes docs/checks.md, the reference of the audit's checks, from
// the catalogue and the incident library. Run it with go generate
// ./internal/audit; a test holds the file to it.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/incident"
)

// output is where the page is, from the package's directory.
const output = "../../docs/checks.md"

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".", "of package audit")
	flag.Parse()
	if err := run(*dir); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	library, err := incident.Open()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, output), page(audit.Groups(), library), 0o644)
}
