package manifest

import (
	"fmt"
	"maps"
	"slices"
)

// embed finds the configurations of gateways in the data of a ConfigMap.
func (o *Object) embed(b bounds, w words) []Problem {
	if o.Kind != "ConfigMap" || o.Group != "" {
		return nil
	}
	data, _ := o.Root["data"].(map[string]any)
	places, _ := o.at.child("data")
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(data)) {
		s, ok := data[key].(string)
		if !ok || len(s) < 8 {
			continue
		}
		at, _ := places.child(key)
		e := embedding{outer: o, key: key, text: []byte(s), at: at, bounds: b, words: w}
		problems = append(problems, e.read()...)
	}
	return problems
}

// embedding is one text in a ConfigMap.
type embedding struct {
	outer  *Object
	key    string
	text   []byte
	at     place
	bounds bounds
	words  words
}

func (e *embedding) object(kind string) *Object {
	o := &Object{Group: FileGroup, Kind: kind, Namespace: e.outer.Namespace, Name: e.outer.Name + "/" + e.key,
		Text: e.text, Origin: e.outer.Origin, outer: e.outer}
	switch {
	case e.at.in != nil && e.at.in.text != nil:
		o.inText = e.at.in.text
	case e.at.line > 0: // a text of one line
		o.inText = &textPlace{line: e.at.line, indent: max(e.at.col, 1) - 1}
	}
	return o
}

func (e *embedding) read() []Problem {
	named, maybe := mayConfigure(e.text)
	if !maybe {
		if kind := productOfText(e.key, e.text); kind != "" {
			e.outer.embedded = append(e.outer.embedded, e.object(kind))
		}
		return nil
	}
	var problems []Problem
	found := false
	for _, d := range split(e.outer.Origin.File, e.text) {
		trees, notes := d.parse(e.bounds, e.words)
		for _, t := range trees {
			m, _ := t.value.(map[string]any)
			kind := product(m)
			if kind == "" || isObject(m) {
				continue
			}
			o := e.object(kind)
			o.Root, o.at = m, t.at
			e.outer.embedded, found = append(e.outer.embedded, o), true
		}
		if found || named != "" {
			problems = append(problems, e.outside(named, notes)...)
		}
	}
	if kind := productOfText(e.key, e.text); !found && len(problems) == 0 && kind != "" {
		e.outer.embedded = append(e.outer.embedded, e.object(kind))
	}
	return problems
}

// outside gives problems of the text the place in the file.
func (e *embedding) outside(named string, notes []Problem) []Problem {
	o := e.object(named)
	for i := range notes {
		notes[i].Line, notes[i].Column = o.outside(max(notes[i].Line, 1), max(notes[i].Column, 1))
		notes[i].What = fmt.Sprintf("data[%s] of %s: %s", e.key, e.outer.Ref(), notes[i].What)
		notes[i].Remedy = "correct the text"
	}
	return notes
}
