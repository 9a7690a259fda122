package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/topology"
)

// The bounds of a waivers file.
const (
	mostWaiverBytes = 1 << 20
	mostWaivers     = 10_000
)

// WaiverFile is what a waivers file says.
type WaiverFile struct {
	Waivers []Waiver
	Firm    []string // ids or groups that the policy lets nobody waive
}

// ReadWaivers reads a waivers file. An unknown key or a wrong form is an error
// with its place; an entry that is well-formed and cannot be in force, such as
// one without a reason, is left for Run to report as WVR-001.
func ReadWaivers(file string, data []byte) (*WaiverFile, error) {
	if len(data) > mostWaiverBytes {
		return nil, fmt.Errorf("%s: has more than %d bytes; split it", file, mostWaiverBytes)
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil && !strings.Contains(err.Error(), "no documents") {
		return nil, waiverSyntax(file, err)
	}
	r := waiverReader{file: file}
	if len(doc.Content) > 0 {
		r.root(doc.Content[0])
	}
	if r.err != nil {
		return nil, r.err
	}
	return &r.out, nil
}

func waiverSyntax(file string, err error) error {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		return fmt.Errorf("%s:%d:%d: this is not YAML: %s", file, max(le.Mark.Line, 1), max(le.Mark.Column, 1), le.Message)
	}
	return fmt.Errorf("%s: this is not YAML: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
}

// waiverReader keeps the first thing that is wrong.
type waiverReader struct {
	file string
	out  WaiverFile
	err  error
}

func (r *waiverReader) fail(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s:%d:%d: %s", r.file, n.Line, n.Column, fmt.Sprintf(format, args...))
	}
}

// fields calls of for each key of a mapping; of says whether it knows the key.
func (r *waiverReader) fields(n *yaml.Node, known []string, of func(k string, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "must be a mapping with %s", strings.Join(known, ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case !slices.Contains(known, k.Value):
			r.fail(k, "%q is not a key here; known are %s", k.Value, strings.Join(known, ", "))
		case seen[k.Value]:
			r.fail(k, "%s is there twice", k.Value)
		default:
			of(k.Value, v)
		}
		seen[k.Value] = true
	}
}

func (r *waiverReader) list(n *yaml.Node, of func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "must be a list")
		return
	}
	if len(n.Content) > mostWaivers {
		r.fail(n, "has more than %d entries; a pattern in namespace or name covers many objects", mostWaivers)
		return
	}
	for _, e := range n.Content {
		of(e)
	}
}

func (r *waiverReader) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		r.fail(n, "must be text")
		return ""
	}
	return strings.TrimSpace(n.Value)
}

func (r *waiverReader) root(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	r.fields(n, []string{"version", "waivers", "policy"}, func(k string, v *yaml.Node) {
		switch k {
		case "version":
			if r.text(v) != "1" {
				r.fail(v, "version must be 1, the only one there is")
			}
		case "waivers":
			r.list(v, r.waiver)
		case "policy":
			r.list(v, r.policy)
		}
	})
}

func (r *waiverReader) waiver(n *yaml.Node) {
	w := Waiver{Place: topology.Place{File: r.file, Line: n.Line, Column: n.Column}}
	to := map[string]*string{
		"check": &w.Check, "kind": &w.Kind, "namespace": &w.Namespace, "name": &w.Name,
		"container": &w.Container, "reason": &w.Reason, "until": &w.Until,
	}
	r.fields(n, []string{"check", "kind", "namespace", "name", "container", "reason", "until"}, func(k string, v *yaml.Node) {
		*to[k] = r.text(v)
	})
	r.out.Waivers = append(r.out.Waivers, w)
}

// policy reads {check: ID or group, waivable: false}.
func (r *waiverReader) policy(n *yaml.Node) {
	var check, waivable string
	r.fields(n, []string{"check", "waivable"}, func(k string, v *yaml.Node) {
		if k == "waivable" {
			waivable = r.text(v)
			return
		}
		check = r.text(v)
		if _, err := Select([]string{check}); err != nil && check != "" {
			r.fail(v, "%v", err)
		}
		check = strings.ToUpper(check)
	})
	switch {
	case check == "":
		r.fail(n, "needs check: an id or a group of checks")
	case waivable == "false":
		r.out.Firm = append(r.out.Firm, check)
	case waivable != "true":
		r.fail(n, "needs waivable: true or false")
	}
}
