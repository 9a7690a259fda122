package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
)

// Access says which of so many kinds a cluster lets be read, and what is missing
// for the others.
func Access(w io.Writer, kinds int, gaps []audit.Gap, s Screen) error {
	p := newPage(s)
	var missing []audit.Gap
	var absent []string
	for _, g := range gaps {
		if g.Reason == audit.Absent {
			absent = append(absent, g.Resource.String())
		} else {
			missing = append(missing, g)
		}
	}
	p.line("", fmt.Sprintf("%d of %s can be read, %d are not installed.", kinds-len(gaps), many(kinds, "kind"), len(absent)))
	if len(missing) > 0 {
		p.WriteString("\nNot readable: the checks that need them are not evaluated\n")
		for _, g := range missing {
			p.line("  - ", g.Resource.String()+": "+g.Detail)
		}
	}
	if len(absent) > 0 {
		p.WriteString("\nNot installed: nothing to read\n")
		p.line("  ", strings.Join(absent, ", "))
	}
	return p.to(w)
}
