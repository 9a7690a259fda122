package repeat

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func traffic(inbound, repeats int64) Traffic {
	return Traffic{Inbound: inbound, Repeats: repeats, Seconds: 60}
}

func TestEnter(t *testing.T) {
	quiet := Suspect{Name: "quiet", Traffic: traffic(3000, 0)}
	for name, tc := range map[string]struct {
		all        []Suspect
		overloaded bool
		want       string
	}{
		"storm":                          {[]Suspect{{Name: "suite", Traffic: traffic(4900, 4800)}, quiet}, false, "49.0 inbound"},
		"storm without others":           {[]Suspect{{Name: "suite", Traffic: traffic(4900, 4800)}}, false, ""},
		"the others are idle":            {[]Suspect{{Name: "suite", Traffic: traffic(4900, 4800)}, {Name: "idle"}}, false, ""},
		"few repeats":                    {[]Suspect{{Name: "suite", Traffic: traffic(150, 110)}, {Name: "a", Traffic: traffic(10, 0)}}, false, ""},
		"a small part":                   {[]Suspect{{Name: "suite", Traffic: traffic(300, 240)}, {Name: "a", Traffic: traffic(9000, 0)}}, false, ""},
		"two calls each":                 {[]Suspect{{Name: "suite", Traffic: traffic(4000, 2000)}, quiet}, false, ""},
		"two calls each, overloaded":     {[]Suspect{{Name: "suite", Traffic: traffic(4000, 2000)}, quiet}, true, "100 % of all repeats"},
		"the lesser one, overloaded":     {[]Suspect{{Name: "suite", Traffic: traffic(2000, 900)}, {Name: "a", Traffic: traffic(3000, 1400)}}, true, ""},
		"an operator has placed it":      {[]Suspect{{Name: "suite", Traffic: traffic(4900, 4800), Placed: true}, quiet}, false, ""},
		"nothing but repeats in a while": {[]Suspect{{Name: "suite", Traffic: traffic(4800, 4800)}, quiet, quiet}, false, "4800.0 inbound"},
	} {
		var w Watch
		moves := w.Judge(start, tc.overloaded, tc.all)
		got := ""
		for _, m := range moves {
			if m.Name == "suite" && m.In {
				got = m.Why
			}
		}
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A workload leaves when it has been calm for ten minutes near its load at entry.
// Calm at a lower load it stays, which is said once.
func TestLeave(t *testing.T) {
	for name, tc := range map[string]struct {
		inbound, repeats int64
		left             time.Duration // 0 for never
		stays            int
	}{
		"calm at load":      {600, 60, 10 * time.Minute, 0},
		"calm at half":      {300, 30, 0, 1},
		"still repeating":   {1200, 600, 0, 0},
		"no traffic at all": {0, 0, 0, 1},
	} {
		var w Watch
		left, stays := time.Duration(0), 0
		for at := time.Duration(0); at < 40*time.Minute && left == 0; at += 10 * time.Second {
			s := Suspect{Name: "suite", Traffic: traffic(tc.inbound, tc.repeats), Quarantined: true, Demand: 10}
			for _, m := range w.Judge(start.Add(at), false, []Suspect{s}) {
				switch {
				case m.Stay:
					stays++
				case !m.In:
					left = at
				}
			}
		}
		if left != tc.left || stays != tc.stays {
			t.Errorf("%s: left at %v, said %d times that it stays; want %v and %d", name, left, stays, tc.left, tc.stays)
		}
	}
}

// A relapse begins the ten minutes anew, and no workload is moved in or out twice
// in a row.
func TestWatchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Watch
		in, calm := false, time.Duration(0)
		for i := range rapid.IntRange(1, 300).Draw(t, "ticks") {
			inbound := rapid.Int64Range(0, 2000).Draw(t, "inbound")
			s := Suspect{Name: "a", Traffic: traffic(inbound, rapid.Int64Range(0, inbound).Draw(t, "repeats")), Quarantined: in, Demand: 1}
			other := Suspect{Name: "b", Traffic: traffic(100, 0)}
			moves := w.Judge(start.Add(time.Duration(i)*10*time.Second), rapid.Bool().Draw(t, "overloaded"), []Suspect{s, other})
			if calm += 10 * time.Second; !in || s.Traffic.Amplification() > leaveAmplification {
				calm = 0
			}
			for _, m := range moves {
				switch {
				case m.Name != "a" || m.Why == "":
					t.Fatalf("%+v", m)
				case m.Stay && !in, m.In && in, !m.In && !in:
					t.Fatalf("in %v: %+v", in, m)
				case !m.Stay && !m.In && calm < leaveCalm:
					t.Fatalf("left behind %v of calm", calm)
				case !m.Stay:
					in = m.In
				}
			}
		}
	})
}
