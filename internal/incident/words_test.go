package incident

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWord(t *testing.T) {
	l := opened(t)
	for _, c := range []struct{ name, want string }{
		{"retry-amplification", "cause/retry-amplification"},
		{"Retry Storm", "cause/retry-amplification"},
		{"OOMKilled", "symptom/oom-killed condition/memory-limit-without-headroom"},
		{"429", "symptom/throttled-429"},
		{"rate limited", "symptom/throttled-429"},
		{"thundering_herd", "cause/thundering-herd"},
		{"dns", "cause/dns topic/dns component/dns"},
		{"no such word", ""},
		{"", ""},
	} {
		var got []string
		for _, f := range l.Word(c.name) {
			got = append(got, string(f.Facet)+"/"+f.Slug)
			if f.Records == 0 || f.Word.Meaning == "" {
				t.Errorf("%+v", f)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestUnknownWords(t *testing.T) {
	l := opened(t)
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{Words: map[Facet][]string{Cause: {"retry-amplificaton"}}}, `no cause "retry-amplificaton"; did you mean retry-amplification?`},
		{Filter{Words: map[Facet][]string{Symptom: {"OOMKilled"}}}, `no symptom "OOMKilled"; did you mean oom-killed?`},
		{Filter{Words: map[Facet][]string{Topic: {"xylophone-quartet"}}}, `no topic "xylophone-quartet"; see the vocabulary`},
		{Filter{Words: map[Facet][]string{"causes": {"oom"}}}, `no facet "causes"; did you mean cause?`},
		{Filter{Check: "RTY-0001"}, `no check "RTY-0001"; did you mean RTY-001`},
		{Filter{Drill: "azure-2026-05-30"}, `no drill "azure-2026-05-30"; did you mean azure-2026-05-29`},
		{Filter{Since: "last year"}, `since "last year" cannot be used; write it as 2026-05-29, 2026-05 or 2026`},
		{Filter{Until: "2026-13"}, `until "2026-13" cannot be used`},
	} {
		_, err := l.List(c.f)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.f, err, c.want)
		}
	}
	var unknown *UnknownWord
	if _, err := l.Topic(Cause, "retry-amp"); !errors.As(err, &unknown) || unknown.Facet != Cause || !slices.Contains(unknown.Near, "retry-amplification") {
		t.Errorf("%v", err)
	}
}

