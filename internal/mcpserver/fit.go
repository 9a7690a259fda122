package mcpserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// budget is the most bytes of a result: 8,000 tokens at four bytes each, less
// what the protocol writes around it.
const budget = 30_000

// section is a list of a result that may be cut at its end.
type section struct {
	name string
	n    int
	size func(i int) int
	take func(from, to int)
}

// part makes a section of a list that goes to a field of the result.
func part[T any](name string, from []T, to *[]T) section {
	*to = []T{}
	return section{name, len(from), func(i int) int { return len(encoded(from[i])) + 1 }, func(a, b int) { *to = append(*to, from[a:b]...) }}
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a result that JSON cannot say: %v", err)) // its types are the program's
	}
	return b
}

// place is where a page of a result begins.
type place struct{ section, item int }

// rest is what a page does not have.
type rest struct {
	Omitted map[string]int `json:"omitted,omitempty" jsonschema:"how many entries of which list are on further pages"`
	Next    string         `json:"next_cursor,omitempty" jsonschema:"call again with this cursor for the further pages"`
}

// fill fills the sections in their order, from a place on, as far as room bytes
// reach. Every page has one entry at least.
func fill(subject string, room int, at place, sections []section) rest {
	var r rest
	taken := 0
	for i, s := range sections {
		from := 0
		switch {
		case i < at.section:
			continue
		case i == at.section:
			from = min(at.item, s.n)
		}
		to := from
		for ; r.Next == "" && to < s.n; to++ {
			if n := s.size(to); taken > 0 && n > room {
				r.Next = cursorOf(subject, place{i, to})
				break
			} else {
				room -= n
				taken++
			}
		}
		s.take(from, to)
		if to < s.n {
			if r.Omitted == nil {
				r.Omitted = map[string]int{}
			}
			r.Omitted[s.name] = s.n - to
		}
	}
	return r
}

// errCursor tells what to do about a cursor that is not one.
var errCursor = errors.New("the cursor is not one of this question: take next_cursor of the page before, with the same arguments, or none for the first page")

// cursorOf names a place in the answer to one question.
func cursorOf(subject string, p place) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d %d", digest(subject), p.section, p.item))
}

// digest tells questions apart, so that a cursor of one is not used for another.
func digest(subject string) string {
	sum := sha256.Sum256([]byte(subject))
	return hex.EncodeToString(sum[:6])
}

// placeAt is where a cursor of the question points, the beginning without one.
func placeAt(subject, cursor string) (place, error) {
	if cursor == "" {
		return place{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return place{}, errCursor
	}
	tail, ok := strings.CutPrefix(string(text), digest(subject)+" ")
	var p place
	if n, err := fmt.Sscanf(tail, "%d %d", &p.section, &p.item); !ok || err != nil || n != 2 || p.section < 0 || p.item < 0 {
		return place{}, errCursor
	}
	return p, nil
}

// room is what is left of the budget beside what a result has already.
func room(v any) int { return budget - len(encoded(v)) - 600 } // of the cursor and the counts
