package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// tree is a value as JSON has it, with its places.
type tree struct {
	value any
	at    place
	size  int // values in it, each alias counted as what it stands for
}

// converter makes trees of the nodes of one document.
type converter struct {
	doc      document
	bounds   bounds
	words    words
	shared   map[*yaml.Node]*tree // what anchors name; nil while it is being read
	expanded int
	lines    []int // offsets of the lines of the document, when needed
	notes    []Problem
	fault    *Problem // ends the document
	template bool     // a mapping as key: what {{ }} looks like to YAML
}

// words keeps one copy of each short text: manifests repeat them.
type words map[string]string

const (
	longestWord = 64
	mostWords   = 100_000
)

func (w words) one(s string) string {
	if len(s) > longestWord {
		return s
	}
	if have, ok := w[s]; ok {
		return have
	}
	if len(w) < mostWords {
		w[s] = s
	}
	return s
}

// readYAML reads the values of one document, or of a stream of them.
func (d document) readYAML(b bounds, w words) ([]tree, []Problem) {
	loader, err := yaml.NewLoader(bytes.NewReader(d.text))
	if err != nil {
		return nil, []Problem{d.syntax(err)}
	}
	var trees []tree
	var notes []Problem
	for {
		node := new(yaml.Node)
		if err := loader.Load(node); errors.Is(err, io.EOF) {
			return trees, notes
		} else if err != nil {
			return trees, append(notes, d.syntax(err))
		}
		c := &converter{doc: d, bounds: b, words: w}
		t := c.convert(node, 0)
		if b.spent != nil {
			*b.spent = add(*b.spent, c.expanded)
		}
		switch {
		case c.fault != nil:
			notes = append(notes, *c.fault)
		case c.template:
			notes = append(notes, d.unrendered())
		case t.value != nil:
			trees, notes = append(trees, t), append(notes, c.notes...)
		}
	}
}

// syntax is the problem of a document that is no YAML.
func (d document) syntax(err error) Problem {
	if d.hasTemplate() {
		return d.unrendered()
	}
	p := Problem{File: d.file, Line: d.line, What: "is not valid YAML: " + err.Error(), Lost: true,
		Remedy: "correct the document; the other documents of the file were read"}
	var load *yaml.LoadError
	if errors.As(err, &load) {
		p.What = "is not valid YAML: " + load.Message
		if load.ContextMsg != "" {
			p.What += " " + load.ContextMsg
		}
		if load.Mark.Line > 0 {
			p.Line, p.Column = d.line+load.Mark.Line-1, load.Mark.Column
		}
	}
	if indent := d.indentOf(p.Line); strings.Contains(indent, "\t") {
		p.Remedy = "indent with spaces: YAML takes no tabs there"
	}
	return p
}

// indentOf is the white space that a line of the file begins with.
func (d document) indentOf(line int) string {
	text := d.text
	for n := line - d.line; n > 0; n-- {
		_, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			return ""
		}
		text = rest
	}
	return string(text[:len(text)-len(bytes.TrimLeft(text, " \t"))])
}

func (c *converter) refuse(n *yaml.Node, what, remedy string) tree {
	if c.fault == nil {
		c.fault = &Problem{File: c.doc.file, Line: c.line(n), Column: n.Column, What: what, Remedy: remedy, Lost: true}
	}
	return tree{}
}

// note says something about a document, and whether there was room for it.
func (c *converter) note(n *yaml.Node, what, remedy string) bool {
	if len(c.notes) == maxProblems {
		return false
	}
	c.notes = append(c.notes, Problem{File: c.doc.file, Line: c.line(n), Column: n.Column, What: what, Remedy: remedy})
	return true
}

func (c *converter) line(n *yaml.Node) int { return c.doc.line + n.Line - 1 }

func (c *converter) place(n *yaml.Node) place {
	return place{line: uint32(c.line(n)), col: uint32(n.Column)}
}

// convert reads a node. After a fault it returns at once.
func (c *converter) convert(n *yaml.Node, depth int) tree {
	if c.fault != nil {
		return tree{}
	}
	if depth > c.bounds.depth {
		return c.refuse(n, fmt.Sprintf("is nested more than %d deep", c.bounds.depth), "flatten it: no object needs that")
	}
	if n.Anchor != "" && n.Kind != yaml.AliasNode {
		if c.shared == nil {
			c.shared = map[*yaml.Node]*tree{}
		}
		c.shared[n] = nil
	}
	var t tree
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) > 0 {
			t = c.convert(n.Content[0], depth)
		}
	case yaml.MappingNode:
		t = c.mapping(n, depth)
	case yaml.SequenceNode:
		t = c.list(n, depth)
	case yaml.ScalarNode:
		t = c.scalar(n)
	case yaml.AliasNode:
		return c.alias(n)
	}
	if n.Anchor != "" && c.shared != nil {
		c.shared[n] = &t
	}
	return t
}

// alias shares what an anchor names. What aliases stand for is counted: a few
// lines of aliases of aliases can stand for more than any memory holds.
func (c *converter) alias(n *yaml.Node) tree {
	t := c.shared[n.Alias]
	if t == nil {
		return c.refuse(n, "the alias *"+n.Value+" stands inside what it names", "write the value out")
	}
	if c.expanded = add(c.expanded, t.size); c.expanded > c.bounds.expanded {
		return c.refuse(n, fmt.Sprintf("its aliases stand for more than %d values", c.bounds.expanded),
			"write the values out, or split the document")
	}
	return tree{value: t.value, at: place{line: uint32(c.line(n)), col: uint32(n.Column), in: t.at.in}, size: t.size}
}

