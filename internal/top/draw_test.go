package top

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/steer"
)

var update = flag.Bool("update", false, "write the golden files anew")

var start = time.Date(2026, 5, 29, 9, 21, 0, 0, time.UTC)

func at(d time.Duration) *time.Time { t := start.Add(d); return &t }

// example is a router in an outage.
func example() *Picture {
	s := &State{At: start, Version: "1.0", ConfigID: "ab12cd34", InFlight: 214, Queued: 37, Reserved: 312 << 20, Limit: 512 << 20}
	for i := range 6 {
		t := Target{Name: fmt.Sprintf("azure-%d/gpt-5", i), Domain: []string{"azure-swedencentral", "azure-eastus"}[i%2], Breaker: "closed", Success: 0.997, InFlight: 12 + i, Limit: 40}
		t.Window.Share = 1
		switch i {
		case 1:
			t.Breaker, t.Success, t.InFlight, t.Window.Share, t.Window.OpenUntil = "open", 0.12, 0, 0, at(21*time.Second)
		case 2:
			t.Breaker, t.Window.Share = "ramp", 0.25
		case 3:
			t.Cool, t.CoolKind = at(9*time.Second), "rate"
		case 5:
			t.Drained = true
		}
		s.Targets = append(s.Targets, t)
	}
	for i, name := range []string{"copilot", "suite", "nightly"} {
		w := Workload{Name: name, Priority: "interactive", Inbound: int64(1000 * i), In: 1.1, Out: 1.02, InFlight: int64(10 * i)}
		w.Lane.Name = "normal"
		if name == "suite" {
			w.In, w.Lane.Name = 6.13, "quarantine"
		}
		s.Workloads = append(s.Workloads, w)
	}
	p := &Picture{Router: "http://127.0.0.1:8081", At: start, State: s, Rates: map[string]Rates{"copilot": {Inbound: 41}, "suite": {Inbound: 412.4}, "nightly": {Inbound: 0.5}}}
	p.Outages = []Outage{{
		ID: "O-2", State: "degraded", Words: "degraded: wave 2", Onset: start.Add(-70 * time.Second), Waves: 2, Scope: []Subject{{"model", "gpt-5"}, {"target", "azure-1/gpt-5"}},
		Suspects: []Suspect{{Subject{"workload", "suite"}, 0.97, "6.1 requests come in for each distinct one"}, {Subject{"target", "azure-1/gpt-5"}, 0.52, "88 % of its calls fail"}},
		Changes:  []Suspect{{Subject{"change", "configuration ab12cd34"}, 0.4, "came 40 s before"}},
	}, {ID: "O-1", State: "verified", Onset: start.Add(-time.Hour), Ended: at(-30 * time.Minute)}}
	if err := json.Unmarshal([]byte(`{"name":"1m","per_second":{"offered":453.9,"goodput":80.25,"attempts":981,"refused":301,"degraded":3,"failed":12}}`), &p.Totals); err != nil {
		panic(err)
	}
	p.Verdict = &Verdict{Who: "caller", Head: "A caller", Text: "suite brings in 88 % of the excess, 6.1 requests for each distinct one (O-2, suspect workload suite, score 0.97)."}
	if err := json.Unmarshal([]byte(`[{"name":"availability","objective":0.999,"good":99000,"bad":500,"budget_left":-0.5025,"burning":"page","burns":[{"window":"1h","burn_rate":21.3}]},{"name":"copilot-fast","workload":"copilot","objective":0.95,"budget_left":1}]`), &p.SLOs); err != nil {
		panic(err)
	}
	p.Actions = &[]steer.Action{{ID: "A-7", Order: steer.Order{Kind: steer.Quarantine, Subject: "suite", Why: "repeats"}, By: "ann", Until: start.Add(50 * time.Minute)}}
	p.Rollout = &rollout.Status{
		Version: "ab12cd34", State: rollout.Baking, Stage: 1, Stages: make([]rollout.Stage, 4), Exposure: 0.052, Verdict: rollout.Insufficient, Why: "812 of 2000 requests were seen",
		Measures: []rollout.Measure{{Name: "success", Verdict: rollout.Pass}, {Name: "memory", Verdict: rollout.Insufficient, Text: "too few"}},
	}
	return p
}

