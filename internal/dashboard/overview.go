package dashboard

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/history"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/watch"
)

type overview struct {
	Verdict    verdict
	Windows    []string // names of the columns
	Known      []string // how much of each the router has seen, "" for all of it
	Flow       []flow
	Past       *past
	Since      since
	Outages    []watch.Outage // open
	Actions    []steer.Action // in force
	Rollout    *rollout.Status
	Objectives []detect.Budget
	Full       float64 // share of the memory
}

// flow is a row: one kind of requests in each window.
type flow struct {
	Name, What, Tone string
	Cells            []cell
}

type cell struct {
	Known bool
	Rate  float64
	Count int64
	Share float64 // of what was offered
}

// since is what the workloads have counted since the start, for routers that keep
// no history.
type since struct{ Inbound, Attempts, Repeats, Refused int64 }

// noticed is what the detectors say, nothing without them.
func (o Options) noticed(now time.Time) watch.Report {
	if o.Outages == nil {
		return watch.Report{}
	}
	return o.Outages(now)
}

// verdict serves the first sentence to programs.
func (o Options) verdict(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	last, _ := o.lastMinute(now)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(judge(o.State(now), o.noticed(now), last)) // a reader that has left is told nothing
}

func showOverview(o Options, f *frame, r *http.Request) (string, any) {
	v := overview{}
	noticed := o.noticed(f.Now)
	last, windows := o.lastMinute(f.Now)
	v.Verdict = judge(f.State, noticed, last)
	v.Flow = flows(windows)
	for _, w := range windows {
		v.Windows = append(v.Windows, windowName(w))
		known := ""
		if s := time.Duration(w.Known * float64(w.Seconds) * float64(time.Second)); w.Known < 0.95 {
			known = span(s)
		}
		v.Known = append(v.Known, known)
	}
	v.Past = o.past(f.Now, "", flowSeries, r.URL.Query().Get("range"))
	for _, w := range f.State.Workloads {
		v.Since.Inbound += w.Inbound
		v.Since.Attempts += w.Attempts
		v.Since.Repeats += w.Repeats
		v.Since.Refused += w.Refused + w.Unread
	}
	for _, one := range noticed.Outages {
		if one.Ended == nil {
			v.Outages = append(v.Outages, one)
		}
	}
	v.Actions, _ = o.actions(f.Now)
	if o.Rollout != nil {
		if s, ok := o.Rollout(f.Now); ok {
			v.Rollout = &s
		}
	}
	if o.Objectives != nil {
		v.Objectives = o.Objectives()
	}
	if f.State.Limit > 0 {
		v.Full = float64(f.State.Reserved) / float64(f.State.Limit)
	}
	return "Overview", v
}

func windowName(w history.Window) string {
	switch w.Name {
	case "1m":
		return "last minute"
	case "1h":
		return "last hour"
	case "24h":
		return "last day"
	}
	return w.Name
}

// flows turns windows into rows.
func flows(windows []history.Window) []flow {
	if len(windows) == 0 {
		return nil
	}
	rows := []flow{
		{Name: "offered", What: "came in"},
		{Name: "goodput", What: "answered as it should be", Tone: "good"},
		{Name: "attempts", What: "calls to targets"},
		{Name: "refused", What: "turned away by the router", Tone: "warn"},
		{Name: "degraded", What: "answered by a last resort", Tone: "warn"},
		{Name: "failed", What: "not answered", Tone: "bad"},
	}
	for _, w := range windows {
		counts := []int64{w.Counts.Offered, w.Counts.Goodput, w.Counts.Attempts, w.Counts.Refused, w.Counts.Degraded, w.Counts.Failed}
		for i := range rows {
			c := cell{Known: w.PerSecond != nil, Count: counts[i]}
			if p := w.PerSecond; p != nil {
				c.Rate = []float64{p.Offered, p.Goodput, p.Attempts, p.Refused, p.Degraded, p.Failed}[i]
			}
			if w.Counts.Offered > 0 {
				c.Share = float64(counts[i]) / float64(w.Counts.Offered)
			}
			rows[i].Cells = append(rows[i].Cells, c)
		}
	}
	return rows
}

// actions are those in force, the next to end first, and those that ended, the
// last first.
func (o Options) actions(now time.Time) (inForce, ended []steer.Action) {
	if o.Actions == nil {
		return nil, nil
	}
	all := o.Actions(now)
	inForce, ended = slices.Clone(all.InForce), slices.Clone(all.Ended)
	slices.SortStableFunc(inForce, func(a, b steer.Action) int { return a.Until.Compare(b.Until) })
	slices.SortStableFunc(ended, func(a, b steer.Action) int { return b.Ended.Compare(*a.Ended) })
	return inForce, ended
}
