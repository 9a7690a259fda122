package search

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// place is where a page ends: the last hit's score and id.
type place struct {
	score float64
	id    string
}

// of tells queries apart, so that a cursor of one is not used for another.
func (q *Query) of() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %v", q.Text, q.Filter))
	return string(sum[:6])
}

func (q *Query) cursor(p place) string {
	b := binary.BigEndian.AppendUint64([]byte(q.of()), math.Float64bits(p.score))
	return base64.RawURLEncoding.EncodeToString(append(b, p.id...))
}

// after is the place that the cursor names, nil without one.
func (q *Query) after() (*place, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(b) < 15 || len(b) > 64 || !strings.HasPrefix(string(b), q.of()) {
		return nil, &BadQuery{"cursor", "the cursor is not one of this query: begin again without it"}
	}
	return &place{math.Float64frombits(binary.BigEndian.Uint64(b[6:14])), string(b[14:])}, nil
}

// page cuts the page that q asks for out of all that was found.
func (q *Query) page(ix *index, found []*match, after *place) *Result {
	res := &Result{Hits: []Hit{}, Total: len(found)}
	for _, m := range found {
		if after != nil && before(m.place(), *after) <= 0 {
			continue
		}
		if len(res.Hits) == q.Limit {
			last := res.Hits[q.Limit-1]
			res.Next = q.cursor(place{last.Score, last.Record.ID})
			break
		}
		res.Hits = append(res.Hits, ix.hit(m))
	}
	return res
}

// before orders places: by score, the highest first, then by id.
func before(a, b place) int {
	return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.id, b.id))
}
