package report

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/hourthree/hourthree/internal/drill"
)

var keep = flag.String("page", "", "write the page of the fixture to this file")

func render(t *testing.T, results ...*drill.Result) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, results); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), doc
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// all are the elements of that name.
func all(doc *html.Node, name string) []*html.Node {
	var out []*html.Node
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			out = append(out, n)
		}
	}
	return out
}

// balanced checks that every element is closed where it should be, which a
// lenient parser does not.
func balanced(t *testing.T, text string) {
	t.Helper()
	void := map[string]bool{"meta": true, "br": true}
	var open []string
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("left open: %v", open)
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); !void[string(name)] {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

func TestPage(t *testing.T) {
	text, doc := render(t, fixture(), fixture())
	balanced(t, text)
	if *keep != "" {
		one, _ := render(t, fixture())
		if err := os.WriteFile(*keep, []byte(one), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]bool{}
	for n := range doc.Descendants() {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements have the id %s", id)
			}
			ids[id] = true
		}
	}
	for n := range doc.Descendants() {
		for id := range strings.FieldsSeq(attr(n, "aria-labelledby") + " " + strings.TrimPrefix(attr(n, "href"), "#")) {
			if !ids[id] {
				t.Errorf("nothing has the id %s", id)
			}
		}
	}
	for _, th := range all(doc, "th") {
		if attr(th, "scope") == "" {
			t.Error("a th has no scope")
		}
	}
	if n := len(all(doc, "figure")); n != 2*4*11 {
		t.Errorf("%d plots", n)
	}
}

// TestPageLeavesOut: what no contender has is not plotted.
func TestPageLeavesOut(t *testing.T) {
	r := fixture()
	for i := range r.Runs {
		run := &r.Runs[i]
		run.Gateways = nil
		for k := range run.Workloads {
			for j := range run.Workloads[k].Steps {
				run.Workloads[k].Steps[j].Status, run.Workloads[k].Steps[j].Wrong = nil, 0
			}
		}
	}
	text, doc := render(t, r)
	if n := len(all(doc, "figure")); n != 4*9 || strings.Contains(text, "<b>memory</b>") || !strings.Contains(text, "<b>probes</b>") {
		t.Errorf("%d plots", n)
	}
}

// TestPageProvesNothing: who is to miss a criterion and meets it is shown so.
func TestPageProvesNothing(t *testing.T) {
	_, doc := render(t, fixture())
	n := 0
	for _, s := range all(doc, "span") {
		if s.FirstChild != nil && s.FirstChild.Data == hollow {
			n++
		}
	}
	if n != 1 {
		t.Errorf("said of %d", n)
	}
}

func TestPageLoadsNothing(t *testing.T) {
	text, doc := render(t, fixture())
	for _, name := range []string{"script", "link", "img", "iframe", "object", "use", "image", "base"} {
		if len(all(doc, name)) > 0 {
			t.Errorf("has <%s>", name)
		}
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "style" || strings.HasPrefix(a.Key, "on") || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
	}
	if m := regexp.MustCompile(`https?://|url\(|@import`).FindString(text); m != "" {
		t.Errorf("has %s", m)
	}
}

func TestPageExtremes(t *testing.T) {
	for name, r := range extremes() {
		t.Run(name, func(t *testing.T) {
			text, doc := render(t, r)
			balanced(t, text)
			if len(all(doc, "script")) > 0 {
				t.Error("a script")
			}
			if m := regexp.MustCompile(`NaN|Inf\b|ZgotmplZ|%!|<nil>|e[+-]\d\d\b`).FindString(text); m != "" {
				t.Errorf("has %s", m)
			}
			for _, p := range all(doc, "path") {
				if n := strings.Count(attr(p, "d"), "L"); n > maxPoints+2 {
					t.Errorf("%d points in a line", n)
				}
			}
			if n := len(all(doc, "rect")); n > 4*2*2*maxSpans {
				t.Errorf("%d boxes", n)
			}
		})
	}
	render(t)
	if HTML(broken{}, nil) == nil {
		t.Error("the writer's error is lost")
	}
}

