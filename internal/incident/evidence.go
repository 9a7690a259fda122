package incident

import (
	"cmp"
	"slices"
	"strings"
)

// Kinds are the kinds of claims, best carried first.
func Kinds() []Kind { return []Kind{Confirmed, Reported, Derived, Unconfirmed, Illustrative} }

// Ranked is a claim in its place of the ledger.
type Ranked struct {
	Rank   int    `json:"rank"` // from 1
	Claim  Claim  `json:"claim"`
	Source Source `json:"source"`
}

// Ledger is r's claims, the best carried first: by kind, then by evidence (the
// operator's own source before others, a source read in full before one read
// in part, a claim with a second source before one without), then as the
// record has them.
func (r *Record) Ledger() []Ranked {
	ledger := make([]Ranked, len(r.Claims))
	for i, c := range r.Claims {
		ledger[i].Claim = c
		ledger[i].Source, _ = r.Source(c.Source)
	}
	slices.SortStableFunc(ledger, func(a, b Ranked) int {
		return cmp.Or(
			cmp.Compare(place(Kinds(), a.Claim.Kind), place(Kinds(), b.Claim.Kind)),
			no(a.Source.Official)-no(b.Source.Official),
			cmp.Compare(place(accesses, a.Source.Access), place(accesses, b.Source.Access)),
			no(a.Claim.Second != "")-no(b.Claim.Second != ""),
		)
	})
	for i := range ledger {
		ledger[i].Rank = i + 1
	}
	return ledger
}

// Source finds a source of the record by its id.
func (r *Record) Source(id string) (Source, bool) {
	i := slices.IndexFunc(r.Sources, func(s Source) bool { return s.ID == id })
	if i < 0 {
		return Source{}, false
	}
	return r.Sources[i], true
}

// The words for how a source was read, the best first.
const (
	accessFull    = "full"
	accessExcerpt = "excerpt"
	accessSummary = "summary"
	accessNot     = "not-read"
)

var accesses = []string{accessFull, accessExcerpt, accessSummary, accessNot}

// read reports whether the source itself was read, in full or in part.
func (s Source) read() bool { return s.Access == accessFull || s.Access == accessExcerpt }

// place is where x is in list; what is not there comes last.
func place[T comparable](list []T, x T) int {
	if i := slices.Index(list, x); i >= 0 {
		return i
	}
	return len(list)
}

func no(b bool) int {
	if b {
		return 0
	}
	return 1
}

// Evidence says how well a record is carried, with all that its score is made
// of:
//
//	Score        = KindPoints + SourcePoints
//	KindPoints   = 70 × (10 × confirmed + 6 × reported + 4 × derived) / (10 × Counted), rounded
//	SourcePoints = 10 for each of Publishers, at most 30
//
// The weights are a convention, not a measurement: they put the kinds in their
// order. Illustrative claims are no evidence and count nowhere. A record
// without counted claims scores 0.
type Evidence struct {
	Score        int          `json:"score"` // 0 to 100
	Kinds        map[Kind]int `json:"kinds"` // claims of each kind
	Counted      int          `json:"counted"`
	Publishers   int          `json:"publishers"` // different ones whose own text was read, whole or in part
	KindPoints   int          `json:"kind_points"`
	SourcePoints int          `json:"source_points"`
}

// Weight is what a claim of the kind counts in a score, of 10.
func (k Kind) Weight() int {
	switch k {
	case Confirmed:
		return 10
	case Reported:
		return 6
	case Derived:
		return 4
	}
	return 0
}

// The most points of each part of a score.
const (
	MaxKindPoints   = 70
	MaxSourcePoints = 30
	eachPublisher   = 10
)

// Evidence is r's.
func (r *Record) Evidence() Evidence {
	e := Evidence{Kinds: map[Kind]int{}}
	sum := 0
	for _, c := range r.Claims {
		e.Kinds[c.Kind]++
		if c.Kind != Illustrative {
			e.Counted++
			sum += c.Kind.Weight()
		}
	}
	publishers := map[string]bool{}
	for _, s := range r.Sources {
		if s.read() {
			publishers[publisher(s)] = true
		}
	}
	e.Publishers = len(publishers)
	if e.Counted == 0 {
		return e
	}
	e.KindPoints = (2*MaxKindPoints*sum + 10*e.Counted) / (20 * e.Counted) // half up
	e.SourcePoints = min(eachPublisher*e.Publishers, MaxSourcePoints)
	e.Score = e.KindPoints + e.SourcePoints
	return e
}

// publisher is by whom two sources are told to be independent.
func publisher(s Source) string { return strings.ToLower(strings.TrimSpace(s.Publisher)) }