func TestList(t *testing.T) {
	l := opened(t)
	list := func(f Filter) []string {
		t.Helper()
		rs, err := l.List(f)
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, r := range rs {
			ids = append(ids, r.ID)
		}
		return ids
	}
	if got := list(Filter{}); len(got) != len(l.All()) {
		t.Errorf("the zero filter selects %d", len(got))
	}
	either := list(Filter{Words: map[Facet][]string{Cause: {"oom", "dns"}}})
	both := list(Filter{Words: map[Facet][]string{Cause: {"oom"}, Symptom: {"oom-killed"}}})
	oom, dns := list(Filter{Words: map[Facet][]string{Cause: {"oom"}}}), list(Filter{Words: map[Facet][]string{Cause: {"dns"}}})
	for _, id := range either {
		if !slices.Contains(oom, id) && !slices.Contains(dns, id) {
			t.Errorf("%s has neither word", id)
		}
	}
	if len(both) == 0 || len(both) > len(oom) || len(either) < len(oom) {
		t.Errorf("oom %d, with oom-killed %d, or dns %d", len(oom), len(both), len(either))
	}
	if got := list(Filter{Drill: "silence"}); !slices.Equal(got, []string{"HT-0048"}) {
		t.Errorf("drill: %v", got)
	}
	if got := list(Filter{Provider: "azure OPENAI", Since: "2026-05", Until: "2026-05"}); !slices.Equal(got, []string{"HT-0001"}) {
		t.Errorf("azure in May: %v", got)
	}
	if got := list(Filter{Check: "RTY-001"}); !slices.Contains(got, "HT-0001") {
		t.Errorf("check: %v", got)
	}
	if text, _ := json.Marshal(must(l.List(Filter{Provider: "nobody"}))); string(text) != "[]" {
		t.Errorf("nothing is %s", text)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// TestTopics: every word has its page, and what is on it is true.
func TestTopics(t *testing.T) {
	l := opened(t)
	for _, f := range Facets() {
		for s, w := range l.Vocabulary().Words(f) {
			got, err := l.Topic(f, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range got.Records {
				if !slices.Contains(r.Words(f), s) {
					t.Errorf("%s is not under %s", r.ID, s)
				}
			}
			for _, c := range append(slices.Clone(got.Together), got.Conditions...) {
				if c.Facet == f && c.Slug == s || c.Records == 0 || c.Records > len(got.Records) {
					t.Errorf("%s: %+v of %d", s, c, len(got.Records))
				}
			}
			if f == Needs && !slices.Equal(got.Checks, slices.Concat([]string{}, w.Checks)) {
				t.Errorf("%s: checks %v, want %v", s, got.Checks, w.Checks)
			}
			if other, err := l.Topic(f, strings.ToUpper(w.Also[0])); err != nil || other.Slug != s {
				t.Errorf("%s by %s: %v", s, w.Also[0], err)
			}
		}
	}
}

func TestStats(t *testing.T) {
	l := opened(t)
	s := l.Stats()
	years, kinds := s.Undated, 0
	for _, y := range s.Years {
		years += y.Records
	}
	for _, n := range s.Kinds {
		kinds += n
	}
	if s.Records != len(l.All()) || years != s.Records || kinds != s.Claims || s.Publishers > s.Sources || s.WithDrills == 0 {
		t.Errorf("%+v", s)
	}
	if s.Detect.Records == 0 || s.Resolve.Records < s.Detect.Records || s.Resolve.Minutes < s.Detect.Minutes {
		t.Errorf("detect %+v, resolve %+v", s.Detect, s.Resolve)
	}
	for list, want := range map[*[]int]Median{
		{}: {}, {7}: {7, 1}, {9, 1}: {5, 2}, {3, 1, 2}: {2, 3}, {4, 1, 2, 3}: {2.5, 4},
	} {
		if got := median(*list); got != want {
			t.Errorf("%v: %+v", *list, got)
		}
	}
}

// TestPageProperties: the pages are the list, whole and in order, and records
// that come between two pages make none of the others come twice or not at all.
func TestPageProperties(t *testing.T) {
	l := opened(t)
	rapid.Check(t, func(t *rapid.T) {
		all := l.All()
		var before []*Record
		for _, r := range all {
			if rapid.IntRange(0, 3).Draw(t, "there") > 0 {
				before = append(before, r)
			}
		}
		limit, records, cursor := rapid.IntRange(1, MaxPage).Draw(t, "limit"), before, ""
		var got []*Record
		for {
			page, next, err := Page(records, cursor, limit)
			if err != nil || len(page) > limit {
				t.Fatal(len(page), err)
			}
			got = append(got, page...)
			if cursor = next; next == "" {
				break
			}
			records = all // more have come
		}
		if !slices.IsSortedFunc(got, order) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatal("not in order, each once")
		}
		for _, r := range before {
			if !slices.Contains(got, r) {
				t.Fatalf("%s is on no page", r.ID)
			}
		}
	})
}

func TestPageRefuses(t *testing.T) {
	l := opened(t)
	for _, c := range []struct {
		cursor string
		limit  int
		want   string
	}{
		{"", -1, `limit "-1" cannot be used; from 1 to 100`},
		{"", 101, `limit "101"`},
		{"!", 1, `cursor "!" cannot be used; use next of the page before`},
		{base64.RawURLEncoding.EncodeToString([]byte("2026-05-29 x")), 1, "cursor"},
		{base64.RawURLEncoding.EncodeToString([]byte("yesterday HT-0001")), 1, "cursor"},
	} {
		_, _, err := Page(l.All(), c.cursor, c.limit)
		var bad *BadValue
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	page, _, err := Page(l.All(), "", 0)
	if err != nil || len(page) != DefaultPage || !reflect.DeepEqual(page, l.All()[:DefaultPage]) {
		t.Errorf("%d records, %v", len(page), err)
	}
}

// A record whose day or month is not known may have begun on any of them.
func TestCoarseDates(t *testing.T) {
	var l Library
	for _, c := range []struct {
		date, since, until string
		want               bool
	}{
		{"2024-05", "2024-05-20", "2024-05-21", true},
		{"2024", "2024-05-20", "2024-05-21", true},
		{"2024-05-19", "2024-05-20", "", false},
		{"2024-05-20", "2024-05-20", "2024-05-20", true},
		{"2024-05-22", "", "2024-05-21", false},
		{"2024-04", "2024-05-20", "", false},
		{"2024-06", "", "2024-05", false},
		{"2024-05-31", "2024-05", "2024-05", true},
		{"", "2024", "", false},
		{"", "", "2024", false},
	} {
		r := &Record{Date: c.date}
		if got := l.selects(Filter{Since: c.since, Until: c.until}, r); got != c.want {
			t.Errorf("%q since %q until %q: %v", c.date, c.since, c.until, got)
		}
	}
}
