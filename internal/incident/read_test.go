package incident

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"
)

// page1 is a record in which nothing is wrong.
const page1 = `id: ACME-0001
title: The gateway runs out of memory
provider: ACME
service: Gateway
date: 2026-05-29
start: 2026-05-29T09:20Z
end: 2026-05-29T10:20Z
domain: ai-gateway
tags:
  causes: [oom]
  symptoms: [oom-killed]
  topics: [memory-bounding]
summary: Bodies filled the memory.
timeline:
  - at: 2026-05-29T09:20Z
    what: The impact begins.
  - at: 2026-05-29
    what: It ends on the same day.
time_to_resolve: 60
time_basis: from start to end
figures:
  - name: peak_memory
    value: 1.5
    unit: GiB
    claim: c2
claims:
  - id: c1
    text: It ran out of memory.
    kind: confirmed
    source: s1
  - id: c2
    text: It held 1.5 GiB.
    kind: reported
    source: s2
sources:
  - id: s1
    title: Status page
    url: https://status.example.com/1
    publisher: ACME
    access: full
    official: true
  - id: s2
    title: A blog
    publisher: Somebody
    access: excerpt
related: [HT-0001]
conditions:
  - slug: unbounded-in-flight
    text: No bound on bodies
`

// openFew opens folders beside a library of one record, which is quicker.
func openFew(t *testing.T, folders ...fs.FS) (*Library, error) {
	t.Helper()
	words, err := os.ReadFile("data/" + vocabularyFile)
	if err != nil {
		t.Fatal(err)
	}
	one := strings.NewReplacer("ACME-0001", "HT-0001", "related: [HT-0001]\n", "").Replace(page1)
	return read(folder("HT-0001.yaml", one, vocabularyFile, string(words)), folders)
}

