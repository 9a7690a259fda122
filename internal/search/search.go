// Package search finds incidents by what somebody saw: plain words, in any
// order, stemmed, with the other names that the vocabulary and a list of
// synonyms know. It decides the order of the results and what is shown of
// each. What is typed is never read as a query language. It knows neither the
// network nor the command line; the command line, the REST handlers and the
// pages call it.
package search

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hourthree/hourthree/internal/incident"
)

// Bounds of a query.
const (
	MaxText      = 500 // characters
	MaxLimit     = 100
	DefaultLimit = 10
)

// Index finds records of one library. It is built at the first search, so that
// who never searches does not wait for it. It is safe for concurrent use.
type Index struct {
	library *incident.Library
	build   func() (*index, error)
}

// Open makes the index of a library.
func Open(l *incident.Library) (*Index, error) {
	t, err := synonyms(l.Vocabulary())
	if err != nil {
		return nil, err
	}
	return &Index{library: l, build: sync.OnceValues(func() (*index, error) { return newIndex(l, t) })}, nil
}

// Query is what is looked for.
type Query struct {
	// Text is plain words. A part in double quotes has to occur as it stands. The
	// id of a record finds it first.
	Text   string
	Filter incident.Filter
	Limit  int    // at most MaxLimit; 0 is DefaultLimit
	Cursor string // Next of the page before
}

// Result is one page of what was found.
type Result struct {
	Hits  []Hit
	Total int    // on all pages
	Next  string // Cursor of the next page, empty on the last
}

// Hit is a record that was found. Scores can be compared within one query only.
type Hit struct {
	Record   *incident.Record
	Score    float64
	Fields   []string // where something matched, what says most first
	Fragment Fragment
}

// BadQuery is a query that cannot be answered, and why.
type BadQuery struct {
	Field   string // text, limit or cursor
	Message string
}

func (e *BadQuery) Error() string { return e.Message }

var (
	anID   = regexp.MustCompile(`(?i)\b[a-z]{2,8}-[0-9]{4}\b`)
	quotes = regexp.MustCompile(`["“”]([^"“”]*)["“”]`)
)

// Find looks for q. Hits come by score, then by id; the order is the same each
// time. The error is a *BadQuery, an *incident.UnknownWord of the filter, or
// the context's.
func (x *Index) Find(ctx context.Context, q Query) (*Result, error) {
	if q.Limit == 0 {
		q.Limit = DefaultLimit
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	after, err := q.after()
	if err != nil {
		return nil, err
	}
	records, err := x.library.List(q.Filter)
	if err != nil {
		return nil, err
	}
	ix, err := x.build()
	if err != nil {
		return nil, err
	}
	found, err := x.find(ctx, ix, q.Text, records)
	if err != nil {
		return nil, err
	}
	return q.page(ix, found, after), nil
}

func (q *Query) check() error {
	switch n := utf8.RuneCountInString(q.Text); {
	case strings.TrimSpace(q.Text) == "":
		return &BadQuery{"text", "there is nothing to look for: say what you see, in plain words"}
	case !utf8.ValidString(q.Text):
		return &BadQuery{"text", "the text is not UTF-8"}
	case n > MaxText:
		return &BadQuery{"text", fmt.Sprintf("the text has %d characters, %d are allowed: keep what tells most", n, MaxText)}
	case q.Limit < 1 || q.Limit > MaxLimit:
		return &BadQuery{"limit", fmt.Sprintf("the limit %d is not between 1 and %d", q.Limit, MaxLimit)}
	}
	return nil
}

// find ranks the records that match text.
func (x *Index) find(ctx context.Context, ix *index, text string, records []*incident.Record) ([]*match, error) {
	named := map[string]bool{}
	text = anID.ReplaceAllStringFunc(text, func(id string) string {
		r, ok := x.library.Get(id)
		if !ok {
			return id
		}
		named[r.ID] = true
		return " "
	})
	var phrases []string
	for _, m := range quotes.FindAllStringSubmatch(text, -1) {
		phrases = append(phrases, m[1])
	}
	matches, err := ix.match(ctx, ix.concepts(text), phrases)
	if err != nil {
		return nil, err
	}
	var found []*match
	for _, r := range records {
		m := matches[r.ID]
		if named[r.ID] {
			if m == nil {
				m = &match{id: r.ID, fields: map[string]float64{}}
			}
			m.score += idScore
			m.fields["id"] = idScore
		}
		if m != nil {
			m.record = r
			found = append(found, m)
		}
	}
	slices.SortFunc(found, compare)
	return found, nil
}
