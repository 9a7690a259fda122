package notify

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/detect"
)

var update = flag.Bool("update", false, "write the golden files anew")

var router = about{Router: "router-1", Version: "1.0", Dashboard: "https://hourthree.example/?a=1&b=2", Labels: map[string]string{"team": "ml"}}

// example is an outage whose source has just been named, in a message that covers its
// beginning.
func example() *Message {
	s := &story{}
	scope := []detect.Subject{{Kind: detect.Model, Name: "gpt-5"}, {Kind: detect.Target, Name: "azure/gpt-5"}}
	opened, _ := s.tell(detect.Notice{At: start.Add(40 * time.Second), Outage: "O-1", Onset: start, What: "finding", State: detect.Degraded, Detector: "drop", Scope: scope,
		Text: "41.0 % of 812 fail at model gpt-5, usual is 0.3 %"})
	source, _ := s.tell(detect.Notice{At: start.Add(52 * time.Second), Outage: "O-1", Onset: start, What: "source", State: detect.Degraded, Scope: scope,
		Source: detect.Subject{Kind: detect.Workload, Name: "suite"}, Score: 0.97, Text: "source: workload suite (score 0.97): 6.1 requests come in for each distinct one; next target azure/gpt-5 (score 0.52)"})
	return &Message{Notice: source, Also: []Notice{opened}}
}

func ended(at time.Time) *Message {
	s := &story{}
	n, _ := s.tell(detect.Notice{At: at, Outage: "O-1", Onset: start, What: "closed", State: detect.Unverified, Scope: []detect.Subject{{Kind: detect.Model, Name: "gpt-5"}},
		Text: "unverified: traffic at 15 % of onset"})
	return &Message{Notice: n}
}

// TestShapes holds each shape to its golden file, which docs/webhooks.md shows.
func TestShapes(t *testing.T) {
	quarantined, _ := Change{At: start.Add(time.Minute), Who: "rule", What: "quarantine", Subject: "suite", Why: "6.1 requests for each distinct one"}.Notice()
	now := start.Add(time.Minute)
	for name, c := range map[string]struct {
		format Format
		m      *Message
	}{
		"generic": {Generic, example()}, "slack": {Slack, example()}, "alertmanager": {Alertmanager, example()},
		"generic-action": {Generic, &Message{Notice: quarantined}}, "slack-action": {Slack, &Message{Notice: quarantined}},
		"alertmanager-action": {Alertmanager, &Message{Notice: quarantined}}, "alertmanager-ended": {Alertmanager, ended(start.Add(5 * time.Hour))},
	} {
		text, err := body(c.format, c.m, router, now)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
		path := "testdata/" + name + ".json"
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s is not what is sent (%v); look at it and run with -update:\n%s", path, err, b.String())
		}
		if strings.Contains(name, "-") {
			continue
		}
		page, err := os.ReadFile("../../docs/webhooks.md")
		if err != nil || !bytes.Contains(page, bytes.TrimSpace(want)) {
			t.Errorf("docs/webhooks.md does not show %s (%v)", path, err)
		}
	}
}

// hostile is what nobody should be able to do to those who read.
const hostile = "<!channel> @channel @here <@U1> <https://evil|click> [click](https://evil) ``` & \x1b[31m\u202e\n*x*"

func hostileMessage(text string) *Message {
	m := example()
	m.Title, m.Text, m.Who, m.Subject = text, text, text, text
	m.Outage.Scope[0].Name, m.Outage.Source.Name = text, text
	m.Also[0].Title = text
	m.seal()
	m.Also[0].seal()
	return m
}

// TestHostile: mentions, links and controls of others do nothing.
func TestHostile(t *testing.T) {
	for _, f := range []Format{Slack, Alertmanager} {
		text, err := body(f, hostileMessage(hostile), router, start)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"<!", "<@U", "@channel", "@here", "<https://evil", "](https", "\x1b", `\u001b`, "\u202e"} {
			if strings.Contains(string(text), bad) && (f == Slack || bad != "<@U") {
				t.Errorf("%s: %q is in %s", f, bad, text)
			}
		}
		if f == Slack && strings.Contains(string(text), "```") {
			t.Errorf("code: %s", text)
		}
	}
	text, _ := body(Generic, hostileMessage(hostile), router, start)
	if strings.Contains(string(text), `\u001b`) || strings.Contains(string(text), "\u202e") {
		t.Errorf("controls: %s", text)
	}
}