// TestGolden holds the screen to what was looked at.
func TestGolden(t *testing.T) {
	lost := example()
	lost.LostAt, lost.LostWhy = start.Add(2*time.Second), "connection refused"
	fresh := &Picture{Router: "http://127.0.0.1:8081", LostAt: start, LostWhy: "connection refused"}
	small := example()
	small.Totals, small.Actions, small.Rollout, small.Outages, small.Verdict, small.SLOs = nil, nil, nil, nil, nil, nil
	for name, c := range map[string]struct {
		p *Picture
		v View
	}{
		"80x24": {example(), View{Width: 80, Height: 24}}, "120x40": {example(), View{Width: 120, Height: 40}}, "40x15": {example(), View{Width: 40, Height: 15}},
		"targets": {example(), View{Width: 80, Height: 24, Part: Targets, Skip: 2}}, "once": {example(), View{Width: 80}}, "lost": {lost, View{Width: 80, Height: 24}},
		"never": {fresh, View{Width: 80, Height: 24}}, "help": {example(), View{Width: 80, Height: 24, Help: true}}, "parts": {small, View{Width: 80, Height: 24}},
		"colour": {example(), View{Width: 80, Height: 24, Colour: true}},
	} {
		c.v.Now = start.Add(16 * time.Second)
		got := Draw(c.p, c.v) + "\n"
		path := "testdata/" + name + ".txt"
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || got != string(want) {
			t.Errorf("%s has changed (%v); look at it and run with -update:\n%s", path, err, got)
		}
	}
}

var ours = regexp.MustCompile("\x1b\\[[0-9;]+m")

// TestHostile: whatever names are and however large the screen is, it has its lines,
// each fits, and nothing of others reaches the terminal but text.
func TestHostile(t *testing.T) {
	bits := rapid.SampledFrom([]string{"a", "\x1b[2J", "\x1b]0;x\x07", "\u202e", "\u200d", "漢字", "👩‍👩‍👧", "e\u0301\u0301\u0301", "\n", "\r", "\t", "\xff", "\u009b31m", "\x00", "️⃣", "🇸🇪", " ", "<b>", "%s"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(strings.Join(rapid.SliceOfN(bits, 0, 8).Draw(t, "bits"), ""), rapid.SampledFrom([]int{1, 1, 2, 500}).Draw(t, "times"))
	})
	rapid.Check(t, func(t *rapid.T) {
		p := example()
		p.Router, p.State.Version, p.State.ConfigID, p.State.Refused = text.Draw(t, "router"), text.Draw(t, "version"), text.Draw(t, "id"), text.Draw(t, "refused")
		p.LostWhy = text.Draw(t, "why")
		if rapid.Bool().Draw(t, "lost") {
			p.LostAt = start
		}
		for i := range p.State.Targets {
			x := &p.State.Targets[i]
			x.Name, x.Domain, x.Breaker, x.CoolKind = text.Draw(t, "name"), text.Draw(t, "domain"), text.Draw(t, "breaker"), text.Draw(t, "kind")
		}
		for i := range p.State.Workloads {
			x := &p.State.Workloads[i]
			x.Name, x.Priority, x.Lane.Name = text.Draw(t, "name"), text.Draw(t, "priority"), text.Draw(t, "lane")
		}
		o := &p.Outages[0]
		o.ID, o.State, o.Words, o.Scope[0].Name, o.Suspects[0].Text = text.Draw(t, "id"), text.Draw(t, "state"), text.Draw(t, "words"), text.Draw(t, "scope"), text.Draw(t, "text")
		p.Verdict.Head, p.Verdict.Text, p.SLOs[0].Name, p.SLOs[0].Burning = text.Draw(t, "head"), text.Draw(t, "verdict"), text.Draw(t, "slo"), text.Draw(t, "burning")
		(*p.Actions)[0].Why, (*p.Actions)[0].Subject = text.Draw(t, "why"), text.Draw(t, "subject")
		p.Rollout.Why, p.Rollout.Version = text.Draw(t, "why"), text.Draw(t, "version")
		v := View{
			Width: rapid.IntRange(0, 200).Draw(t, "width"), Height: rapid.IntRange(0, 60).Draw(t, "height"), Part: Part(rapid.IntRange(0, int(parts)-1).Draw(t, "part")),
			Skip: rapid.IntRange(0, 100).Draw(t, "skip"), Help: rapid.Bool().Draw(t, "help"), Colour: rapid.Bool().Draw(t, "colour"), Now: start,
		}
		screen := Draw(p, v)
		if !v.Colour && strings.Contains(screen, "\x1b") {
			t.Fatal("an escape without colours")
		}
		lines := strings.Split(ours.ReplaceAllString(screen, ""), "\n")
		if v.Height > 0 && len(lines) != max(v.Height, leastHeight) {
			t.Fatalf("%d lines of %d", len(lines), v.Height)
		}
		for _, l := range lines {
			if ansi.StringWidth(l) > max(v.Width, leastWidth) || !utf8.ValidString(l) {
				t.Fatalf("%d columns of %d: %q", ansi.StringWidth(l), v.Width, l)
			}
			for _, r := range l {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Fatalf("%U is in %q", r, l)
				}
			}
		}
	})
}

