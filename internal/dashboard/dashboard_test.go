package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/history"
)

// everyPage is an address of each page.
var everyPage = []string{"/", "/targets", "/workloads", "/outages", "/outages/O-7", "/rollout", "/capacity", "/actions", "/drills", "/past?subject=target:azure-1/gpt-5", "/nowhere"}

func ask(t *testing.T, h http.Handler, path string, set ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8081"+path, nil)
	for i := 0; i < len(set); i += 2 {
		r.Header.Set(set[i], set[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func wants(t *testing.T, where, body string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(body, want) {
			t.Errorf("%s does not show %q", where, want)
		}
	}
}

// TestPagesShow: each page has what it is for.
func TestPagesShow(t *testing.T) {
	h := Handler(during(size{targets: 8, workloads: 6}))
	for path, texts := range map[string][]string{
		"/":            {"A caller:</strong> suite brings in 88 % of the excess, 7.4 requests for each distinct one (O-7, suspect workload suite, score 0.91).", "Not shown to be over: O-6 is unverified: traffic at 69 % of onset.", "Them: 1 of 3 targets of gpt-5 fail; callers are served from", "<b>40.0/s</b>", "12.5 %", "not known", "A-7", "29 min 00 s left", "at stage 2 of 4", "8.00 (page)", "As a table", "300.0 MiB of 512.0 MiB"},
		"/targets":     {"Domain <bdi>cloud-0</bdi>", "1 of 4 down", "probe in 25 s", "48\u202f000<small class=\"line\">tokens", "drained", `data-undo="A-7"`, `data-order="force-open"`, "380 ms", "3 of 20", "35 %"},
		"/workloads":   {"quarantine", "brings in 7.4 requests", "7.40", "48\u202f211", "70/min, 7 free now", "Without any limit"},
		"/outages":     {"unverified: traffic at 69 % of onset", "score 0.91", "score 0.63", "O-5"},
		"/outages/O-7": {"upstream rollout", "0.84", "27.6/s", "69 %", "/incidents/HT-0001", "hourthree drill run azure-2026-05-29", "not shown to be the cause", "wave 2", "69 %"},
		"/rollout":     {"99.3 %", "1.31", "1.04 ×", "defaults.retries.ratio", "Halt and go back", "213 of 500"},
		"/capacity":    {"58.6 %", "batch</li>", "1.50 of 5.00", "1 keys without limits", "10 % and 1 a second"},
		"/actions":     {"drain", "29 min 00 s", "hourthree undo A-7", "expiry", "provider&#39;s notice", `name="why"`},
		"/drills":      {"azure-2026-05-29", "/incidents/HT-0001", "12 of 12"},
	} {
		w := ask(t, h, path)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		if path == "/capacity" {
			texts = append(texts[:1:1], append([]string{"batch is turned away from 70 % on"}, texts[2:]...)...)
		}
		wants(t, path, w.Body.String(), texts...)
	}
}

// hostile ends every name in the pages: markup, a quote out of an attribute, a turn
// of the text, and a length without a break.
var hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>` + "\u202e\u2066\x1b[2J\x00{{.}}" + strings.Repeat("W", longestText)

var tagName = regexp.MustCompile(`^[a-z0-9]+$`)

// TestHostileNames: names are text on every page, and neither turn nor stretch what
// stands around them. No page has a script or a style in its own text.
func TestHostileNames(t *testing.T) {
	h := Handler(during(size{targets: 8, workloads: 6, suffix: hostile}))
	for _, path := range everyPage {
		body := ask(t, h, path).Body.String()
		doc, err := html.ParseWithOptions(strings.NewReader(body), html.ParseOptionEnableScripting(false))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode {
				if n.Type == html.TextNode && strings.ContainsAny(n.Data, "\u202e\u2066\x1b\x00") {
					t.Errorf("%s: text that turns or steers: %q", path, n.Data)
				}
				if n.Type == html.TextNode && strings.Contains(n.Data, strings.Repeat("W", longestText)) {
					t.Errorf("%s: a name is shown in full: %.80q", path, n.Data)
				}
				continue
			}
			src := attr(n, "src")
			switch {
			case !tagName.MatchString(n.Data), n.Data == "style", n.Data == "img", n.Data == "script" && !strings.HasPrefix(src, assetRoot):
				t.Errorf("%s has a %s from %q", path, n.Data, src)
			case n.Data == "script" && n.FirstChild != nil:
				t.Errorf("%s has a script in its text", path)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%s: %s has %s=%.60q", path, n.Data, a.Key, a.Val)
				}
			}
		}
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// TestIdsAreUnique: what is kept between two showings is found by its id.
func TestIdsAreUnique(t *testing.T) {
	h := Handler(during(size{targets: 30, workloads: 30}))
	for _, path := range everyPage {
		doc, err := html.ParseWithOptions(ask(t, h, path).Body, html.ParseOptionEnableScripting(false))
		if err != nil {
			t.Fatal(err)
		}
		seen, points := map[string]bool{}, map[string]bool{}
		for n := range doc.Descendants() {
			if id := attr(n, "id"); id != "" {
				if seen[id] || strings.ContainsAny(id, " \t") {
					t.Errorf("%s: id %q twice, or with a space", path, id)
				}
				seen[id] = true
			}
			for _, key := range []string{"for", "aria-labelledby", "list"} {
				if to := attr(n, key); to != "" {
					points[to] = true
				}
			}
		}
		for to := range points {
			if !seen[to] {
				t.Errorf("%s: nothing has the id %q that something points to", path, to)
			}
		}
	}
}

// TestEmptyRouter: every page stands without anything to show, and without any source
// but the two that are needed.
func TestEmptyRouter(t *testing.T) {
	full, bare := Handler(empty()), Handler(Options{State: empty().State, Limits: empty().Limits})
	for _, path := range everyPage {
		want := http.StatusOK
		if path == "/nowhere" || path == "/outages/O-7" {
			want = http.StatusNotFound
		}
		if w := ask(t, full, path); w.Code != want || strings.Contains(w.Body.String(), "NaN") || strings.Contains(w.Body.String(), "<nil>") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/", "/targets", "/workloads", "/capacity", "/drills"} {
		if w := ask(t, bare, path); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/outages", "/outages/O-1", "/rollout", "/actions", "/past", "/plot"} {
		if w := ask(t, bare, path); w.Code != http.StatusNotFound {
			t.Errorf("%s without a source: %d", path, w.Code)
		}
	}
	body := ask(t, bare, "/").Body.String()
	wants(t, "/", body, "no request has come in", "keeps no past")
	for _, gone := range []string{`href="/outages"`, `href="/rollout"`, `href="/actions"`, `href="/incidents"`} {
		if strings.Contains(body, gone) {
			t.Errorf("the navigation has %s, which there is not", gone)
		}
	}
}

// TestRoles: who may only look is offered nothing to press, and who has signed in can
// sign out.
func TestRoles(t *testing.T) {
	h := Handler(during(size{targets: 8, workloads: 6}))
	as := func(path string, p access.Person) string {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(access.With(context.Background(), p)))
		return w.Body.String()
	}
	for _, path := range everyPage {
		body := as(path, access.Person{Name: "sam<b>", Role: access.View, Via: "session"})
		for _, button := range []string{"data-order=", "data-undo=", "data-lane=", "data-rollout=", `id="new-order"`} {
			if strings.Contains(body, button) {
				t.Errorf("%s offers %s to a viewer", path, button)
			}
		}
		wants(t, path, body, "sam&lt;b&gt;", "(may view)", `href="/logout"`)
	}
	if body := as("/", access.Person{Name: "kim", Role: access.Operate, Via: "key"}); strings.Contains(body, "/logout") {
		t.Error("there is nothing to sign out of with a key")
	}
}

// TestPolicy: a page may load what comes with the program and nothing else.
func TestPolicy(t *testing.T) {
	h := Handler(during(size{targets: 2, workloads: 2}))
	for _, path := range everyPage {
		policy := ask(t, h, path).Header().Get("Content-Security-Policy")
		wants(t, path, policy, "default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'", "frame-ancestors 'none'")
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
	}
}

// TestParts: an open page asks for its part, and is told when that is what it has.
func TestParts(t *testing.T) {
	o := during(size{targets: 4, workloads: 2})
	at := time.Now()
	still := o.State
	o.State, o.Actions, o.Outages, o.Rollout = nil, nil, nil, nil
	state := still(at)
	o.State = func(time.Time) admin.State { return state }
	h := Handler(o)
	first := ask(t, h, "/drills", partOf, "main")
	tag := first.Header().Get("ETag")
	if body := first.Body.String(); tag == "" || strings.Contains(body, "<!doctype") || !strings.Contains(body, `<main id="main"`) || !strings.Contains(body, `<nav`) {
		t.Errorf("%q %.200s", tag, body)
	}
	if w := ask(t, h, "/drills", partOf, "main", "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("the same again: %d", w.Code)
	}
	state.Draining = true
	if w := ask(t, h, "/drills", partOf, "main", "If-None-Match", tag); w.Code != http.StatusOK {
		t.Errorf("after a change: %d", w.Code)
	}
	if w := ask(t, h, "/drills", "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("the whole page: %d %v", w.Code, w.Header())
	}
}

// TestBounds: thousands of targets and workloads make no large page, the odd ones are
// on it, and a filter finds any other. What a usual router has is quick and small.
func TestBounds(t *testing.T) {
	many := Handler(during(size{targets: 2000, workloads: 10_000}))
	for _, path := range everyPage {
		if n := ask(t, many, path).Body.Len(); n > 600_000 {
			t.Errorf("%s has %d bytes", path, n)
		}
	}
	wants(t, "/targets", ask(t, many, "/targets").Body.String(), "100 of 2000", "open")
	wants(t, "/targets?q=", ask(t, many, "/targets?q=AZURE-1999/").Body.String(), "azure-1999/gpt-5")
	wants(t, "/workloads", ask(t, many, "/workloads").Body.String(), "100 largest of 10000", "suite", "team-9999")
	wants(t, "/workloads?q=", ask(t, many, "/workloads?q=team-5000").Body.String(), "team-5000")
	wants(t, "/workloads?q=", ask(t, many, "/workloads?q=%3Cb%3E").Body.String(), "No workload fits")
	usual := Handler(during(size{targets: 20, workloads: 50}))
	for _, path := range everyPage {
		began := time.Now()
		n := ask(t, usual, path).Body.Len()
		t.Logf("%-40s %6d bytes %v", path, n, time.Since(began).Round(10*time.Microsecond))
		if n > 200_000 {
			t.Errorf("%s has %d bytes", path, n)
		}
	}
}

// TestPlot: what a plot draws is bounded, and a question that the past cannot answer is
// told as such.
func TestPlot(t *testing.T) {
	o := during(size{})
	h := Handler(o)
	w := ask(t, h, "/plot?series=offered,goodput&range=24h")
	wants(t, "/plot", w.Body.String(), `"name":"offered"`, `"values":[null,`)
	if w.Header().Get("ETag") == "" || w.Body.Len() > 60_000 {
		t.Errorf("%d bytes", w.Body.Len())
	}
	for _, path := range []string{"/plot?subject=" + strings.Repeat("x", 500), "/plot?series=" + strings.Repeat("a,", 40), "/past?subject=" + strings.Repeat("x", 500)} {
		if w := ask(t, h, path); w.Code != http.StatusNotFound {
			t.Errorf("%.30s: %d", path, w.Code)
		}
	}
	o.History = func(time.Time, history.Query) (history.Answer, error) {
		return history.Answer{}, errors.New("the file is damaged")
	}
	h = Handler(o)
	if w := ask(t, h, "/plot?series=offered"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "damaged") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wants(t, "/", ask(t, h, "/").Body.String(), "The past cannot be shown: the file is damaged")
}

// TestNothingChanges: the dashboard takes no request that changes something.
func TestNothingChanges(t *testing.T) {
	h := Handler(during(size{targets: 1, workloads: 1}))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		r := httptest.NewRequest(method, "http://127.0.0.1/targets", strings.NewReader("{}"))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code < 400 {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if w := ask(t, h, "/api/v1/nothing"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"error"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestAssets: what pages load is there, and the plots' library is the package's file
// where that is installed.
func TestAssets(t *testing.T) {
	h := Handler(empty())
	for path, kind := range map[string]string{"style.css": "text/css", "live.js": "text/javascript", "morph.js": "text/javascript", "orders.js": "text/javascript", "plots.js": "text/javascript", "keys.js": "text/javascript", "uplot/uPlot.iife.min.js": "text/javascript", "uplot/uPlot.min.css": "text/css", "uplot/LICENSE": "text/plain"} {
		if w := ask(t, h, assetRoot+path); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || w.Body.Len() < 300 {
			t.Errorf("%s: %d %s, %d bytes", path, w.Code, w.Header().Get("Content-Type"), w.Body.Len())
		}
	}
	if w := ask(t, h, assetRoot+"../send.go"); w.Code == http.StatusOK {
		t.Error("a file of the source is served")
	}
	const pack = "../../test/clients/node_modules/uplot/"
	if _, err := os.Stat(pack); err != nil {
		t.Skip("the package uplot is not installed: make test-setup")
	}
	for own, its := range map[string]string{"uPlot.iife.min.js": "dist/uPlot.iife.min.js", "uPlot.min.css": "dist/uPlot.min.css", "LICENSE": "LICENSE"} {
		a, err := os.ReadFile("assets/uplot/" + own)
		b, err2 := os.ReadFile(pack + its)
		if err != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("%s is not the package's file (%v, %v)", own, err, err2)
		}
	}
}
