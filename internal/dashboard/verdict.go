package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/watch"
	"github.com/hourthree/hourthree/internal/workload"
)

// verdict answers whose fault it is, in a sentence made from numbers.
type verdict struct {
	// Who is them (targets), us (the router), caller, change, unverified, calm or
	// unknown.
	Who  string   `json:"who"`
	Head string   `json:"head"` // in front of the text: Them, Us, A caller …
	Text string   `json:"text"`
	Path string   `json:"path,omitempty"` // of the page that has more
	Also []string `json:"also,omitempty"`
}

const (
	// refusing is the share of refused requests from which the router is worth a
	// sentence, crowded that of the memory: batch work is turned away from 0.70 on.
	refusing = 0.02
	crowded  = 0.70
	// failing is the success share below which a target that answers counts as failing.
	failing = 0.5
	// named is the score from which a suspect is said to be the source, and excessive
	// the part of the excess that makes a workload one while targets fail: callers
	// whose requests fail at a target are no source.
	named, excessive = 0.5, 0.2
	// enough is how many verdicts must be in a target's window to say so.
	enough = 10
)

// judge looks for the one thing to say first: an outage whose source is known, then
// what the targets and the router show by themselves.
func judge(s admin.State, noticed watch.Report, last *history.Window) verdict {
	var all []verdict
	for _, o := range noticed.Outages {
		if o.Ended == nil {
			all = append(all, blame(s, o))
		}
	}
	them, us := theirs(s, anything), ours(s, last)
	slices.SortStableFunc(all, func(a, b verdict) int { return rank(a) - rank(b) })
	for _, v := range []*verdict{them, us} {
		if v != nil && !slices.ContainsFunc(all, func(a verdict) bool {
			return a.Who == v.Who && strings.HasPrefix(a.Text, strings.TrimSuffix(v.Text, "."))
		}) {
			all = append(all, *v)
		}
	}
	if len(all) == 0 {
		return calm(s, last)
	}
	v := all[0]
	for _, more := range all[1:] {
		if len(v.Also) < 3 {
			v.Also = append(v.Also, more.Head+": "+more.Text)
		}
	}
	return v
}

// rank puts what is still bad before what only waits for its verification.
func rank(v verdict) int {
	if v.Who == "unverified" {
		return 1
	}
	return 0
}

// blame is what an outage that is not over says.
func blame(s admin.State, o watch.Outage) verdict {
	v := verdict{Path: "/outages/" + o.ID}
	if o.State == detect.Unverified {
		v.Who, v.Head, v.Text = "unverified", "Not shown to be over", o.ID+" is "+o.Words+"."
		return v
	}
	them := theirs(s, concerns(o))
	if len(o.Suspects) == 0 || o.Suspects[0].Score < named && them == nil {
		v.Who, v.Head = "unknown", "Not known yet"
		v.Text = fmt.Sprintf("%s of the requests of %s fail (%s), and nobody stands out as the source.", percent(o.Failing), detect.Names(o.Scope), o.ID)
		return v
	}
	lead := o.Suspects[0]
	switch {
	case lead.Kind == detect.Workload && (them == nil || lead.Score >= named && lead.Excess >= excessive):
		v.Who, v.Head = "caller", "A caller"
		if lead.Excess > 0.01 {
			v.Text = fmt.Sprintf("%s brings in %s of the excess", lead.Name, percent(lead.Excess))
			if lead.Amplification > 1.5 {
				v.Text += fmt.Sprintf(", %.1f requests for each distinct one", lead.Amplification)
			}
		} else {
			v.Text = fmt.Sprintf("%s of the requests of %s fail, of the others %s", percent(lead.Inside), lead.Name, percent(lead.Outside))
		}
	default:
		v.Who, v.Head = "them", "Them"
		if them != nil {
			v.Who, v.Head, v.Text = them.Who, them.Head, strings.TrimSuffix(them.Text, ".")
			if i := slices.IndexFunc(o.Suspects, func(x detect.Suspect) bool { return placed(x.Kind) }); i >= 0 {
				lead = o.Suspects[i] // the sentence is about targets
			}
		} else {
			v.Text = fmt.Sprintf("%s of the calls at %s fail, elsewhere %s", percent(lead.Inside), lead.Subject, percent(lead.Outside))
		}
	}
	v.Text += fmt.Sprintf(" (%s, suspect %s, score %.2f).", o.ID, lead.Subject, lead.Score)
	if len(o.Changes) > 0 && o.Changes[0].Score > lead.Score {
		v.Also = append(v.Also, fmt.Sprintf("A change: %s came before the onset, score %.2f.", o.Changes[0].Name, o.Changes[0].Score))
	}
	return v
}

// placed reports kinds of subjects that targets belong to.
func placed(k detect.Kind) bool {
	return k == detect.Target || k == detect.Domain || k == detect.Region || k == detect.Model
}

// concerns says of which targets of which models an outage is: those of its first
// suspect, or of its scope where that is a caller.
func concerns(o watch.Outage) func(model string, t route.State) bool {
	of := o.Scope
	if len(o.Suspects) > 0 && placed(o.Suspects[0].Kind) {
		of = []detect.Subject{o.Suspects[0].Subject}
	}
	return func(model string, t route.State) bool {
		return slices.ContainsFunc(of, func(x detect.Subject) bool {
			switch x.Kind {
			case detect.Target:
				return x.Name == t.Name
			case detect.Domain:
				return x.Name == t.Domain
			case detect.Region:
				return x.Name == t.Region
			case detect.Model:
				return x.Name == model
			case detect.All:
				return true
			}
			return false
		})
	}
}