func TestPageEscapes(t *testing.T) {
	evil := `"><img src=x onerror=alert(1)></title></style><script>alert(2)</script>{{.}}`
	r := fixture()
	r.Title, r.Scenario, r.Incident = evil, evil, evil
	r.Facts, r.Ours, r.Marks = []string{evil}, []string{evil}, []drill.Mark{{At: time.Second, Text: evil}}
	for i := range r.Runs {
		run := &r.Runs[i]
		run.Contender, run.About = evil, evil
		run.Workloads[0].Name, run.Targets[0].Name = evil, evil
		run.Targets[0].Moves = []drill.Move{{At: time.Second, To: evil, Reason: evil}}
		run.Criteria = []drill.Judgement{{Name: evil, Expr: evil, Value: evil}, {Needs: evil}, {Err: evil}}
	}
	text, doc := render(t, r, r)
	balanced(t, text)
	if len(all(doc, "script"))+len(all(doc, "img")) > 0 {
		t.Error("not escaped")
	}
}

func TestThin(t *testing.T) {
	points := make([]point, 5000)
	for i := range points {
		points[i] = point{float64(i), 1}
	}
	points[1234].v, points[4321].v = 99, -5
	got := thin(points, maxPoints)
	high, low := 0.0, 0.0
	for i, p := range got {
		high, low = max(high, p.v), min(low, p.v)
		if i > 0 && p.at <= got[i-1].at {
			t.Fatal("out of order")
		}
	}
	if len(got) > maxPoints || high != 99 || low != -5 {
		t.Errorf("%d points from %v to %v", len(got), low, high)
	}
}

func TestStagger(t *testing.T) {
	got := stagger([]float64{10, 12, 200, 395}, []string{"first", "second", "third", "the last one"}, 400, 2)
	for i, want := range []placed{{row: 0, anchor: "start"}, {row: 1, anchor: "start"}, {row: 0, anchor: "start"}, {row: 0, anchor: "end"}} {
		if got[i].row != want.row || got[i].anchor != want.anchor {
			t.Errorf("label %d: %+v", i, got[i])
		}
	}
	if p := stagger([]float64{1, 1, 1}, []string{"a", "b", "c"}, 99, 2); p[2].row != -1 {
		t.Error("a third row")
	}
}

func TestTicks(t *testing.T) {
	for _, top := range []float64{0, 0.003, 1, 1.02, 7, 99, 1016, 1e9} {
		ticks := niceTicks(top, 4)
		if last := ticks[len(ticks)-1].at; last < top*(1-1e-9) || len(ticks) > 6 {
			t.Errorf("%v: %d ticks to %v", top, len(ticks), last)
		}
	}
	for _, d := range []time.Duration{1, time.Millisecond, time.Minute, time.Hour, 1000 * time.Hour} {
		if n := len((clock{length: d, factor: 1}).ticks(5)); n < 1 || n > 6 {
			t.Errorf("%v: %d ticks", d, n)
		}
	}
}

func TestPhases(t *testing.T) {
	got := phases([]drill.Move{{At: 5, To: "open"}, {At: 5, To: "closed"}, {At: 2, To: "ramp"}, {At: 99, To: "open"}}, 10)
	var names []string
	for _, s := range got {
		names = append(names, s.name)
	}
	if strings.Join(names, " ") != "closed ramp closed" || got[2].to != 10 {
		t.Errorf("%+v", got)
	}
}

func TestPhasesThinned(t *testing.T) {
	var list []drill.Move
	for i := range 4000 {
		list = append(list, drill.Move{At: time.Duration(i) * time.Second, To: []string{"ramp", "closed"}[i%2]})
	}
	list[2001].To = "open"
	got := phases(list, 4000*time.Second)
	open := 0
	for i, s := range got {
		if s.name == "open" {
			open++
		}
		if i > 0 && s.from != got[i-1].to {
			t.Errorf("a gap before %v", s.from)
		}
	}
	if len(got) > maxSpans || open != 1 || got[0].from != 0 || got[len(got)-1].to != 4000*time.Second {
		t.Errorf("%d spans, %d open", len(got), open)
	}
}

func TestDowns(t *testing.T) {
	steps := make([]drill.TargetStep, 6)
	steps[1].Down, steps[2].Down, steps[5].Down = true, true, true
	got := downs(drill.TargetRun{Steps: steps}, time.Second, 6*time.Second)
	if len(got) != 2 || got[0].from != time.Second || got[0].to != 3*time.Second || got[1].to != 6*time.Second {
		t.Errorf("%+v", got)
	}
}
