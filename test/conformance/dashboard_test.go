//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// failing is an upstream that answers, until it is told to fail: then most calls at
// models that begin with a get a server fault.
type failing struct {
	*httptest.Server
	bad atomic.Bool
	n   atomic.Int64
}

func startFailing(t *testing.T) *failing {
	t.Helper()
	f := &failing{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if f.bad.Load() && strings.Contains(string(body), `"a-`) && f.n.Add(1)%10 != 0 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"message":"broken","type":"server_error"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)
	}))
	t.Cleanup(f.Close)
	return f
}

// traffic sends requests of workloads to models until the test ends, no two alike.
func traffic(t *testing.T, r *router, models map[string]string) {
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var n atomic.Int64
	for name, model := range models {
		wg.Go(func() {
			for ctx.Err() == nil {
				body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"question %d"}]}`, model, n.Add(1))
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.origin+"/v1/chat/completions", strings.NewReader(body))
				if err != nil {
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Authorization", "Bearer "+userKey+name)
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body) // what it says is not looked at
					resp.Body.Close()
				}
				select { // so many a second
				case <-ctx.Done():
				case <-time.After(30 * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(func() { stop(); wg.Wait() })
}

// dashboardSeen is what the browser saw of the dashboard.
type dashboardSeen struct {
	Pages []struct {
		Path, Scheme, Text    string
		Width, Plots, Figures int
		Found                 findings
		Complaints, Elsewhere []string
		Wide                  bool
	}
	Live struct {
		Changed, Same bool
		Loads, Asked  int
		Focus, Typed  string
		Paused        string
		Complaints    []string
	}
	Drain struct {
		Help, Open, Done, Shown bool
		Steps                   int
		Refused, Said           string
		Found                   findings
		Complaints              []string
	}
	Buttons struct {
		Quarantine, Release, TooMuch, Budget, Undo, Over pressed
		Moved, Back, There                               bool
		Shed, Pin, Unknown, Plot, Paused                 string
		Left                                             int
		Complaints                                       []string
	}
	Rollout struct {
		pressed
		Done       bool
		Text       string
		Complaints []string
	}
	Bare struct {
		Text    string
		Buttons int
	}
}

// pressed is what a button's dialog asked, and what the page said to the order.
type pressed struct {
	Asks        []string
	Said, Wrong string
	Focus       bool // is still somewhere
}

type findings []struct {
	Rule, Impact string
	Where        []string
}

func (f findings) serious(t *testing.T, where string) {
	t.Helper()
	for _, v := range f {
		if v.Impact == "serious" || v.Impact == "critical" {
			t.Errorf("%s: axe: %s at %v", where, v.Rule, v.Where)
		}
	}
}

// TestDashboard opens every page of the dashboard in a real browser while an outage
// runs, at a desk and on a phone, light and dark; sees it change without being loaded
// again; drains a target with the keyboard alone; presses what there is to press, before
// it at two rollouts, one that goes on and one that is halted; and reads it without
// scripts. The pictures are kept with `go test -artifacts`.
func TestDashboard(t *testing.T) {
	f := startFailing(t)
	provider := func(domain string) conf {
		return conf{"type": "openai-compatible", "base_url": f.URL + "/v1", "api_key": upstreamKey, "domain": domain}
	}
	limits := conf{"rpm": 100_000}
	c := conf{
		"providers": conf{"east": provider("cloud-east"), "west": provider("cloud-west")}, "workloads": workloads("batch", "suite"), "store": conf{"path": "memory"},
		"rollout": conf{"stages": []string{"50%", "100%"}, "bake": "1h", "patience": "2h"},
		"models":  conf{"gpt-5": conf{"targets": []conf{{"provider": "east", "model": "a-1", "order": 1}, {"provider": "east", "model": "a-2", "order": 1}, {"provider": "west", "model": "b-1", "order": 2}}, "limits": limits}, "mini": order("east/a-3")},
	}
	r := startRouter(t, c)
	traffic(t, r, map[string]string{"": "gpt-5", "-batch": "gpt-5", "-suite": "mini"})
	eventually(t, 2*time.Minute, "enough health for a drop to be measured against", func() bool {
		n := 0
		for _, w := range r.state(t).Workloads {
			n += w.Inbound
		}
		return n > 1500
	})
	var seen dashboardSeen
	look := func(job conf) { // each in a browser of its own: they take a while
		job["url"], job["pictures"] = r.admin, t.ArtifactDir()
		job["views"] = []conf{{"width": 1280, "scheme": "light"}, {"width": 390, "scheme": "dark"}}
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		var one dashboardSeen
		if err := json.Unmarshal([]byte(run(t, text, "node", filepath.Join(clientsDir, "dashboard.mjs"))), &one); err != nil {
			t.Fatal(err)
		}
		seen.Pages = append(seen.Pages, one.Pages...)
		if job["live"] != nil {
			seen.Live = one.Live
		}
		if job["buttons"] != nil {
			seen.Buttons = one.Buttons
		}
		if job["rollout"] != nil {
			seen.Rollout = one.Rollout
		}
		if job["drain"] != nil {
			seen.Drain, seen.Bare = one.Drain, one.Bare
		}
	}
	for _, do := range []string{"promote", "halt"} { // each of a rollout of its own
		limits["rpm"] = limits["rpm"].(int) + 1
		r.reconfigure(t, c)
		eventually(t, 20*time.Second, "the rollout begins", func() bool {
			_, body, _ := get(t, r.admin+"/api/v1/rollout")
			return strings.Contains(string(body), `"state": "baking"`) && strings.Contains(string(body), fmt.Sprint(limits["rpm"]))
		})
		look(conf{"rollout": do})
		seen.checkRollout(t, do)
	}
	f.bad.Store(true)
	var noticed struct {
		Open    int
		Outages []struct{ ID string }
	}
	eventually(t, 90*time.Second, "the outage is noticed", func() bool {
		_, body, _ := get(t, r.admin+"/api/v1/outages")
		return json.Unmarshal(body, &noticed) == nil && noticed.Open > 0
	})
	paths := []string{"/", "/rollout", "/targets", "/workloads", "/outages", "/outages/" + noticed.Outages[0].ID, "/capacity", "/actions", "/drills", "/past?subject=target:east/a-1"}
	look(conf{"live": true})
	for _, path := range paths {
		look(conf{"paths": []string{path}})
	}
	look(conf{"drain": "west/b-1", "bare": "/targets"})
	look(conf{"buttons": conf{"workload": "suite", "model": "mini", "target": "east/a-3"}})
	seen.checkButtons(t)
	if len(seen.Pages) != 2*len(paths) {
		t.Errorf("%d pages", len(seen.Pages))
	}
	for _, p := range seen.Pages {
		where := fmt.Sprintf("%s, %d wide, %s", p.Path, p.Width, p.Scheme)
		p.Found.serious(t, where)
		if len(p.Complaints) > 0 || len(p.Elsewhere) > 0 || p.Wide || p.Plots != p.Figures {
			t.Errorf("%s: complaints %v, asks %v, wider than the window: %v, %d of %d plots", where, p.Complaints, p.Elsewhere, p.Wide, p.Plots, p.Figures)
		}
		if p.Path == "/" && (!strings.Contains(p.Text, "Them:") || p.Figures == 0) {
			t.Errorf("%s does not say who it is:\n%s", where, p.Text)
		}
	}
	seen.checkDoing(t)
	state, body, _ := get(t, r.admin+"/api/v1/actions")
	if state != http.StatusOK || !strings.Contains(string(body), "the provider's notice") {
		t.Errorf("the action is not in force: %d %s", state, body)
	}
}

func (s *dashboardSeen) checkButtons(t *testing.T) {
	t.Helper()
	b := s.Buttons
	for name, c := range map[string]struct {
		did  pressed
		asks string
		said string
	}{
		"quarantine": {b.Quarantine, "share why for", "quarantine suite to 7.5 % until"}, "its undo": {b.Release, "why", "(quarantine of suite) is undone."},
		"budget": {b.Budget, "factor why for", "budget workload:suite times 0 until"}, "undo": {b.Undo, "why", "(budget of workload:suite) is undone."},
		"the last undo": {b.Over, "why", "(pin of mini) is undone."},
	} {
		if strings.Join(c.did.Asks, " ") != c.asks || !strings.Contains(c.did.Said, c.said) || c.did.Wrong != "" || !c.did.Focus {
			t.Errorf("%s: %+v", name, c.did)
		}
	}
	if b.TooMuch.Wrong != "The factor is from 0 to 10." || b.TooMuch.Said != "" {
		t.Errorf("a factor of 11: %+v", b.TooMuch)
	}
	if !b.Moved || !b.Back || !strings.Contains(b.Shed, "shed batch until") || !strings.Contains(b.Pin, "pin mini to east/a-3 until") || !strings.Contains(b.Unknown, "There is no target") || b.Left != 1 {
		t.Errorf("the buttons: %+v", b) // what was drained before is in force still
	}
	if !strings.Contains(b.Plot, "offered ") || b.Paused != "true" || !b.There || len(b.Complaints) > 0 {
		t.Errorf("by keyboard: plot %q, paused %q, on the page of targets %v, complaints %v", b.Plot, b.Paused, b.There, b.Complaints)
	}
}

func (s *dashboardSeen) checkRollout(t *testing.T, do string) {
	t.Helper()
	// Promoted once it is at its last stage; halted it is over.
	want := map[string]string{"promote": "served by the new version: ", "halt": "halted"}[do]
	r := s.Rollout
	if !r.Done || !r.Focus || r.Wrong != "" || !strings.Contains(r.Said, do) || !strings.Contains(strings.ToLower(r.Text), want) || !strings.Contains(r.Text, "models.gpt-5.limits.rpm") || len(r.Complaints) > 0 {
		t.Errorf("%s: %+v", do, r)
	}
}

func (s *dashboardSeen) checkDoing(t *testing.T) {
	t.Helper()
	l := s.Live
	if !l.Changed || !l.Same || l.Loads != 1 || l.Focus != "q" || l.Typed != "half a wo" || len(l.Complaints) > 0 {
		t.Errorf("while it was open: changed %v, the table is the same %v, loads %d, focus %q, typed %q, complaints %v", l.Changed, l.Same, l.Loads, l.Focus, l.Typed, l.Complaints)
	}
	if l.Asked != 0 || !strings.HasPrefix(l.Paused, "paused, data is ") {
		t.Errorf("paused it asked %d times and says %q", l.Asked, l.Paused)
	}
	d := s.Drain
	d.Found.serious(t, "the dialog")
	if !d.Help || !d.Open || !strings.HasPrefix(d.Refused, "Say why") || !d.Done || !d.Shown || !strings.Contains(d.Said, "drain west/b-1 until") || len(d.Complaints) > 0 {
		t.Errorf("drain by keyboard: %+v", d)
	}
	if b := s.Bare; !strings.Contains(b.Text, "east/a-1") || !strings.Contains(b.Text, "open") || b.Buttons != 0 {
		t.Errorf("without scripts: %d buttons that do nothing\n%s", b.Buttons, b.Text)
	}
}
