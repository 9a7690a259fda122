package render

import (
	"fmt"

	"github.com/hourthree/hourthree/internal/manifest"
)

// problem is a fault of the input in one line.
func problem(p manifest.Problem) string {
	s := clean(p.File)
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
		if p.Column > 0 {
			s += fmt.Sprintf(":%d", p.Column)
		}
	}
	s += ": " + clean(p.What)
	if p.Remedy != "" {
		s += "; " + clean(p.Remedy)
	}
	return s
}
