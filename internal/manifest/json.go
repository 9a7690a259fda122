package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonReader reads JSON values with their places, about ten times as fast as
// the YAML parser does.
type jsonReader struct {
	doc    document
	bounds bounds
	words  words
	dec    *jsontext.Decoder
	notes  []Problem

	end, lineAt int // offsets: behind the last token, of the current line
	line        int
}

// looksJSON says that a document may be JSON: what it begins with is no proof,
// YAML has { and [ as well.
func (d document) looksJSON() bool {
	text := bytes.TrimLeft(d.text, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// readJSON reads all values of the document.
func (d document) readJSON(b bounds, w words) ([]tree, []Problem, error) {
	r := &jsonReader{doc: d, bounds: b, words: w, line: d.line,
		dec: jsontext.NewDecoder(bytes.NewBuffer(d.text), jsontext.AllowDuplicateNames(true))}
	var trees []tree
	for {
		t, err := r.value(0)
		if errors.Is(err, io.EOF) {
			return trees, r.notes, nil
		}
		if err != nil {
			return nil, nil, err
		}
		trees = append(trees, t)
	}
}

// next reads a token and says where it stands.
func (r *jsonReader) next() (jsontext.Token, place, error) {
	tok, err := r.dec.ReadToken()
	if err != nil {
		return tok, place{}, err
	}
	at := r.end
	for ; at < len(r.doc.text); at++ {
		switch r.doc.text[at] {
		case '\n':
			r.line, r.lineAt = r.line+1, at+1
			continue
		case ' ', '\t', '\r', ',', ':':
			continue
		}
		break
	}
	r.end = int(r.dec.InputOffset())
	return tok, place{line: uint32(r.line), col: uint32(1 + utf8.RuneCount(r.doc.text[r.lineAt:at]))}, nil
}

func (r *jsonReader) value(depth int) (tree, error) {
	tok, at, err := r.next()
	if err != nil {
		return tree{}, err
	}
	if depth > r.bounds.depth {
		return tree{}, tooDeep{r.bounds.depth, at}
	}
	return r.rest(tok, at, depth)
}

// rest reads what a token begins.
func (r *jsonReader) rest(tok jsontext.Token, at place, depth int) (tree, error) {
	switch tok.Kind() {
	case '{':
		return r.object(at, depth)
	case '[':
		return r.array(at, depth)
	case '"':
		text := tok.String()
		if bytes.IndexByte([]byte(text), '\n') >= 0 {
			at.in = &inside{text: &textPlace{line: at.line, indent: at.col - 1}}
		}
		return tree{r.words.one(text), at, 1}, nil
	case '0':
		f, err := tok.Float()
		if err != nil || math.IsInf(f, 0) {
			return tree{tok.String(), at, 1}, nil
		}
		return tree{f, at, 1}, nil
	case 't', 'f':
		return tree{tok.Bool(), at, 1}, nil
	default:
		return tree{nil, at, 1}, nil
	}
}

func (r *jsonReader) object(at place, depth int) (tree, error) {
	m := map[string]any{}
	in := &inside{keys: []string{}}
	at.in = in
	for r.dec.PeekKind() != '}' {
		tok, place, err := r.next()
		if err != nil {
			return tree{}, err
		}
		key := r.words.one(tok.String())
		sub, err := r.value(depth + 1)
		if err != nil {
			return tree{}, err
		}
		place.in = sub.at.in
		if _, twice := m[key]; twice {
			r.twice(key, place, in)
		} else {
			in.add(key, place)
		}
		m[key] = sub.value
	}
	_, _, err := r.next()
	return tree{m, at, 1}, err
}

// twice notes a key that stands again; past the bound its place is of no use.
func (r *jsonReader) twice(key string, at place, in *inside) {
	if len(r.notes) < maxProblems {
		in.move(key, at)
		r.notes = append(r.notes, Problem{File: r.doc.file, Line: int(at.line), Column: int(at.col),
			What: fmt.Sprintf("%q stands twice in one object; the last counts", key), Remedy: "remove one of them"})
	}
}

func (r *jsonReader) array(at place, depth int) (tree, error) {
	list := []any{}
	in := &inside{}
	at.in = in
	for r.dec.PeekKind() != ']' {
		sub, err := r.value(depth + 1)
		if err != nil {
			return tree{}, err
		}
		list, in.at = append(list, sub.value), append(in.at, sub.at)
	}
	_, _, err := r.next()
	return tree{list, at, 1}, err
}

type tooDeep struct {
	bound int
	at    place
}

func (e tooDeep) Error() string { return fmt.Sprintf("is nested more than %d deep", e.bound) }

// syntaxJSON is the problem of a document that is no JSON.
func (d document) syntaxJSON(err error) Problem {
	p := Problem{File: d.file, Line: d.line, Lost: true, Remedy: "correct the file"}
	var deep tooDeep
	var syntax *jsontext.SyntacticError
	switch {
	case d.hasTemplate():
		return d.unrendered()
	case errors.As(err, &deep):
		p.What, p.Line, p.Column = deep.Error(), int(deep.at.line), int(deep.at.col)
		p.Remedy = "flatten it: no object needs that"
	case errors.As(err, &syntax):
		p.What = "is not valid JSON: " + syntax.Err.Error()
		before := d.text[:min(int(syntax.ByteOffset), len(d.text))]
		p.Line += bytes.Count(before, []byte("\n"))
		p.Column = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	default:
		p.What = "is not valid JSON: " + err.Error()
	}
	return p
}