func folder(files ...string) fstest.MapFS {
	f := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		f[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return f
}

func TestFolderAdds(t *testing.T) {
	words := "conditions:\n  no-cap:\n    title: No cap\n    meaning: Bodies have no cap.\n    fails: there is none\n    checks: [ACME-1]\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"ACME-0001.yaml": strings.Replace(page1, "slug: unbounded-in-flight", "slug: no-cap", 1), "vocabulary.yaml": words, "notes.txt": "ignored", "..data/ACME-0002.yaml": "ignored"} {
		_ = os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	r, ok := l.Get("ACME-0001")
	if !ok || r.Origin != filepath.Join(dir, "ACME-0001.yaml") || len(l.All()) != len(opened(t).All())+1 {
		t.Fatalf("%+v", r)
	}
	if got := l.Citing("ACME-1", ""); len(got) != 1 || got[0] != r {
		t.Errorf("a check of one's own: %v", got)
	}
	if o, _ := l.Get("HT-0001"); !strings.Contains(strings.Join(o.Related, " "), "ACME-0001") {
		t.Error("the relation is not mutual")
	}
}

func TestFolderReplaces(t *testing.T) {
	mine := strings.ReplaceAll(strings.Replace(page1, "related: [HT-0001]", "related: [HT-0002]", 1), "ACME-0001", "HT-0001")
	l, err := Open(folder("sub/HT-0001.yml", mine))
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := l.Get("HT-0001"); r.Provider != "ACME" || len(l.All()) != len(opened(t).All()) {
		t.Errorf("%+v", r)
	}
	last := strings.Replace(mine, "provider: ACME", "provider: Last", 1)
	l, err = Open(folder("HT-0001.yaml", mine), folder("HT-0001.yaml", last))
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := l.Get("HT-0001"); r.Provider != "Last" {
		t.Error("the last folder does not win")
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown key", "provider: ACME", "provder: ACME", `ACME-0001.yaml:3:1: unknown key "provder"; did you mean provider?`},
		{"unknown key inside", "    what: The", "    waht: The", `:16:5: timeline[0]: unknown key "waht"; did you mean what?`},
		{"missing", "provider: ACME\n", "", `ACME-0001.yaml:1:1: provider: is missing`},
		{"twice", "service: Gateway", "provider: ACME", `:4:1: the key provider is there twice`},
		{"no value", "service: Gateway", "service:", `:4:9: service: has no value; give it one`},
		{"long title", "The gateway runs", strings.Repeat("x", 121), `:2:8: title: has 135 characters, 120 are allowed`},
		{"two lines", "title: The gateway", "title: |-\n  The\n  gateway", `title: has more than one line`},
		{"long summary", "Bodies filled", strings.Repeat("x", 1200), `summary: has 1212 characters, 1200 are allowed`},
		{"control", "title: The", `title: "\e[31mThe`, "this is not YAML"},
		{"control in quotes", "service: Gateway", `service: "\e[31m"`, `service: has control characters`},
		{"another direction", "provider: ACME", `provider: "live \u202elive"`, `provider: has control characters, or some that turn the direction`},
		{"bad id", "id: ACME-0001", "id: acme-1", `:1:5: id: "acme-1" is not an id; two to eight capital letters`},
		{"other file", "id: ACME-0001", "id: ACME-0002", `:1:5: id: ACME-0002 is in a file named ACME-0001.yaml; name the file ACME-0002.yaml`},
		{"bad date", "date: 2026-05-29", "date: 29 May", `date: "29 May" is not a date; write it as`},
		{"other day", "date: 2026-05-29", "date: 2026-05-30", `date: "2026-05-30" is not the day of the start`},
		{"bad start", "start: 2026-05-29T09:20Z", "start: 09:20", `start: "09:20" is not a time; write it in UTC`},
		{"end first", "end: 2026-05-29T10:20Z", "end: 2026-05-29T09:10Z", `end: 2026-05-29T09:10Z is before the start`},
		{"timeline", "at: 2026-05-29\n", "at: 2026-05-28\n", `:17:9: timeline[1].at: 2026-05-28 is before the entry above it, 2026-05-29T09:20Z`},
		{"too long", "time_to_resolve: 60", "time_to_resolve: 61", `time_to_resolve: 61 minutes are more than the 60 from start to end`},
		{"late detection", "time_to_resolve: 60", "time_to_resolve: 60\ntime_to_detect: 61", `time_to_detect: 61 minutes are more than the 60 to resolve`},
		{"negative", "time_to_resolve: 60", "time_to_resolve: -1", `time_to_resolve: is negative`},
		{"no number", "time_to_resolve: 60", "time_to_resolve: 1h", `time_to_resolve: "1h" is not a number`},
		{"no basis", "time_basis: from start to end\n", "", `time_basis: is missing`},
		{"unknown word", "causes: [oom]", "causes: [oomm]", `:10:12: tags.causes[0]: "oomm" is not a word of the vocabulary; did you mean oom`},
		{"other name", "symptoms: [oom-killed]", "symptoms: [OOMKilled]", `"OOMKilled" is not a word of the vocabulary; did you mean oom-killed?`},
		{"word twice", "causes: [oom]", "causes: [oom, oom]", `tags.causes[1]: oom is there twice`},
		{"no words", "causes: [oom]", "causes: []", `tags.causes: is empty`},
		{"unknown domain", "domain: ai-gateway", "domain: gateway", `domain: "gateway" is not a word`},
		{"kind", "kind: confirmed", "kind: sure", `:29:11: claims[0].kind: "sure" is not a word of the vocabulary; known are confirmed`},
		{"source", "    source: s2", "    source: s3", `claims[1].source: there is no source "s3"`},
		{"second", "    source: s1", "    source: s1\n    second: s1", `claims[0].second: is from the same publisher as s1`},
		{"not the operator's", "    source: s1", "    source: s2", `claims[0].kind: is confirmed, and s2 is not the operator's own record`},
		{"derived", "kind: reported", "kind: derived", `claims[1].basis: is missing`},
		{"claim numbers", "id: c2", "id: c3", `claims[1].id: "c3" is not in its place; number them in order: this one is c2`},
		{"unused source", "    source: s2", "    source: s1", `sources[1]: no claim is from this source`},
		{"address", "https://status.example.com/1", "javascript:alert(1)", `sources[0].url: "javascript:alert(1)" is not an address`},
		{"access", "access: excerpt", "access: some", `sources[1].access: "some" is not a word`},
		{"figure", "claim: c2", "claim: c9", `figures[0].claim: there is no claim "c9"`},
		{"figure's name", "name: peak_memory", "name: Peak memory", `figures[0].name: "Peak memory" is not a name`},
		{"figure's value", "value: 1.5", "value: .nan", `figures[0].value: ".nan" is not a number`},
		{"itself", "related: [HT-0001]", "related: [ACME-0001]", `related[0]: the record is related to itself`},
		{"unknown record", "related: [HT-0001]", "related: [HT-0011]", `related[0]: there is no record "HT-0011"; did you mean HT-0001`},
		{"condition", "slug: unbounded-in-flight", "slug: unbound-in-flight", `conditions[0].slug: "unbound-in-flight" is not a word of the vocabulary; did you mean unbounded-in-flight?`},
		{"drill", "related:", "drills: [A B]\nrelated:", `drills[0]: "A B" is not the name of a drill`},
		{"anchor", "service: Gateway", "service: &a Gateway", `service: is an anchor or an alias`},
		{"alias", "provider: ACME\nservice: Gateway", "provider: &a ACME\nservice: *a", `:4:10: service: is an anchor or an alias`},
		{"merge", "related:", "<<: {id: x}\nrelated:", `unknown key "<<"`},
		{"tag", "service: Gateway", "service: !!str Gateway", `service: has a tag; remove`},
		{"not a list", "related: [HT-0001]", "related: HT-0001", `related: must be a list`},
		{"not a value", "service: Gateway", "service: [Gateway]", `service: must be a single value`},
		{"not keys", "tags:\n  causes: [oom]\n  symptoms: [oom-killed]\n  topics: [memory-bounding]", "tags: oom", `tags: must be keys with their values`},
		{"yes", "official: true", "official: yes", `official: "yes" is neither true nor false`},
		{"not YAML", "service: Gateway", "service: 'Gateway", "this is not YAML"},
		{"second document", "related:", "---\nrelated:", "second document"},
		{"too large", "Bodies filled", strings.Repeat("x", maxRecord), "ACME-0001.yaml: is longer than 64 KiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(page1, c.old, c.new, 1)
			if text == page1 {
				t.Fatal("nothing was changed")
			}
			_, err := openFew(t, folder("ACME-0001.yaml", text))
			var faults Faults
			if !errors.As(err, &faults) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := openFew(t, folder("ACME-0001.yaml", page1)); err != nil {
		t.Error(err)
	}
}

// TestAllFaultsAtOnce: one run says everything about all files, in order.
func TestAllFaultsAtOnce(t *testing.T) {
	bad := strings.NewReplacer("causes: [oom]", "causes: [oomm]", "provider: ACME\n", "", "kind: reported", "kind: hearsay").Replace(page1)
	_, err := Open(
		folder("ACME-0001.yaml", bad, "ACME-0002.yaml", "", "ACME-0003.yaml", "# nothing"),
		folder("HT-9999.yaml", strings.Replace(page1, "ACME-0001", "HT-9999", 1), "vocabulary.yaml", "causes:\n  oom:\n    meaning: Mine.\n  Bad Word:\n    meaning: x\n  mine:\n    meaning: x\n    also: [retry storm]\nkinds:\n  sure:\n    meaning: x\n"),
	)
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ACME-0001.yaml:1:1: provider: is missing", "tags.causes[0]", `"hearsay"`, "ACME-0002.yaml: the file is empty", "ACME-0003.yaml: the file is empty",
		"HT-9999.yaml:1:5: id: there is no HT-9999 to replace; records of your own have another prefix", "vocabulary.yaml:2:3: causes.oom: the word is there already", `"Bad Word" is not a word`, `causes.mine: "retry storm" is also a name for retry-amplification`, "kinds.sure: there are no others in kinds",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s", want)
		}
	}
	for i := 1; i < len(faults); i++ {
		if a, b := faults[i-1], faults[i]; a.File > b.File || a.File == b.File && a.Line > b.Line {
			t.Errorf("%v before %v", a, b)
		}
	}
}

func TestBounds(t *testing.T) {
	many := fstest.MapFS{}
	for i := range maxFiles + 1 {
		many[fmt.Sprintf("x%04d.yaml", i)] = &fstest.MapFile{}
	}
	if _, err := Open(many); err == nil || !strings.Contains(err.Error(), "has more than 5000 files") {
		t.Errorf("got %.200v", err)
	}
	_, err := Open(folder("ACME-0001.yaml", "tags:\n"+strings.Repeat("  - x\n", 3)+strings.Repeat("k: 1\n", 500)))
	var faults Faults
	if !errors.As(err, &faults) || len(faults) > mostFaults+1 || !strings.Contains(err.Error(), "more faults are not shown") {
		t.Errorf("%d faults", len(faults))
	}
	if _, err := Open(os.DirFS(filepath.Join(t.TempDir(), "none"))); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(fs.FS(folder("a/ACME-0001.yaml", page1, "b/ACME-0001.yaml", page1))); err == nil || !strings.Contains(err.Error(), "id: ACME-0001 is also in a/ACME-0001.yaml") {
		t.Errorf("got %v", err)
	}
}

// TestFaultsAreSaidOnce: of a file that is no YAML nothing is missing, and what
// is wrong comes in the same order each time.
func TestFaultsAreSaidOnce(t *testing.T) {
	for _, text := range []string{"", "id: [", strings.Repeat("[", 20_000), "id: ACME-0001\n---\nid: ACME-0001\n"} {
		_, err := Open(folder("ACME-0001.yaml", text))
		var faults Faults
		if !errors.As(err, &faults) || len(faults) != 1 {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	first := ""
	for range 20 {
		_, err := Open(folder("ACME-0001.yaml", "id: ACME-0001\n"))
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Fatalf("%v\nafter\n%s", err, first)
		}
	}
}

func TestScaffold(t *testing.T) {
	text := string(Scaffold("ACME-0007", `It said "no"`+"\n", time.Date(2026, 5, 29, 23, 0, 0, 0, time.UTC)))
	_, err := Open(folder("ACME-0007.yaml", text))
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	var open []string
	for _, f := range faults {
		open = append(open, f.Path)
	}
	if want := "provider service domain tags.causes tags.symptoms tags.topics summary claims[0].text sources[0].title sources[0].publisher"; strings.Join(open, " ") != want {
		t.Errorf("to fill in: %v", faults)
	}
	for _, r := range []string{"provider:", "service:", "title:", "publisher:", "text:", "summary:"} {
		text = strings.Replace(text, r+" #", r+" Some #", 1)
	}
	text = strings.NewReplacer("domain: #", "domain: saas #", "causes: []", "causes: [dns]", "symptoms: []", "symptoms: [total-outage]", "topics: []", "topics: [dns]", "    title: #", "    title: Some #").Replace(text)
	if _, err := Open(folder("ACME-0007.yaml", text)); err != nil {
		t.Errorf("filled in: %v", err)
	}
	all := strings.NewReplacer("# start:", "start:", "# end:", "end:", "# regions", "regions", "  # components", "  components", "# time", "time", "#   - ", "  - ", "#     ", "    ",
		"# trigger", "trigger", "# root_cause", "root_cause", "# detection", "detection", "# remediation", "remediation", "# lessons", "lessons", "# figures", "figures",
		"    # basis", "    basis", "    # date", "    date", "    # official", "    official", "# related", "related", "# conditions", "conditions").Replace(text)
	if _, err := Open(folder("ACME-0007.yaml", all)); err != nil {
		t.Errorf("with what was in comments: %v", err)
	}
}

// TestScaffoldTakesAnyTitle: what is typed on a command line stays text.
func TestScaffoldTakesAnyTitle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		title := rapid.StringMatching(`[ -~äß€]{1,40}`).Draw(t, "title")
		var r Record
		decode("x", Scaffold("ACME-0001", title, time.Unix(0, 0)), &r)
		if r.Title != strings.TrimSpace(title) {
			t.Fatalf("%q became %q", title, r.Title)
		}
	})
}

// FuzzRead: whatever a file holds, reading ends, and says where each fault is.
func FuzzRead(f *testing.F) {
	f.Add(page1)
	f.Add("a: &a [*a, *a]\nb: *a")
	f.Add("tags: {causes: {x: [[[[[[]]]]]]}}")
	f.Add("? [a]\n: b\n")
	f.Add(string(Scaffold("ACME-0001", "x", time.Unix(0, 0))))
	l, err := Open()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxRecord {
			return
		}
		r := &Record{}
		d := decode("x.yaml", []byte(text), r)
		(&checker{decoder: d, r: r, vocab: l.Vocabulary()}).run()
		for _, x := range d.all() {
			if x.Message == "" || x.Line < 0 || x.Error() == "" {
				t.Errorf("%+v", x)
			}
		}
		r.Ledger()
		if e := r.Evidence(); e.Score < 0 || e.Score > 100 {
			t.Errorf("%+v", e)
		}
	})
}