// add adds without overflow.
func add(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func (c *converter) list(n *yaml.Node, depth int) tree {
	list := make([]any, len(n.Content))
	t := tree{value: list, at: c.place(n), size: 1}
	t.at.in = &inside{at: make([]place, len(n.Content))}
	for i, e := range n.Content {
		sub := c.convert(e, depth+1)
		list[i], t.at.in.at[i] = sub.value, sub.at
		t.size = add(t.size, sub.size)
	}
	return t
}

func (c *converter) mapping(n *yaml.Node, depth int) tree {
	m := make(map[string]any, len(n.Content)/2)
	t := tree{value: m, at: c.place(n), size: 1}
	t.at.in = &inside{keys: make([]string, 0, len(n.Content)/2), at: make([]place, 0, len(n.Content)/2)}
	var merged *tree // what << brings
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.ShortTag() == "!!merge" {
			sub := c.convert(v, depth+1)
			if merged == nil {
				merged = &tree{value: map[string]any{}, at: place{in: &inside{}}}
			}
			c.merge(sub, *merged, v)
			t.size = add(t.size, sub.size)
			continue
		}
		key, ok := c.key(k)
		sub := c.convert(v, depth+1)
		t.size = add(t.size, sub.size)
		if !ok {
			continue
		}
		at := c.place(k)
		at.in = sub.at.in
		if _, twice := m[key]; twice {
			if c.note(k, fmt.Sprintf("%q stands twice in one mapping; the last counts", key), "remove one of them") {
				t.at.in.move(key, at)
			}
		} else {
			t.at.in.add(key, at)
		}
		m[key] = sub.value
	}
	if merged != nil {
		for i, key := range merged.at.in.keys {
			if _, ok := m[key]; !ok {
				m[key] = merged.value.(map[string]any)[key]
				t.at.in.add(key, merged.at.in.at[i])
			}
		}
	}
	return t
}

// key is a mapping's key as JSON has it.
func (c *converter) key(k *yaml.Node) (string, bool) {
	for k.Kind == yaml.AliasNode && k.Alias != nil {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		if k.Kind == yaml.MappingNode && k.Style&yaml.FlowStyle != 0 {
			c.template = c.template || c.doc.hasTemplate()
		}
		c.note(k, "a key is a list or a mapping; it was left out", "use a text as key")
		return "", false
	}
	if k.Anchor != "" {
		c.convert(k, 0)
	}
	return c.words.one(k.Value), true
}

// merge notes what << brings: the first that names a key counts, and what the
// mapping says itself before all.
func (c *converter) merge(t, into tree, n *yaml.Node) {
	switch v := t.value.(type) {
	case map[string]any:
		have := into.value.(map[string]any)
		for i, key := range t.at.in.keys {
			if _, ok := have[key]; !ok {
				have[key] = v[key]
				into.at.in.add(key, t.at.in.at[i])
			}
		}
	case []any:
		for i := range v {
			if m, ok := v[i].(map[string]any); ok {
				c.merge(tree{value: m, at: t.at.in.at[i]}, into, n)
			}
		}
	default:
		if c.fault == nil {
			c.note(n, "<< needs a mapping", "name an anchor of a mapping")
		}
	}
}

func (c *converter) scalar(n *yaml.Node) tree {
	t := tree{at: c.place(n), size: 1}
	switch n.ShortTag() {
	case "!!null":
	case "!!bool":
		t.value = strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		t.value = c.number(n)
	default:
		if b, ok := oldBool(n); ok {
			t.value = b
			break
		}
		t.value = c.words.one(n.Value)
		if strings.Contains(n.Value, "\n") {
			t.at.in = &inside{text: c.text(n)}
		}
	}
	return t
}

// oldBool is what a plain yes, no, on or off means to kubectl, Python and
// others that read YAML 1.1.
func oldBool(n *yaml.Node) (value, ok bool) {
	if n.Style != 0 || len(n.Value) > 3 {
		return false, false
	}
	switch n.Value {
	case "yes", "Yes", "YES", "on", "On", "ON":
		return true, true
	case "no", "No", "NO", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// number reads a number. What JSON cannot have, such as .inf, stays a text.
func (c *converter) number(n *yaml.Node) any {
	text := strings.ReplaceAll(n.Value, "_", "")
	if i, err := strconv.ParseInt(strings.TrimPrefix(text, "+"), 0, 64); err == nil {
		return float64(i)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return c.words.one(n.Value)
	}
	return f
}

// text finds where the lines of a text stand.
func (c *converter) text(n *yaml.Node) *textPlace {
	if n.Style&yaml.LiteralStyle == 0 {
		return &textPlace{line: uint32(c.line(n)), indent: uint32(max(n.Column, 1) - 1)}
	}
	if c.lines == nil {
		c.lines = lineStarts(c.doc.text)
	}
	indent, first := 0, n.Line // the line below the |, from 0
	for i := first; i < len(c.lines); i++ {
		line := c.doc.text[c.lines[i]:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		if trimmed := bytes.TrimLeft(line, " "); len(bytes.TrimSpace(line)) > 0 {
			lead, _, _ := strings.Cut(n.Value, "\n")
			for rest := n.Value; strings.TrimSpace(lead) == "" && rest != ""; {
				lead, rest, _ = strings.Cut(rest, "\n")
			}
			own := len(lead) - len(strings.TrimLeft(lead, " ")) // with |2 the text may be indented itself
			indent = max(len(line)-len(trimmed)-own, 0)
			break
		}
	}
	return &textPlace{line: uint32(c.doc.line + first), indent: uint32(indent), literal: true}
}

// lineStarts are the offsets at which lines begin.
func lineStarts(text []byte) []int {
	starts := make([]int, 1, 1+bytes.Count(text, []byte("\n")))
	for i, b := range text {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}
