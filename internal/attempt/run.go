// Package attempt is the life of one request after admission: it asks the
// model for the next target, makes the upstream call under its timers, judges
// the answer, and either passes it to the client or moves on. At most
// Limit calls are made for a request; once content has reached the client
// nothing moves any more, and a broken answer says so in-band.
//
// plan.go is the pure retry decision, watch.go the timers, exchange.go one
// upstream call, unary.go and stream.go the two ways an answer is passed on.
// A Runner is immutable and safe for concurrent use; everything else belongs
// to the request's goroutine.
package attempt

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/learn"
	"github.com/hourthree/hourthree/internal/provider"
	"github.com/hourthree/hourthree/internal/queue"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/wire"
	"github.com/hourthree/hourthree/internal/workload"
)

// Limit is the number of upstream calls made for one request at most.
const Limit = 3

// Upstream is how to speak to one target's provider and how to read it.
type Upstream struct {
	Provider *provider.Provider
	Table    *fault.Table
	Vendor   string
	Usage    bool          // token use must be known: ask streams for it
	Idle     time.Duration // silence between two reads of an answer
}

// Request is one admitted request.
type Request struct {
	ID       string
	Method   string
	Endpoint wire.Endpoint
	Path     string // after /v1
	RawQuery string
	Header   http.Header
	Control  *http.ResponseController // of the client's connection
	Body     []byte
	Envelope *wire.Envelope
	Ticket   *admit.Ticket // leave to make calls; its lease pays for Body and for what is held of the answer
	Model    *route.Model
	Workload *workload.Workload
	Priority queue.Priority
	// Upstreams has every target of Model and of its fallbacks.
	Upstreams map[*route.Target]*Upstream
	Class     learn.Class
	Tokens    int64 // estimate, prompt and answer
	Prompt    int64 // that of the prompt alone
	Usage     bool  // a limit of the caller's needs the real use
	Start     time.Time
	Deadline  time.Time     // for everything until content is sent
	Total     time.Time     // for the rest of a stream
	Writable  time.Duration // of each write to the client; a slower reader is cut off
	Repeat    bool          // the caller repeats a request of its own: no extra attempt is paid for
	// Lane is the share of a target's slots that the workload's calls may hold
	// together in quarantine; 0 for one that is not.
	Lane     float64
	Attempts int // allowed, at most Limit, those of Prior included
	// Reserve keeps the last of them for the degraded model, unless a target
	// that is proven healthy can have it.
	Reserve bool
	Prior   []Note      // attempts already made for the same request
	Line    *admit.Line // where it waits for a slot, nil for nowhere
	Caller  uint64      // hash of a caller that has no workload of its own, 0 for one that has
	// Upload streams a body that is too large to be held; nil otherwise.
	Upload       Upload
	UploadLength int64        // -1 when unknown
	Trace        *event.Trace // nil when nobody traces
}

// Upload is a request body that is read once, while the call is made.
type Upload interface {
	io.Reader
	// Whole reports that it was read to its end.
	Whole() bool
	// Watch has wait called before each read of the caller's connection, and
	// moved behind it.
	Watch(wait, moved func())
	// Err is what ended the reading before: the caller's fault, not the
	// upstream's.
	Err() error
}

// Note is one attempt as the error body lists it.
type Note = wire.AttemptNote

// Outcome is how the request ended, after every attempt.
type Outcome struct {
	Verdict   fault.Verdict
	Committed bool // content reached the client
	Abort     bool // the answer is broken: reset the connection
	Attempts  int
	Notes     []Note
	Target    string
	Content   time.Duration // start to first content sent
	BytesOut  int64
	Usage     wire.Usage
	Delivered int64     // about how many tokens of a stream reached the client
	Reopens   time.Time // when a target may take calls again, zero when unknown
	Refused   bool      // no call was possible: the verdict is the router's own
	// Upstream's answer behind Verdict, for classes that are passed on.
	Status int
	Header http.Header
	Body   []byte
}

// Runner makes the attempts.
type Runner struct {
	Listener *event.Listener
	Random   func() float64
}

