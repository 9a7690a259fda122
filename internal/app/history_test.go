package app

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/store"
)

// read gets something of the operator's listener.
func (r *rig) read(path string, into any) int {
	r.t.Helper()
	resp, err := r.client.Get("http://127.0.0.1:8081" + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		r.t.Fatalf("%s: %v", path, err)
	}
	return resp.StatusCode
}

// again starts another router where one was stopped.
func (r *rig) again() {
	r.t.Helper()
	a, err := New(Options{ConfigPath: r.file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: r.logs, Version: "test", Network: over(r.net)})
	if err != nil {
		r.t.Fatalf("start again: %v", err)
	}
	r.app, r.logs.flush = a, a.lines.Flush
	r.t.Cleanup(func() { _ = a.Stop() })
}

// stop ends the router.
func (r *rig) stop() {
	r.t.Helper()
	if err := r.app.Stop(); err != nil {
		r.t.Fatal(err)
	}
	r.client.CloseIdleConnections()
}

// keeping is the setting of a store in a file.
func keeping(t *testing.T) (path, setting string) {
	path = filepath.Join(t.TempDir(), "kept.db")
	return path, "store: {path: " + path + "}\n"
}

// past asks for a stretch of the history.
func (r *rig) past(query url.Values) history.Answer {
	r.t.Helper()
	var a history.Answer
	if code := r.read("/api/v1/history?"+query.Encode(), &a); code != http.StatusOK {
		r.t.Fatalf("%v: %d", query, code)
	}
	return a
}

// TestHistory: three hours with an outage, and a restart in the middle of it, stand in
// the history with the right numbers at each resolution; the time without a router is
// unknown.
func TestHistory(t *testing.T) {
	const every = 5 * time.Second
	_, setting := keeping(t)
	u1 := upstream("u1", answers("fine"))
	run(t, setup{upstreams: []*fake{u1}, more: setting}, func(r *rig) {
		start := time.Now()
		offered, good := 0, 0
		until := func(end time.Duration) { // requests come within steps, and the end does too
			for at := (time.Since(start) + every - 1).Truncate(every) + every/2; at < end; at += every {
				time.Sleep(at - time.Since(start))
				if offered++; r.do(ask{}).status == http.StatusOK {
					good++
				}
			}
			time.Sleep(end - time.Since(start) - pollEvery/2)
		}
		until(time.Hour)
		u1.use(script{status(500, "no")})
		until(80 * time.Minute)
		r.stop()
		time.Sleep(20*time.Minute + pollEvery/2)
		r.again()
		until(2 * time.Hour)
		u1.use(answers("fine"))
		until(3 * time.Hour)
		r.stop() // what is asked next was all written and read back
		r.again()
		time.Sleep(2 * time.Second)

		for _, step := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute} {
			a := r.past(url.Values{"from": {map[time.Duration]string{10 * time.Second: "-2h"}[step] + map[bool]string{true: start.Format(time.RFC3339)}[step > 10*time.Second]}, "to": {start.Add(3 * time.Hour).Format(time.RFC3339)}, "step": {step.String()}, "series": {"offered,goodput,failed,refused"}})
			down := 0
			for i, at := range a.At {
				since := time.Unix(at, 0).Sub(start)
				v := func(series int) float64 { // of offered, goodput, failed, refused
					if p := a.Series[series].Values[i]; p != nil {
						return *p
					}
					return math.NaN()
				}
				switch {
				case since >= 80*time.Minute && since < 100*time.Minute:
					if !math.IsNaN(v(0)) {
						t.Errorf("%v steps: at %v %v was offered without a router", step, since, v(0))
					}
					down++
				case math.Abs(v(0)-0.2) > 0.002: // the last step of a router ends a moment early
					t.Errorf("%v steps: at %v %v was offered", step, since, v(0))
				case since < time.Hour || since >= 125*time.Minute: // ramped up again
					if v(1) != v(0) || v(2)+v(3) != 0 {
						t.Errorf("%v steps: at %v, in health, %v is good of %v, %v failed, %v was refused", step, since, v(1), v(0), v(2), v(3))
					}
				case since < 2*time.Hour:
					if v(1) != 0 || math.Abs(v(2)+v(3)-v(0)) > 1e-9 {
						t.Errorf("%v steps: at %v, in the outage, %v is good of %v, %v failed, %v was refused", step, since, v(1), v(0), v(2), v(3))
					}
				}
			}
			if want := int(20 * time.Minute / step); down != want {
				t.Errorf("%v steps: %d were without a router, want %d", step, down, want)
			}
		}
		var totals history.Totals
		r.read("/api/v1/history/totals", &totals)
		day := totals.Windows[2]
		if day.Counts.Offered != int64(offered) || day.Counts.Goodput != int64(good) || day.Counts.Attempts != int64(u1.count()) || day.Counts.Failed+day.Counts.Refused != int64(offered-good) {
			t.Errorf("the day has %+v; asked were %d, answered well %d, called %d", day.Counts, offered, good, u1.count())
		}
		if want := 160. / 1440; math.Abs(day.Known-want) > 0.001 {
			t.Errorf("%.4f of the day is known, want %.4f", day.Known, want)
		}
		target := r.past(url.Values{"from": {start.Format(time.RFC3339)}, "step": {"10m"}, "subject": {"target:u1/real"}})
		worst := 0.0
		for _, v := range target.Series[3].Values {
			if v != nil {
				worst = max(worst, *v)
			}
		}
		if target.Series[3].Name != "breaker" || worst != 3 {
			t.Errorf("%s was %v at worst", target.Series[3].Name, worst)
		}
		team := r.past(url.Values{"subject": {"workload:team"}, "from": {"-3h"}})
		if len(team.Series) != 8 {
			t.Errorf("%d series of a workload", len(team.Series))
		}
		r.stop()
	})
}

