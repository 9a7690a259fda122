package topology

import (
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
)

// Place is where a field stands.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Live   bool   `json:"live,omitempty"`
}

// PlaceOf is where a path of an object stands: within the configuration that a
// ConfigMap holds where it leads into one.
func PlaceOf(o *manifest.Object, path string) Place {
	line, column := o.Position(path)
	if rest, ok := strings.CutPrefix(path, "data["); ok && len(o.Embedded()) > 0 {
		k, below, _ := strings.Cut(rest, "]")
		if e := embedded(o, k); e != nil {
			line, column = e.Position(below)
		}
	}
	return Place{File: o.Origin.File, Line: line, Column: column, Live: o.Origin.Live}
}

// NameOf is an object's namespace and name.
func NameOf(o *manifest.Object) string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}
