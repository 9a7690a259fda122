package render

import (
	"io"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/retrypath"
)

// Notes says what of the input could not be read, a line each, nothing where all
// was.
func Notes(w io.Writer, in audit.Input) error {
	var b strings.Builder
	for _, p := range in.Problems {
		b.WriteString("note: " + problem(p) + "\n")
	}
	for _, g := range in.Gaps {
		if g.Reason != audit.Absent {
			b.WriteString("note: " + clean(g.Resource.String()+": "+strings.ReplaceAll(string(g.Reason), "_", " ")+": "+g.Detail) + "\n")
		}
	}
	_, err := io.WriteString(w, Inert(b.String()))
	return err
}

// PathsJSON writes the ways from a workload to models.
func PathsJSON(w io.Writer, paths []retrypath.Path) error {
	return indented(w, struct {
		Version int              `json:"schema_version"`
		Paths   []retrypath.Path `json:"paths"`
	}{audit.SchemaVersion, list(paths)})
}