func anything(string, route.State) bool { return true }

// down reports that a target cannot be relied on now, whoever decided that.
func down(t route.State) bool {
	seen := t.Breaker.OK + t.Breaker.Failed + t.Breaker.Slow
	return t.Drained || t.Phase == "open" || t.Phase == "half-open" || seen >= enough && t.Success < failing
}

// theirs is the model that has lost most of its targets, with who serves it still. Of
// those that are lost at least one has to be about what is asked.
func theirs(s admin.State, about func(model string, t route.State) bool) *verdict {
	states := make(map[string]route.State, len(s.Targets))
	for _, t := range s.Targets {
		states[t.Name] = t
	}
	var worst *verdict
	most := 0.0
	for _, m := range s.Models {
		var bad, held int
		asked := false
		var serving []string
		for _, name := range m.Targets {
			switch t, ok := states[name]; {
			case !ok:
			case down(t):
				bad++
				asked = asked || about(m.Name, t)
				if t.Steered == route.SteeredDrained || t.Steered == route.SteeredOpen {
					held++
				}
			default:
				serving = append(serving, name)
			}
		}
		if !asked || float64(bad)/float64(len(m.Targets)) <= most {
			continue
		}
		most = float64(bad) / float64(len(m.Targets))
		worst = &verdict{Who: "them", Head: "Them", Path: "/targets", Text: served(m, bad-held, held, serving)}
		if held == bad {
			worst.Who, worst.Head = "us", "Us"
			worst.Text = fmt.Sprintf("%d of %d targets of %s are held back by an operator.", bad, len(m.Targets), m.Name)
		}
	}
	return worst
}

func served(m admin.ModelState, bad, held int, serving []string) string {
	text := fmt.Sprintf("%d of %d targets of %s fail", bad, len(m.Targets), m.Name)
	if held > 0 {
		text += fmt.Sprintf(", %d held back by an operator", held)
	}
	text += "; "
	switch {
	case len(serving) > 3:
		return text + fmt.Sprintf("callers are served from %d others.", len(serving))
	case len(serving) > 0:
		return text + "callers are served from " + strings.Join(serving, ", ") + "."
	case m.Degraded == "message":
		return text + "callers get its fixed message."
	case m.Degraded != "":
		return text + "callers get its last resort, " + m.Degraded + "."
	}
	return text + "nothing is left to serve its callers."
}

// ours is what the router itself refuses, and for want of what.
func ours(s admin.State, last *history.Window) *verdict {
	v := &verdict{Who: "us", Head: "Us", Path: "/capacity"}
	full := 0.0
	if s.Limit > 0 {
		full = float64(s.Reserved) / float64(s.Limit)
	}
	share := 0.0
	if last != nil && last.Counts.Offered > 0 {
		share = float64(last.Counts.Refused) / float64(last.Counts.Offered)
	}
	refused := "the router refuses " + percent(share) + " of what comes in"
	switch {
	case s.Draining:
		v.Text = "this router is shutting down and takes nothing new."
	case full >= crowded && share >= refusing:
		v.Text = refused + " for want of memory: " + percent(full) + " of it is taken."
	case full >= crowded:
		v.Text = percent(full) + " of the memory for requests is taken; batch work is turned away from 70 % on."
	case s.Queued > 0 && share >= refusing:
		v.Text = fmt.Sprintf("%s, and %d wait for a free target.", refused, s.Queued)
	case share >= refusing:
		v.Text, v.Path = refused+": callers are beyond their limits, or repeat too much.", "/workloads"
		if name := quarantined(s.Workloads); name != "" {
			v.Text = refused + "; " + name + " is in quarantine."
		}
	default:
		return nil
	}
	return v
}

func quarantined(list []workload.State) string {
	for _, w := range list {
		if w.Lane.Lane == workload.Quarantine {
			return w.Name
		}
	}
	return ""
}

// calm is what is said while nothing is wrong, or nothing is known.
func calm(s admin.State, last *history.Window) verdict {
	v := verdict{Who: "calm", Head: "Nothing is wrong", Text: "Every target takes requests."}
	seen := int64(0)
	for _, w := range s.Workloads {
		seen += w.Inbound
	}
	switch {
	case seen == 0:
		v.Who, v.Head, v.Text = "unknown", "Nothing is known", "no request has come in since the router started."
	case last != nil && last.Counts.Offered > 0:
		v.Text = fmt.Sprintf("%s of what came in within the last minute was answered as it should be.", percent(float64(last.Counts.Goodput)/float64(last.Counts.Offered)))
	case last != nil:
		v.Text = "No request came in within the last minute."
	}
	return v
}

// lastMinute is the first window of the totals, nil where none is kept.
func (o Options) lastMinute(now time.Time) (*history.Window, []history.Window) {
	if o.Totals == nil {
		return nil, nil
	}
	all := o.Totals(now).Windows
	if len(all) == 0 {
		return nil, nil
	}
	return &all[0], all
}
