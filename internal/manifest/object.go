// Package manifest reads what an audit looks at from files: Kubernetes objects
// and configurations of gateways, each with the place where every field stands.
// It decides what is an object and what a fault of the input is; it never
// judges an object, never follows a reference, never keeps the values of a
// Secret, and never reads from a network. What it reads is bounded in every way,
// and a fault costs the one document that it is in.
package manifest

import (
	"strconv"
	"strings"
)

// Object is one Kubernetes object, or one configuration file of a gateway. It is
// immutable once read and safe for concurrent use.
type Object struct {
	Group     string // "" for the core group; FileGroup for a gateway's own file
	Version   string
	Kind      string // of a gateway's own file: its Product
	Namespace string // "" for what has none
	Name      string
	// Root is the object as JSON has it: map[string]any, []any, string, float64,
	// bool and nil. Of a file that is neither YAML nor JSON it is nil. The values
	// of a Secret are left out.
	Root map[string]any
	// Text is a gateway's own file as it stands, nil for objects. Lines of it are
	// found in the file by TextPosition.
	Text   []byte
	Origin Origin

	at       place      // of the whole; zero for live objects
	textLine int        // of Text in the file, 0 for none
	outer    *Object    // that it is embedded in
	inText   *textPlace // where the outer object has the text
	embedded []*Object
}

// FileGroup is the group of gateway configurations that are no Kubernetes object.
const FileGroup = "file"

// Origin is where an object was read.
type Origin struct {
	File string // as it was named; "-" for standard input; cluster/NAMESPACE/KIND/NAME.yaml for a live object
	Line int    // of its first line, from 1
	Live bool   // read from a cluster
}

// Ref names an object.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Ref is the object's name.
func (o *Object) Ref() Ref {
	return Ref{Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// At is the value at a path such as spec.http[0].retries, nil where there is
// none. A key with dots stands in brackets: metadata.annotations[a.b/c].
func (o *Object) At(path string) any { return At(o.Root, path) }

// At is the value below root at a path, see Object.At.
func At(root any, path string) any {
	for _, s := range steps(path) {
		switch v := root.(type) {
		case map[string]any:
			root = v[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			root = v[i]
		default:
			return nil
		}
	}
	return root
}

// Position is the line and column, from 1, of the value at path or, where there
// is none, of the nearest value around it. In a mapping it is that of the key.
// Of a live object it is 1, 1.
func (o *Object) Position(path string) (line, col int) {
	p := o.at
	for _, s := range steps(path) {
		next, ok := p.child(s)
		if !ok {
			break
		}
		p = next
	}
	if o.outer != nil {
		return o.outside(int(p.line), int(p.col))
	}
	if p.line == 0 {
		return max(o.Origin.Line, 1), 1
	}
	return int(p.line), int(p.col)
}

// TextPosition is where a line and column of Text, from 1, stand in the file.
func (o *Object) TextPosition(line, col int) (fileLine, fileCol int) {
	if o.outer != nil {
		return o.outside(line, col)
	}
	return line + max(o.textLine, 1) - 1, col
}

// outside is where a line and column of an embedded text stand in the file of
// the outer object.
func (o *Object) outside(line, col int) (int, int) {
	switch t := o.inText; {
	case t == nil || t.line == 0:
		return max(o.Origin.Line, 1), 1
	case t.literal:
		return int(t.line) + max(line, 1) - 1, int(t.indent) + max(col, 1)
	default:
		return int(t.line), int(t.indent) + 1
	}
}

// Embedded are the configurations of gateways in the data of a ConfigMap. Their
// positions are those of the file that the ConfigMap stands in.
func (o *Object) Embedded() []*Object { return o.embedded }

// Outer is the object that this one is embedded in, nil for none.
func (o *Object) Outer() *Object { return o.outer }

// steps cuts a path into keys and indexes.
func steps(path string) []string {
	var list []string
	for path != "" {
		switch {
		case path[0] == '.':
			path = path[1:]
			continue
		case path[0] == '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return append(list, path[1:])
			}
			list, path = append(list, path[1:end]), path[end+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				return append(list, path)
			}
			list, path = append(list, path[:end]), path[end:]
		}
	}
	return list
}

// Problem is a fault of the input: what it concerns is left out, the rest is
// audited.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	What   string `json:"what"`   // what is wrong
	Remedy string `json:"remedy"` // what to do
	// Lost says that something was not read that may hold objects.
	Lost bool `json:"lost"`
}