// TestHistoryOfAReload: a target that a reload removes keeps its past.
func TestHistoryOfAReload(t *testing.T) {
	u1, u2 := upstream("u1", answers("one")), upstream("u2", answers("two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		start := time.Now()
		for range 30 {
			r.do(ask{})
			time.Sleep(time.Second)
		}
		r.configure(setup{upstreams: []*fake{u2}})
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		a := r.past(url.Values{"subject": {"target:u1/real"}, "from": {start.Format(time.RFC3339)}, "series": {"attempts,breaker"}})
		if v := a.Series[0].Values[1]; v == nil || *v != 1 {
			t.Errorf("then: %v", v)
		}
		if v := a.Series[1].Values[len(a.At)-2]; v != nil {
			t.Errorf("since: breaker %v", *v)
		}
	})
}

// TestStoreFails: a store that cannot be written costs the history, not the serving;
// it is logged once and counted.
func TestStoreFails(t *testing.T) {
	path, setting := keeping(t)
	run(t, setup{upstreams: []*fake{upstream("u1", answers("fine"))}, more: setting}, func(r *rig) {
		r.do(ask{})
		if err := r.app.store.Close(); err != nil { // every operation fails from now on
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(10 * time.Second)
			r.good(r.do(ask{}), "fine")
		}
		if a := r.past(url.Values{"series": {"offered"}}); a.Series[0].Values[len(a.At)-2] == nil {
			t.Error("nothing is known of what was served meanwhile")
		}
		if n := strings.Count(r.logs.String(), "the store fails"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		resp, err := r.client.Get("http://127.0.0.1:8081/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if !strings.Contains(string(body), `hourthree_store_errors_total{operation="save_points"} 6`) || !strings.Contains(string(body), `hourthree_store_errors_total{operation="append"} 0`) {
			t.Errorf("not counted, path %s", path)
		}
	})
}

// TestStorePlaces: a store that is configured must be there; the default one is not
// left behind where nobody asked for it.
func TestStorePlaces(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	file := filepath.Join(dir, "hourthree.yaml")
	begin := func(setting string, flagged bool) (*App, *lockedBuffer, error) {
		logs := new(lockedBuffer)
		text := strings.NewReplacer(":8080", ":0", ":8081", ":0").Replace(setup{upstreams: []*fake{upstream("u1")}, more: setting}.yaml())
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := Options{ConfigPath: file, Env: func(string) (string, bool) { return "", false }, Stdout: io.Discard, Stderr: logs, Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"}
		if !flagged {
			o.ConfigPath = ""
		}
		a, err := New(o)
		if err == nil {
			logs.flush = a.lines.Flush
		}
		return a, logs, err
	}
	a, logs, err := begin("", false)
	if err != nil || a.store.Path() != store.Memory || !strings.Contains(logs.String(), "the store is in memory") {
		t.Fatalf("without a file: %v, %s", err, logs)
	}
	_ = a.Stop()
	if left, _ := filepath.Glob(filepath.Join(dir, "*.db*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	first, _, err := begin("", true)
	if err != nil || first.store.Path() != defaultStore {
		t.Fatalf("with a file: %v", err)
	}
	if a, logs, err = begin("", true); err != nil || a.store.Path() != store.Memory || !strings.Contains(logs.String(), "another process has the file open") {
		t.Fatalf("a second one: %v, %s", err, logs)
	}
	_ = a.Stop()
	if _, _, err = begin("store: {path: hourthree.db}\n", true); err == nil || !strings.Contains(err.Error(), "store.path: store hourthree.db: another process has the file open; name another file, or memory") {
		t.Errorf("a second one that is configured: %v", err)
	}
	_ = first.Stop()
	if _, _, err = begin("store: {path: none/kept.db}\n", true); err == nil || !strings.Contains(err.Error(), "store.path: ") {
		t.Errorf("in no directory: %v", err)
	}
}

// A fact costs no allocation.
func TestHistoryCost(t *testing.T) {
	l, both := recording()
	if n := testing.AllocsPerRun(1000, both); n > 0 || l == nil {
		t.Errorf("%v allocations for a request and its call", n)
	}
}

func recording() (*event.Listener, func()) {
	r := &recorder{tally: history.NewTally(), history: history.New()}
	l := r.listener()
	e := &event.Request{Workload: "w", Model: "m", Target: "a/m", Content: time.Second, Attempts: 1}
	a := &event.Attempt{Workload: "w", Target: "a/m"}
	return l, func() { l.RequestDone(e); l.AttemptDone(a) }
}

// BenchmarkHistory is what a request and its call cost.
func BenchmarkHistory(b *testing.B) {
	_, both := recording()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			both()
		}
	})
}
