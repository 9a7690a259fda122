package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/hourthree/hourthree/internal/incident"
)

// A closed index leaves nothing behind, and bleve's workers not even an open one.
func TestMain(m *testing.M) {
	code := m.Run()
	err := goleak.Find(goleak.IgnoreAnyFunction("github.com/blevesearch/bleve/v2/index/scorch.(*Scorch).introducerLoop"))
	if x, failed := shared(); failed == nil {
		err = errors.Join(err, x.Close(), goleak.Find())
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestClosed(t *testing.T) {
	x, err := fresh()
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := x.Find(context.Background(), Query{Text: "dns"}); err == nil {
		t.Error("a closed index finds something")
	}
}

func find(t *testing.T, x *Index, q Query) *Result {
	t.Helper()
	res, err := x.Find(context.Background(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return res
}

func ids(res *Result) []string {
	var list []string
	for _, h := range res.Hits {
		list = append(list, h.Record.ID)
	}
	return list
}

func TestFind(t *testing.T) {
	x := open(t)
	for _, tc := range []struct{ name, text, first string }{
		{"an id", "HT-0007", "HT-0007"},
		{"an id in small letters among words", "what was ht-0046 about", "HT-0046"},
		{"an id before what matches better", "litellm endless loop HT-0007", "HT-0007"},
		{"a typo in a long word", "kubernets telemtry agents overload control planes", "HT-0007"},
		{"nothing but a typo", "Kinnesis", "HT-0062"},
		{"inflected", "cancelling redis calls handed users data to others", "HT-0009"},
		{"a phrase", `"reconnect herd"`, "HT-0032"},
		{"another name of a word", "k8s api server flooded by telemetry", "HT-0007"},
		{"a service", "Kinesis threads", "HT-0062"},
	} {
		if got := ids(find(t, x, Query{Text: tc.text})); len(got) == 0 || got[0] != tc.first {
			t.Errorf("%s: %q finds %v first, want %s", tc.name, tc.text, got, tc.first)
		}
	}
}

func TestPhraseIsRequired(t *testing.T) {
	x := open(t)
	loose, strict := find(t, x, Query{Text: "retry storm", Limit: MaxLimit}), find(t, x, Query{Text: `"retry storm"`, Limit: MaxLimit})
	if strict.Total == 0 || strict.Total >= loose.Total {
		t.Errorf("%d with the phrase, %d with its words", strict.Total, loose.Total)
	}
	if res := find(t, x, Query{Text: `"storm retry of zebras"`}); res.Total != 0 {
		t.Errorf("a phrase that is nowhere finds %v", ids(res))
	}
}

// What is typed is words, whatever a query language makes of it.
func TestNoQuerySyntax(t *testing.T) {
	x := open(t)
	want := ids(find(t, x, Query{Text: "title retry storm"}))
	for _, text := range []string{"title:retry storm", "+title -retry storm", "title* retry~ storm^", "(title) [retry] {storm}", "title/retry/storm", "title AND retry OR storm", `title \ retry & storm`} {
		got := ids(find(t, x, Query{Text: text}))
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if res := find(t, x, Query{Text: "* ? ~ : the of"}); res.Total != 0 {
		t.Errorf("no word at all finds %d", res.Total)
	}
}

func TestPagesAreStable(t *testing.T) {
	x := open(t)
	other, err := fresh()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	q := Query{Text: "outage of a region with retries", Limit: MaxLimit}
	all := find(t, x, q)
	if again := find(t, other, q); !slices.Equal(ids(all), ids(again)) {
		t.Error("another index has another order")
	}
	if len(all.Hits) < 40 || all.Total < len(all.Hits) {
		t.Fatalf("%d of %d hits", len(all.Hits), all.Total)
	}
	var paged []string
	for q.Limit = 7; ; {
		res := find(t, x, q)
		if res.Total != all.Total {
			t.Errorf("total %d on a page, %d on all", res.Total, all.Total)
		}
		paged = append(paged, ids(res)...)
		if q.Cursor = res.Next; q.Cursor == "" {
			break
		}
	}
	if len(paged) != all.Total || !slices.Equal(paged[:len(all.Hits)], ids(all)) {
		t.Errorf("pages: %v\nat once: %v", paged, ids(all))
	}
	for i := 1; i < len(all.Hits); i++ {
		a, b := all.Hits[i-1], all.Hits[i]
		if a.Score < b.Score || a.Score == b.Score && a.Record.ID > b.Record.ID {
			t.Errorf("%s (%v) is before %s (%v)", a.Record.ID, a.Score, b.Record.ID, b.Score)
		}
	}
}

func TestFilter(t *testing.T) {
	x := open(t)
	res := find(t, x, Query{Text: "memory", Limit: MaxLimit, Filter: incident.Filter{Words: map[incident.Facet][]string{incident.Cause: {"oom"}}}})
	if res.Total == 0 {
		t.Fatal("nothing found")
	}
	for _, h := range res.Hits {
		if !slices.Contains(h.Record.Tags.Causes, "oom") {
			t.Errorf("%s has not the cause", h.Record.ID)
		}
	}
	_, err := x.Find(context.Background(), Query{Text: "memory", Filter: incident.Filter{Words: map[incident.Facet][]string{incident.Cause: {"oomm"}}}})
	var unknown *incident.UnknownWord
	if !errors.As(err, &unknown) || !slices.Contains(unknown.Near, "oom") {
		t.Errorf("unknown word: %v", err)
	}
}

func TestBadQueries(t *testing.T) {
	x := open(t)
	good := Query{Text: "outage", Limit: 1}
	next := find(t, x, good).Next
	for name, tc := range map[string]struct {
		q     Query
		field string
	}{
		"empty":            {Query{Text: " \t"}, "text"},
		"too long":         {Query{Text: strings.Repeat("é", MaxText+1)}, "text"},
		"not UTF-8":        {Query{Text: "a\xff"}, "text"},
		"limit":            {Query{Text: "a", Limit: MaxLimit + 1}, "limit"},
		"negative":         {Query{Text: "a", Limit: -1}, "limit"},
		"cursor":           {Query{Text: "a", Cursor: "!"}, "cursor"},
		"short cursor":     {Query{Text: "a", Cursor: "AAAA"}, "cursor"},
		"another's":        {Query{Text: "outages", Cursor: next}, "cursor"},
		"another filter's": {Query{Text: "outage", Cursor: next, Filter: incident.Filter{Provider: "x"}}, "cursor"},
	} {
		_, err := x.Find(context.Background(), tc.q)
		var bad *BadQuery
		if !errors.As(err, &bad) || bad.Field != tc.field || bad.Message == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := x.Find(context.Background(), Query{Text: strings.Repeat("é", MaxText)}); err != nil {
		t.Errorf("the longest text: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.Find(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

func TestFragments(t *testing.T) {
	x := open(t)
	res := find(t, x, Query{Text: "retries without backoff overload the database", Limit: MaxLimit})
	for _, h := range res.Hits {
		f := h.Fragment
		if f.Text == "" || len(f.Text) > longestFragment+20 || !utf8.ValidString(f.Text) || f.Field == "" || len(h.Fields) == 0 {
			t.Errorf("%s: %+v %v", h.Record.ID, f, h.Fields)
		}
		last := 0
		for _, m := range f.Marks {
			if m[0] < last || m[1] <= m[0] || m[1] > len(f.Text) || strings.ContainsAny(f.Text[m[0]:m[1]], " .,") {
				t.Errorf("%s: marks %v of %q", h.Record.ID, f.Marks, f.Text)
				break
			}
			last = m[1]
		}
	}
	if first := res.Hits[0]; len(first.Fragment.Marks) == 0 {
		t.Errorf("nothing is marked in %q", first.Fragment.Text)
	}
}

// TestFragmentsOfClaims: what is shown of a claim has its kind, and what is of
// no claim has none.
func TestFragmentsOfClaims(t *testing.T) {
	x := open(t)
	for text, want := range map[string]incident.Kind{
		"HT-0002 five given calls in a row fail independently with probability":     incident.Illustrative,
		"HT-0002 separate networking incident across several regions the next day":  incident.Unconfirmed,
		"HT-0007 telemetry service made every node run calls whose cost grows with": "",
	} {
		f := find(t, x, Query{Text: text}).Hits[0].Fragment
		if f.Kind != want || (f.Field == fieldClaims) != (want != "") {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

func TestConcurrentFirstUse(t *testing.T) {
	x, err := fresh()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := x.Find(context.Background(), Query{Text: "dns"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// FuzzFind: no text breaks a search, and what is shown of the result is whole.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"retry storm", `"a" "b`, "HT-0007 ht-9999", "\x00", "é\u0301 ￿ 日本語", `title:x*~^"`, strings.Repeat("a ", 250)} {
		f.Add(s)
	}
	x := open(f)
	f.Fuzz(func(t *testing.T, text string) {
		res, err := x.Find(context.Background(), Query{Text: text})
		if err != nil {
			var bad *BadQuery
			if !errors.As(err, &bad) {
				t.Fatal(err)
			}
			return
		}
		for _, h := range res.Hits {
			for _, m := range h.Fragment.Marks {
				_ = h.Fragment.Text[m[0]:m[1]]
			}
			if !utf8.ValidString(h.Fragment.Text) {
				t.Errorf("%q", h.Fragment.Text)
			}
		}
	})
}

func BenchmarkOpenAndFirst(b *testing.B) {
	l, err := incident.Open()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x, err := Open(l)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := x.Find(context.Background(), Query{Text: "retry storm"}); err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
}

func BenchmarkFind(b *testing.B) {
	x := open(b)
	for b.Loop() {
		if _, err := x.Find(context.Background(), Query{Text: "half of the gpt calls to swedencentral error out for hours, by the third hour our threads and job queue are full"}); err != nil {
			b.Fatal(err)
		}
	}
}
