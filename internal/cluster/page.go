package cluster

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDepth    = 100
	longestWord = 64
	mostWords   = 100_000
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// page reads one answer to a list, object by object: the answer as a whole is
// never in memory, and what no check looks at is left out on the way.
type page struct {
	words map[string]string // one copy of each short text
	item  func(map[string]any) error

	dec    *jsontext.Decoder
	next   string // the token of the next page
	listed bool
}

func (p *page) read(r io.Reader) error {
	p.dec = jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true))
	err := p.list()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("the answer is not the JSON of a list: %w", syntax.Err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the answer breaks off")
	case err == nil && !p.listed:
		return errors.New("the answer is not a list")
	}
	return err
}

func (p *page) list() error {
	return p.object(func(key string) error {
		switch key {
		case "metadata":
			return p.object(func(key string) error {
				if key != "continue" {
					return p.dec.SkipValue()
				}
				v, err := p.value(0, "")
				p.next, _ = v.(string)
				return err
			})
		case "items":
			return p.items()
		default:
			return p.dec.SkipValue()
		}
	})
}

func (p *page) items() error {
	p.listed = true
	if p.dec.PeekKind() == 'n' { // an empty list of some servers
		return p.dec.SkipValue()
	}
	if tok, err := p.dec.ReadToken(); err != nil {
		return err
	} else if tok.Kind() != '[' {
		return errors.New("the answer's items are no list")
	}
	for p.dec.PeekKind() != ']' {
		v, err := p.value(0, "")
		if err != nil {
			return err
		}
		m, ok := v.(map[string]any)
		if !ok {
			return errors.New("an item of the answer is no object")
		}
		if err := p.item(m); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// object reads an object whose values field reads.
func (p *page) object(field func(key string) error) error {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != '{' {
		return errors.New("the answer is not a list")
	}
	for p.dec.PeekKind() != '}' {
		tok, err := p.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := field(p.word(tok.String())); err != nil {
			return err
		}
	}
	_, err = p.dec.ReadToken()
	return err
}

// value reads any value. in is the key of the object that it stands in, as far
// as that matters.
func (p *page) value(depth int, in string) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("an object is nested more than %d deep", maxDepth)
	}
	switch p.dec.PeekKind() {
	case '{':
		m := map[string]any{}
		err := p.object(func(key string) error {
			if depth == 1 && in == "metadata" && key == "managedFields" || depth == 2 && in == "annotations" && key == lastApplied {
				return p.dec.SkipValue()
			}
			v, err := p.value(depth+1, key)
			m[key] = v
			return err
		})
		return m, err
	case '[':
		return p.array(depth)
	}
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '"':
		return p.word(tok.String()), nil
	case '0':
		f, err := tok.Float()
		if err != nil {
			return tok.String(), nil
		}
		return f, nil
	case 't', 'f':
		return tok.Bool(), nil
	}
	return nil, nil
}

func (p *page) array(depth int) (any, error) {
	list := []any{}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, err
	}
	for p.dec.PeekKind() != ']' {
		v, err := p.value(depth+1, "")
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := p.dec.ReadToken()
	return list, err
}

func (p *page) word(s string) string {
	if len(s) > longestWord {
		return s
	}
	if have, ok := p.words[s]; ok {
		return have
	}
	if len(p.words) < mostWords {
		p.words[s] = s
	}
	return s
}
