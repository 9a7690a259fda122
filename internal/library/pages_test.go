package library

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/incident"
)

var (
	badValue = regexp.MustCompile(`ZgotmplZ|%!|&lt;nil&gt;|\[\[`)
	href     = regexp.MustCompile(`href="(/[^"]*)"`)
)

// Every page is written whole, and every link on it leads somewhere.
func TestPagesAndTheirLinks(t *testing.T) {
	seen := map[string]bool{}
	queue := []string{"/incidents", "/incidents?q=retry+storm&cause=&since=", "/incidents?cause=oom&domain=ai-gateway"}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		w := get(t, shared, path)
		if w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
			continue
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		body := w.Body.String()
		if m := badValue.FindString(body); m != "" || !strings.HasSuffix(strings.TrimSpace(body), "</html>") || strings.Contains(body, "<script") || strings.Contains(body, "style=") {
			t.Errorf("%s: %q in it, or not whole, or with what its policy forbids", path, m)
		}
		for _, m := range href.FindAllStringSubmatch(body, -1) {
			to := html.UnescapeString(m[1])
			if strings.HasPrefix(to, "/incidents?check=") && !strings.HasSuffix(to, "1") { // there are many, and they are alike
				continue
			}
			queue = append(queue, to)
		}
	}
	if len(seen) < 250 {
		t.Errorf("only %d pages are linked", len(seen))
	}
}

func TestIncidentPage(t *testing.T) {
	body := get(t, shared, "/incidents/HT-0001").Body.String()
	for _, want := range []string{
		"detected after", "19 min", "7 h 45 min", "Timeline to scale: ", `class="calm"`, `class="detected"`, `class="ended"`,
		`<span class="kind unconfirmed">unconfirmed</span>`, "70 × (", "read in full", "hourthree drill run azure-2026-05-29", "RTY-005", `href="/incidents/HT-0002"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestNoFactIsToldFromFacts: what a search quotes of an assumption, and a figure
// that rests on one, say so.
func TestNoFactIsToldFromFacts(t *testing.T) {
	q := url.QueryEscape("HT-0002 five given calls in a row fail independently with probability")
	if body := get(t, shared, "/incidents?q="+q).Body.String(); !strings.Contains(body, `<span class="kind illustrative">illustrative</span> <span class="where">claims:`) {
		t.Error("the search does not say the kind of the claim that it quotes")
	}
	if body := get(t, shared, "/api/incidents/search?limit=1&q="+q).Body.String(); !strings.Contains(body, `"fragment":{"field":"claims","kind":"illustrative"`) {
		t.Errorf("REST does not either: %s", body)
	}
	r := &incident.Record{
		Claims:  []incident.Claim{{ID: "c1", Text: "x", Kind: incident.Illustrative, Source: "s1"}, {ID: "c2", Text: "x", Kind: incident.Reported, Source: "s1"}},
		Sources: []incident.Source{{ID: "s1"}}, Figures: []incident.Figure{{Name: "a", Claim: "c1"}, {Name: "b", Claim: "c2"}},
	}
	a, err := rendered("incident", &incidentPage{&Detail{Record: r}, nil})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(a.body), `</a> <span class="kind illustrative">illustrative</span></td>`); n != 1 {
		t.Errorf("%d figures are said to rest on an assumption, want 1", n)
	}
}

// What a record says is text on a page, whatever it is.
func TestPagesEscape(t *testing.T) {
	l, err := open()
	if err != nil {
		t.Fatal(err)
	}
	r := *l.All()[0]
	const evil = `<script>alert("x")</script>`
	r.Title, r.Summary, r.Trigger, r.Provider = evil, evil, evil, evil
	r.Timeline = []incident.Moment{{At: "2026-01-01T00:00Z", What: evil}, {At: "2026-01-01T01:00Z", What: evil}}
	r.Sources = []incident.Source{{ID: "s1", Title: evil, URL: "javascript:alert(1)", Publisher: evil, Access: evil}}
	r.Claims = []incident.Claim{{ID: "c1", Text: evil, Kind: incident.Illustrative, Source: "s1"}}
	a, err := rendered("incident", &incidentPage{&Detail{Record: &r, Ledger: r.Ledger(), Evidence: r.Evidence()}, draw(&r)})
	if err != nil {
		t.Fatal(err)
	}
	if body := string(a.body); strings.Contains(body, "<script") || strings.Contains(body, `href="javascript`) || !strings.Contains(body, "not a fact about the incident") {
		t.Errorf("a record's text is not only text, or its assumption looks like a fact:\n%s", body)
	}
	if got := string(marked(Fragment{Text: `a <b> & c`, Marks: [][2]int{{2, 5}}})); got != `a <mark>&lt;b&gt;</mark> &amp; c` {
		t.Errorf("marked: %s", got)
	}
}

func TestPageProblems(t *testing.T) {
	for path, status := range map[string]int{
		"/incidents/HT-9999": 404, "/incidents/topics/cause/oomm": 404, "/incidents/nothing/here": 404, "/incidents/": 404,
		"/incidents?cause=oomm": 400, "/incidents?coarse=oom": 400, "/incidents?cursor=x": 400, "/incidents?q=" + strings.Repeat("a", 501): 400,
	} {
		w := get(t, shared, path)
		if w.Code != status || !strings.Contains(w.Body.String(), "<h1>"+http.StatusText(status)) {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := get(t, shared, "/incidents", call{method: "POST"}); w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
	if w := get(t, shared, "/"); w.Code != 302 || w.Header().Get("Location") != "/incidents" {
		t.Errorf("the root: %d %v", w.Code, w.Header())
	}
	w := get(t, shared, "/incidents/style.css")
	if again := get(t, shared, "/incidents/style.css", call{header: map[string]string{"If-None-Match": w.Header().Get("ETag")}}); w.Code != 200 || again.Code != 304 {
		t.Errorf("style: %d, then %d", w.Code, again.Code)
	}
}

// Labels do not overlap, stay in the drawing and in order, and move no more
// than they must.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(34, 726), 0, 40).Draw(t, "xs")
		slices.Sort(xs)
		got := spread(xs, 26, 734, labelRoom)
		if len(got) != len(xs) {
			t.Fatalf("%d of %d", len(got), len(xs))
		}
		room := float64(labelRoom)
		if n := len(xs); n > 1 {
			room = min(room, (734.0-26)/float64(n-1))
		}
		apart := true
		for i := range got {
			if got[i] < 26-1e-6 || got[i] > 734+1e-6 {
				t.Fatalf("%v is outside", got[i])
			}
			if i > 0 {
				if got[i]-got[i-1] < room-1e-6 {
					t.Fatalf("%v and %v overlap", got[i-1], got[i])
				}
				apart = apart && xs[i]-xs[i-1] >= room
			}
		}
		if apart && fmt.Sprint(got) != fmt.Sprint(xs) {
			t.Fatalf("moved for nothing: %v to %v", xs, got)
		}
	})
}