// run is one request on its way. What a step leaves for the next is kept here
// and not on the stack: a stream waits below these frames, and a few bytes
// decide whether its goroutine needs 8 or 16 KiB.
type run struct {
	*Runner
	req     *Request
	out     client
	plan    plan
	model   *route.Model // walked over
	pass    route.Pass   // of model
	reserve bool         // the last call is not for every target of model
	refusal route.Refusal
	done    *Outcome
	chance  float64       // what the call in hand draws, in [0,1)
	waited  *admit.Waiter // how the call in hand got its slot, nil when it did not wait
}

// Run makes attempts until one is passed to the client or nothing is left to
// try. What it could not deliver is in done; answering it is the caller's.
func (r *Runner) Run(ctx context.Context, req *Request, w http.ResponseWriter, done *Outcome) {
	x := r.begin(req, w, done)
	x.walk(ctx)
	done.Committed, done.BytesOut = x.out.committed, x.out.bytes
}

func (r *Runner) begin(req *Request, w http.ResponseWriter, done *Outcome) *run {
	*done = Outcome{Notes: req.Prior, Attempts: len(req.Prior)}
	x := &run{Runner: r, req: req, out: client{w: w, ctl: req.Control, req: req}, done: done}
	x.plan = plan{limit: min(req.Attempts, Limit), made: len(req.Prior), policy: len(req.Model.Policy) > 0, deadline: req.Deadline}
	done.Refused = x.plan.made >= x.plan.limit // nothing left to try with: what came before stands
	x.turn(req.Model)
	return x
}

// turn begins to walk over a model's targets.
func (x *run) turn(m *route.Model) {
	x.model, x.pass = m, route.Pass{Random: x.Random}
	x.reserve = x.req.Reserve && m == x.req.Model
}

// walk goes over one model's targets, then over the content-policy fallback
// if that is what the refusal calls for.
func (x *run) walk(ctx context.Context) {
	for x.plan.made < x.plan.limit {
		attempt, cancel := context.WithCancelCause(ctx)
		call := x.pick(ctx, cancel)
		if call == nil {
			cancel(nil)
			x.refuse(ctx)
			return
		}
		fresh := x.attempt(attempt, cancel, call)
		cancel(nil)
		if !x.next(call, fresh) {
			return
		}
	}
}

// next takes note of a finished attempt and reports whether there is to be
// another one.
func (x *run) next(call *route.Call, fresh bool) bool {
	v := &x.done.Verdict
	next := x.plan.next(time.Now(), *v, x.out.committed, fresh)
	if next == stop {
		return false
	}
	if v.Class == fault.ContentPolicy {
		x.turn(x.model.Policy[0])
		return true
	}
	p := &x.pass
	p.Tried = append(p.Tried, call.Target)
	p.Avoid = append(p.Avoid, call.Target.Spec().Domain)
	if v.Reason == "connect" {
		p.Lonely = call.Target
	}
	if next == again {
		p.Again = call.Target
	}
	return true
}

func (x *run) query(cancel context.CancelCauseFunc) route.Query {
	q := route.Query{
		Now: time.Now(), Rand: x.chance, Class: x.req.Class, Tokens: x.req.Tokens, Until: x.req.Deadline,
		Cancel: cancel, Extra: x.plan.made > 0, Payer: x.req.Workload,
		Proven:  x.reserve && x.plan.made > 0 && x.plan.made == x.plan.limit-1,
		Patient: x.req.Upload != nil,
		Prompt:  x.req.Prompt,
		Flow:    x.req.Workload.Name(), Caller: x.req.Caller, Rank: uint8(x.req.Priority), Lane: x.req.Lane,
	}
	if x.req.Repeat {
		q.Payer = unpaid{}
	}
	return q
}

// unpaid is the allowance of a request that is itself a repeat: its caller
// is already in a loop, so only free diverts are made for it.
type unpaid struct{}

func (unpaid) Take(time.Time) bool { return false }
func (unpaid) Refund(time.Time)    {}
func (unpaid) Wide(time.Time) bool { return false }