// TestBounds: whatever is in a notice, each shape keeps to its bounds.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.SampledFrom([]string{"&", "<", "x", "é", "@", "`", "\xff", "](", "𝄞"}).Draw(t, "part"), rapid.IntRange(0, 6000).Draw(t, "length"))
		m := hostileMessage(text)
		for range rapid.IntRange(0, 7).Draw(t, "also") {
			m.Also = append(m.Also, m.Also[0])
		}
		s := slackOf(m, about{Router: clean(text, maxName), Dashboard: "https://x"})
		if len(s.Blocks) > 50 || len(s.Text) > maxFallback || !utf8.ValidString(s.Text) {
			t.Fatalf("%d blocks, %d bytes", len(s.Blocks), len(s.Text))
		}
		size := func(x *slackText, most int) {
			if x != nil && (len(x.Text) > most || x.Text == "" || !utf8.ValidString(x.Text)) {
				t.Fatalf("%d bytes: %q", len(x.Text), x.Text)
			}
		}
		for _, b := range s.Blocks {
			most := maxSection
			if b.Type == "header" {
				most = maxHeader
			}
			size(b.Text, most)
			if len(b.Fields) > 10 || len(b.Elements) > 10 {
				t.Fatalf("%d fields", len(b.Fields))
			}
			for _, f := range append(b.Fields, b.Elements...) {
				size(&f, maxField)
				if i := strings.LastIndexByte(f.Text, '&'); i >= 0 && !strings.Contains(f.Text[i:], ";") {
					t.Fatalf("an escape is cut in two: %q", f.Text[i:])
				}
			}
		}
		for _, f := range []Format{Generic, Alertmanager} {
			text, err := body(f, m, router, start)
			if err != nil || len(text) > 32<<10 {
				t.Fatalf("%s: %d bytes, %v", f, len(text), err)
			}
		}
	})
}

// TestAlertKeepsItsLabels: Alertmanager knows an outage by its labels, from the
// beginning to the end.
func TestAlertKeepsItsLabels(t *testing.T) {
	a, b := alertsOf(example(), router, start)[0], alertsOf(ended(start.Add(time.Hour)), router, start.Add(2*time.Hour))[0]
	x, _ := json.Marshal(a.Labels)
	y, _ := json.Marshal(b.Labels)
	if !bytes.Equal(x, y) || !a.StartsAt.Equal(b.StartsAt) {
		t.Errorf("%s from %s\n%s from %s", x, a.StartsAt, y, b.StartsAt)
	}
	if !a.EndsAt.After(start.Add(renewEvery)) || !b.EndsAt.Equal(start.Add(time.Hour)) {
		t.Errorf("ends at %s, %s", a.EndsAt, b.EndsAt)
	}
}

// TestStory: of the findings only the first is told.
func TestStory(t *testing.T) {
	s := &story{}
	say := func(what string, state detect.State) string {
		n, ok := s.tell(detect.Notice{At: start, Outage: "O-1", What: what, State: state, Source: detect.Subject{Kind: detect.Workload, Name: "suite"}, Score: 0.9, Text: what})
		if !ok {
			return ""
		}
		return n.Event + ", " + string(n.Severity) + ": " + n.Title
	}
	for i, c := range []struct {
		what  string
		state detect.State
		want  string
	}{
		{"finding", detect.Degraded, "opened, critical: Outage O-1 began"},
		{"finding", detect.Degraded, ""},
		{"source", detect.Degraded, "source, critical: Outage O-1: the source is workload suite"},
		{"state", detect.Improving, "state, warning: Outage O-1 is improving"},
		{"closed", detect.Unverified, "ended, warning: Outage O-1 ended, unverified"},
		{"wave", detect.Degraded, "wave, critical: Outage O-1: another wave"},
		{"finding", detect.Degraded, ""},
		{"closed", detect.Verified, "ended, info: Outage O-1 ended, verified"},
	} {
		if got := say(c.what, c.state); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}

func TestChanges(t *testing.T) {
	for _, c := range []struct{ what, why, became, want string }{
		{"quarantine", "repeats", "", "action quarantine: Quarantine of x by ops"},
		{"force-open", "hangs", "", "action force-open: Force-open of x by ops"},
		{"rollout", "success fell", "reverted", "rollout reverted: Rollout of x reverted"},
		{"rollout", "by an operator", "halted", "rollout halted: Rollout of x halted"},
		{"rollout", "promoted: it was reverted by mistake", "promoted", "rollout promoted: Rollout of x promoted"},
		{"rollout", "promoted: it was reverted by mistake: stage 2 of 4", "", ""}, {"rollout", "", "replaced", ""}, {"note", "", "", ""},
		{"configuration", "reload", "", "configuration taken: Configuration x is in force"},
	} {
		got := ""
		if n, ok := (Change{At: start, Who: "ops", What: c.what, Subject: "x", Why: c.why, Became: c.became}).Notice(); ok {
			got = string(n.Kind) + " " + n.Event + ": " + n.Title
		}
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.what, c.why, got, c.want)
		}
	}
}
