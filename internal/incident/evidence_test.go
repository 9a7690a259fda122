package incident

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawn is a record as far as evidence goes.
func drawn(t *rapid.T) *Record {
	r := &Record{}
	for i := range rapid.IntRange(1, 5).Draw(t, "sources") {
		r.Sources = append(r.Sources, Source{
			ID:        fmt.Sprintf("s%d", i+1),
			Publisher: rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(t, "publisher"),
			Access:    rapid.SampledFrom(accesses).Draw(t, "access"),
			Official:  rapid.Bool().Draw(t, "official"),
		})
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "claims") {
		c := Claim{ID: fmt.Sprintf("c%d", i+1), Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Source: rapid.SampledFrom(r.Sources).Draw(t, "source").ID}
		if rapid.Bool().Draw(t, "seconded") {
			c.Second = rapid.SampledFrom(r.Sources).Draw(t, "second").ID
		}
		r.Claims = append(r.Claims, c)
	}
	return r
}

func TestEvidenceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		e := r.Evidence()
		if e.Score != e.KindPoints+e.SourcePoints || e.Score < 0 || e.Score > 100 || e.KindPoints > MaxKindPoints || e.SourcePoints > MaxSourcePoints {
			t.Fatalf("%+v", e)
		}
		more := *r
		more.Sources = append(slices.Clone(r.Sources), Source{ID: "s9", Publisher: "E", Access: accessFull})
		if got := more.Evidence().Score; got < e.Score {
			t.Fatalf("another publisher: %d after %d", got, e.Score)
		}
		more = *r
		more.Claims = append(slices.Clone(r.Claims), Claim{ID: "c99", Kind: Illustrative, Source: "s1"})
		if got := more.Evidence().Score; got != e.Score {
			t.Fatalf("an illustrative claim: %d after %d", got, e.Score)
		}
		for i, c := range r.Claims {
			if at := place(Kinds(), c.Kind); at > 0 && c.Kind != Illustrative {
				more.Claims = slices.Clone(r.Claims)
				more.Claims[i].Kind = Kinds()[at-1]
				if got := more.Evidence().Score; got < e.Score {
					t.Fatalf("%s better as %s: %d after %d", c.ID, more.Claims[i].Kind, got, e.Score)
				}
			}
		}
	})
}

func TestEvidenceExamples(t *testing.T) {
	own := Source{ID: "s1", Publisher: "Operator", Access: accessFull, Official: true}
	for _, c := range []struct {
		name  string
		kinds []Kind
		more  []Source
		want  int
	}{
		{"nothing", nil, nil, 0},
		{"only assumptions", []Kind{Illustrative}, nil, 0},
		{"the operator's own record", []Kind{Confirmed, Confirmed}, nil, 80},
		{"one report", []Kind{Reported}, nil, 52},
		{"a mixture", []Kind{Confirmed, Reported, Derived, Unconfirmed, Illustrative}, nil, 45},
		{"the same publisher in other letters", []Kind{Confirmed}, []Source{{ID: "s2", Publisher: "operator ", Access: accessFull}}, 80},
		{"a source that nobody read", []Kind{Confirmed}, []Source{{ID: "s2", Publisher: "B", Access: accessNot}}, 80},
		{"three publishers", []Kind{Confirmed}, []Source{{ID: "s2", Publisher: "B", Access: accessFull}, {ID: "s3", Publisher: "C", Access: accessExcerpt}}, 100},
	} {
		r := &Record{Sources: append([]Source{own}, c.more...)}
		for _, k := range c.kinds {
			r.Claims = append(r.Claims, Claim{Kind: k, Source: "s1"})
		}
		if got := r.Evidence().Score; got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestLedgerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		ledger := r.Ledger()
		var ids []string
		again := &Record{Sources: r.Sources}
		for i, x := range ledger {
			if x.Rank != i+1 || x.Source.ID != x.Claim.Source {
				t.Fatalf("%+v", x)
			}
			if i > 0 && place(Kinds(), ledger[i-1].Claim.Kind) > place(Kinds(), x.Claim.Kind) {
				t.Fatalf("%s before %s", ledger[i-1].Claim.Kind, x.Claim.Kind)
			}
			ids = append(ids, x.Claim.ID)
			again.Claims = append(again.Claims, x.Claim)
		}
		slices.Sort(ids)
		if len(ids) != len(r.Claims) || len(slices.Compact(ids)) != len(r.Claims) {
			t.Fatalf("not a permutation: %v", ids)
		}
		if !reflect.DeepEqual(again.Ledger(), ledger) {
			t.Fatal("what is in order does not stay in order")
		}
	})
}

func TestLedgerOrder(t *testing.T) {
	r := &Record{
		Sources: []Source{{ID: "s1", Publisher: "A", Access: accessExcerpt}, {ID: "s2", Publisher: "B", Access: accessFull}, {ID: "s3", Publisher: "C", Access: accessExcerpt, Official: true}},
		Claims: []Claim{
			{ID: "c1", Kind: Derived, Source: "s3"}, {ID: "c2", Kind: Reported, Source: "s1"}, {ID: "c3", Kind: Reported, Source: "s1", Second: "s2"},
			{ID: "c4", Kind: Reported, Source: "s2"}, {ID: "c5", Kind: Reported, Source: "s1"}, {ID: "c6", Kind: Confirmed, Source: "s3"}, {ID: "c7", Kind: Reported, Source: "s3"},
		},
	}
	var got []string
	for _, x := range r.Ledger() {
		got = append(got, x.Claim.ID)
	}
	if want := []string{"c6", "c7", "c4", "c3", "c2", "c5", "c1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