// refuse ends the walk without a further call: the last attempt's verdict
// stands, and where none was made the reason is the router's own.
func (x *run) refuse(ctx context.Context) {
	r := &x.refusal
	x.done.Reopens = r.Reopens
	if x.plan.made > 0 {
		x.done.Refused = x.plan.made == len(x.req.Prior)
		return
	}
	x.done.Refused = true
	switch {
	case ctx.Err() != nil:
		x.done.Verdict = fault.Transport(cause(ctx, nil), fault.PhaseConnect)
	case r.Late > 0 && r.Open+r.Cooling+r.Full+r.Limited+r.Account+r.Credential == 0:
		x.done.Verdict = fault.Verdict{Class: fault.Deadline, Reason: "deadline_infeasible"}
	case r.Held() && r.Drained > 0:
		x.done.Verdict = fault.Verdict{Class: fault.Outage, Reason: fault.ReasonDrained}
	case r.Held():
		x.done.Verdict = fault.Verdict{Class: fault.Outage, Reason: fault.ReasonForcedOpen}
	case r.Operator() && r.Credential > 0:
		x.done.Verdict = fault.Verdict{Class: fault.Credential, Reason: "cooling_down"}
	case r.Operator():
		x.done.Verdict = fault.Verdict{Class: fault.Account, Reason: "cooling_down"}
	case r.Capacity():
		x.done.Verdict = fault.Verdict{Class: fault.Capacity, Reason: "no_capacity"}
	default:
		x.done.Verdict = fault.Verdict{Class: fault.Outage, Reason: "no_target"}
	}
}

// attempt makes one call and settles it exactly once, also when the handler
// panics below.
func (x *run) attempt(ctx context.Context, cancel context.CancelCauseFunc, call *route.Call) (fresh bool) {
	x.plan.made++
	if x.plan.made == 1 {
		x.req.Workload.Request(time.Now())
	}
	e := &exchange{run: x, call: call, cancel: cancel, start: time.Now(), tokens: -1}
	e.verdict = fault.Verdict{Class: fault.Outage, Reason: "panic"}
	defer x.settle(e)
	if call.Probe {
		e.vigil = keepVigil(ctx, func(end func(error)) { call.Left(time.Now(), end) })
		defer e.vigil.close()
		ctx, e.cancel = e.vigil.ctx, e.vigil.end
	}
	e.do(ctx)
	return e.fresh
}

// settle states the end of an attempt to everybody who must know.
func (x *run) settle(e *exchange) {
	now := time.Now()
	v := e.verdict
	timeout := e.watch.stop()
	x.correct(e.tokens)
	e.call.Settle(now, route.Result{Verdict: v, Learn: e.learn, Timeout: timeout, Tokens: e.tokens})
	x.req.Workload.Settle(now, route.BudgetResult(e.call, v, now.Sub(e.start), timeout))
	name := e.call.Target.Spec().Name
	x.done.Attempts = x.plan.made
	x.done.Verdict, x.done.Target = v, name
	if e.vigil.alone() && !x.out.committed { // what the target showed is no longer anybody's answer
		x.done.Verdict = fault.Transport(fault.ErrClientGone, fault.PhaseContent)
	}
	x.done.Status, x.done.Header, x.done.Body = e.status, e.header, e.body
	x.done.Notes = append(x.done.Notes, Note{Target: name, Class: v.Class.String(), Millis: now.Sub(e.start).Milliseconds()})
	e.fact = event.Attempt{
		RequestID: x.req.ID, Model: x.req.Model.Name, Workload: x.req.Workload.Name(), Target: name,
		Number: x.plan.made, Why: why(e.call, x.plan.made), Class: v.Class, Reason: v.Reason, Status: e.status, Detail: e.detail(),
		Start: e.start, Headers: e.headers, Content: e.content, Total: now.Sub(e.start),
		Operation: x.req.Endpoint.Operation(), Stream: x.req.Envelope.Stream, Usage: e.usage(), Trace: x.req.Trace,
	}
	x.Listener.AttemptDone(&e.fact)
}

func why(c *route.Call, number int) string {
	switch {
	case c.Last:
		return event.LastResort
	case c.Probe:
		return event.Probe
	case number == 1:
		return event.First
	case c.Divert:
		return event.Divert
	}
	return event.Retry
}

// cause is what ended a context-bound operation: the watch, an opening
// target or the client's leaving; else the operation's own error.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		if errors.Is(c, context.Canceled) {
			return fault.ErrClientGone
		}
		if errors.Is(c, route.ErrOpened) {
			return fault.ErrRedispatched
		}
		return c
	}
	return err
}
