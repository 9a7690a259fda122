// Package watch keeps the detectors running beside the request path: it counts the
// facts that the path states, lets the detectors look at them once a second, and
// says what is new in the log, in the metrics, and to whoever asks. What is wrong is
// decided in package detect; watch decides only which public incidents look alike.
//
// A fact costs the request one bounded lock and no allocation: the detectors work on
// counts that were set aside, and never hold that lock.
package watch

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/incident"
)

// every is how often the detectors look.
const every = time.Second

// Options are what a watch is made of.
type Options struct {
	Config detect.Config
	Log    *slog.Logger
	// Found counts a finding of a detector; nil for not.
	Found func(detector string)
	// Noticed hears everything that is new; nil for nobody.
	Noticed func(detect.Notice)
	// Library opens the incidents that outages are compared with; nil for none.
	Library func() (*incident.Library, error)
}

// Watch is safe for concurrent use.
type Watch struct {
	opt Options

	counting sync.Mutex // held for the time of a few additions
	tally    *detect.Tally

	judging  sync.Mutex
	detector *detect.Detector
	spare    *detect.Tally
	last     time.Time
}

// New returns a watch that has seen nothing.
func New(o Options) *Watch {
	most := o.Config.MaxSeries
	return &Watch{opt: o, tally: detect.NewTally(most), spare: detect.NewTally(most), detector: detect.New(o.Config)}
}

// Listener hears the flow.
func (w *Watch) Listener() *event.Listener {
	return &event.Listener{Attempt: w.attempt, Request: w.request, Transition: w.moved}
}

func (w *Watch) request(r *event.Request) {
	w.counting.Lock()
	w.tally.Request(r)
	w.counting.Unlock()
}

func (w *Watch) attempt(a *event.Attempt) {
	w.counting.Lock()
	w.tally.Attempt(a)
	w.counting.Unlock()
}

func (w *Watch) moved(t event.Transition) {
	w.counting.Lock()
	w.tally.Moved(t)
	w.counting.Unlock()
}

// Use tells what belongs together from now on.
func (w *Watch) Use(t detect.Topology) {
	w.judging.Lock()
	defer w.judging.Unlock()
	w.detector.Use(t)
}

// Objectives says which SLOs there are from now on.
func (w *Watch) Objectives(list []detect.SLO) {
	w.judging.Lock()
	defer w.judging.Unlock()
	w.detector.Objectives(list)
	w.spare.Judge(list)
	w.counting.Lock()
	defer w.counting.Unlock()
	w.tally.Judge(list)
}

// Budgets are the SLOs with what is left of their budgets.
func (w *Watch) Budgets() []detect.Budget {
	w.judging.Lock()
	defer w.judging.Unlock()
	return w.detector.Budgets()
}

// Tell notes a change that outages may have to do with.
func (w *Watch) Tell(c detect.Change) {
	w.judging.Lock()
	defer w.judging.Unlock()
	w.detector.Tell(c)
}

// Poll lets time pass; it looks once a second however often it is called.
func (w *Watch) Poll(now time.Time) {
	for _, n := range w.tick(now) {
		w.say(n)
	}
}

func (w *Watch) tick(now time.Time) []detect.Notice {
	w.judging.Lock()
	defer w.judging.Unlock()
	if now.Sub(w.last) < every {
		return nil
	}
	w.last = now
	w.counting.Lock()
	w.tally, w.spare = w.spare, w.tally
	w.counting.Unlock()
	return w.detector.Tick(now, w.spare)
}

func (w *Watch) say(n detect.Notice) {
	attrs := []any{"component", "watch", "outage", n.Outage, "what", n.What, "state", string(n.State), "scope", detect.Names(n.Scope)}
	if n.Score > 0 {
		attrs = append(attrs, "suspect", n.Source.String(), "score", n.Score)
	}
	if n.Detector != "" {
		attrs = append(attrs, "detector", n.Detector)
		if w.opt.Found != nil {
			w.opt.Found(n.Detector)
		}
	}
	w.opt.Log.Warn("outage", append(attrs, "text", n.Text)...)
	if w.opt.Noticed != nil {
		w.opt.Noticed(n)
	}
}

// Open is how many outages have not ended.
func (w *Watch) Open() int {
	w.judging.Lock()
	defer w.judging.Unlock()
	return w.detector.Open()
}

// Outage is one with the public incidents that look like it.
type Outage struct {
	detect.Outage
	Similar []Similar `json:"similar"`
}

// Report is everything that is known.
type Report struct {
	At      time.Time `json:"at"`
	Open    int       `json:"open"`
	Outages []Outage  `json:"outages"` // the newest first
}

// Report lists the outages.
func (w *Watch) Report(now time.Time) Report {
	w.judging.Lock()
	list := w.detector.Outages()
	w.judging.Unlock()
	r := Report{At: now, Outages: []Outage{}}
	for _, o := range list {
		if o.Ended == nil {
			r.Open++
		}
		r.Outages = append(r.Outages, Outage{o, w.similar(&o)})
	}
	return r
}