// answers are those of a router, by path; what is not there is absent.
type answers map[string]string

func (a answers) get(_ context.Context, path string) ([]byte, error) {
	if err := a["error"]; err != "" {
		return nil, errors.New(err)
	}
	if text, ok := a[path]; ok {
		return []byte(text), nil
	}
	return nil, ErrAbsent
}

func state(at time.Time, inbound, attempts int) string {
	return fmt.Sprintf(`{"at":%q,"workloads":[{"name":"team","inbound":%d,"attempts":%d}],"targets":[]}`, at.Format(time.RFC3339Nano), inbound, attempts)
}

// TestRead: rates are differences, none is made of a router that was started again,
// and one that goes away leaves its last picture.
func TestRead(t *testing.T) {
	a := answers{"/api/v1/state": state(start, 100, 200)}
	p := Read(t.Context(), a.get, &Picture{Router: "r"}, start)
	if p.State == nil || len(p.Rates) != 0 || p.Actions != nil || p.Rollout != nil || p.Totals != nil {
		t.Fatalf("%+v", p)
	}
	a["/api/v1/state"] = state(start.Add(2*time.Second), 110, 230)
	a["/api/v1/outages"] = `{"outages":[{"id":"O-1","state":"degraded"}]}`
	a["/api/v1/actions"] = `{"in_force":[],"ended":[]}`
	a["/api/v1/rollout"] = `{"state":"none"}`
	a["/api/v1/history/totals"] = `{"windows":[{"name":"1h"},{"name":"1m","per_second":{"offered":3}}]}`
	p = Read(t.Context(), a.get, p, start)
	if r := p.Rates["team"]; r.Inbound != 5 || r.Attempts != 15 || len(p.open()) != 1 || p.Actions == nil || p.Rollout != nil || p.Totals.PerSecond.Offered != 3 {
		t.Errorf("%+v", p)
	}
	a["error"] = "refused"
	gone := Read(t.Context(), a.get, p, start.Add(5*time.Second))
	gone = Read(t.Context(), a.get, gone, start.Add(9*time.Second))
	if gone.State != p.State || !gone.LostAt.Equal(start.Add(5*time.Second)) || gone.LostWhy != "refused" {
		t.Errorf("%+v", gone)
	}
	delete(a, "error")
	a["/api/v1/state"] = state(start.Add(20*time.Second), 3, 3)
	back := Read(t.Context(), a.get, gone, start.Add(20*time.Second))
	if !back.LostAt.IsZero() || len(back.Rates) != 0 || back.State.Workloads[0].Inbound != 3 {
		t.Errorf("%+v", back)
	}
	a["/api/v1/state"] = state(start.Add(22*time.Second), 2, 9) // started again, and quick
	if again := Read(t.Context(), a.get, back, start.Add(22*time.Second)); len(again.Rates) != 0 {
		t.Errorf("%+v", again.Rates)
	}
	a["/api/v1/state"] = "<html>"
	if p := Read(t.Context(), a.get, back, start); p.LostWhy == "" {
		t.Error("a page is taken for a state")
	}
}
