package render

import (
	"fmt"
	"io"

	"github.com/hourthree/hourthree/internal/cluster"
)

// Access says which kinds a cluster lets be read, and what is missing for the
// others.
func Access(w io.Writer, rights []cluster.Right, s Screen) error {
	p := newPage(s)
	readable := 0
	var missing, absent []cluster.Right
	for _, r := range rights {
		switch {
		case r.Readable:
			readable++
		case r.Reason == cluster.Absent:
			absent = append(absent, r)
		default:
			missing = append(missing, r)
		}
	}
	p.line("", fmt.Sprintf("%d of %s can be read, %d are not installed.", readable, many(len(rights), "kind"), len(absent)))
	if len(missing) > 0 {
		p.WriteString("\nNot readable: the checks that need them are not evaluated\n")
		for _, r := range missing {
			p.line("  - ", r.Resource.String()+": "+r.Detail)
		}
	}
	if len(absent) > 0 {
		p.WriteString("\nNot installed: nothing to read\n")
		text := ""
		for i, r := range absent {
			if i > 0 {
				text += ", "
			}
			text += r.Resource.String()
		}
		p.line("  ", text)
	}
	return p.to(w)
}