// Every timeline can be drawn: each mark inside, labels of a side apart.
func TestDrawings(t *testing.T) {
	l, err := open()
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for _, r := range l.All() {
		d := draw(r)
		if d == nil {
			continue
		}
		drawn++
		last := map[bool]float64{true: -labelRoom, false: -labelRoom}
		x := 0.0
		for _, m := range d.Marks {
			if m.X < drawnEdge-1e-6 || m.X > drawnWidth-drawnEdge+1e-6 || m.X < x-1e-6 {
				t.Errorf("%s: a mark at %v, after %v", r.ID, m.X, x)
			}
			x = m.X
			if m.LabelX-last[m.Up] < labelRoom-1e-6 {
				t.Errorf("%s: labels at %v and %v", r.ID, last[m.Up], m.LabelX)
			}
			last[m.Up] = m.LabelX
		}
		if len(d.Ticks) < 1 || len(d.Ticks) > 2*mostTicks || d.Impact != nil && (d.Impact.X < drawnEdge-1e-6 || d.Impact.X+d.Impact.W > drawnWidth-drawnEdge+2+1e-6) {
			t.Errorf("%s: ticks %v, impact %v", r.ID, d.Ticks, d.Impact)
		}
	}
	if drawn < 60 {
		t.Errorf("%d timelines are drawn", drawn)
	}
	if r, _ := l.Get("HT-0052"); len(draw(r).Breaks) != 1 {
		t.Error("two weeks before squeeze an incident of hours")
	}
}
