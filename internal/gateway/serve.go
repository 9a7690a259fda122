// Package gateway is the client side of the router: it reads one request,
// walks it down the pipeline and writes one answer.
//
//	accept -> identify -> admit -> plan -> attempt -> settle -> answer
//
// serve below is that line, top to bottom; plan, attempt and settle happen
// in package attempt. The gateway keeps no state of its own: everything that
// lasts belongs to the Snapshot, which a request loads once and keeps to its
// end, so that a reload never touches a request in flight.
package gateway

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/attempt"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/wire"
	"github.com/hourthree/hourthree/internal/workload"
)

// Snapshot is one configuration, ready to serve. It is immutable; the targets
// and workloads it points to are shared with the snapshots before and after.
type Snapshot struct {
	Directory *workload.Directory
	Models    map[string]*route.Model
	Wildcard  *route.Model // serves names that are not configured, nil for none
	Pass      []PassRoute  // longest prefix first
	Upstreams map[*route.Target]*attempt.Upstream
	Attempts  int           // upstream calls a request may cause
	Total     time.Duration // bound on a whole request
	Writable  time.Duration // bound on one write to a client
	MaxBody   int64         // bytes of a request body that is held
	MaxUpload int64         // bytes of one that is passed on as it comes
	Quotas    Quotas
	// Rollout is the configuration that is rolled out beside this one, nil for none.
	Rollout *Rollout
}

// PassRoute sends paths without a model in the body to one provider.
type PassRoute struct {
	Prefix string
	Model  *route.Model // one target, without a model name
}

// Gateway serves clients. It is safe for concurrent use.
type Gateway struct {
	Ledger   *admit.Ledger
	Line     *admit.Line // bounded wait for a target's slot, nil for none
	Runner   *attempt.Runner
	Listener *event.Listener
	Clients  *fault.Clients
	Random   func() float64
	// Trace finds a request's place in its trace; nil when nobody traces.
	Trace func(http.Header) *event.Trace

	snapshot atomic.Pointer[Snapshot]
	inflight atomic.Int64
	arms     Arms
	shed     atomic.Int64
	shedding atomic.Pointer[Shedding]
	reading  bodies
}

// Use makes s the snapshot of every request that starts from now on.
func (g *Gateway) Use(s *Snapshot) { g.snapshot.Store(s) }

// Snapshot is the one in force.
func (g *Gateway) Snapshot() *Snapshot { return g.snapshot.Load() }

// Interrupt ends the reading of bodies that are still arriving, once the
// requests' contexts have ended: their clients are told that the router stops.
func (g *Gateway) Interrupt() { g.reading.interrupt() }

// InFlight is the number of requests being served.
func (g *Gateway) InFlight() int64 { return g.inflight.Load() }

// Shed is the number of requests refused since the start for want of memory or
// of a target's room. Those in quarantine are left out: they have a share of either.
// So are those that an operator has refused.
func (g *Gateway) Shed() int64 { return g.shed.Load() }

// inbound is one request on its way through the gateway.
type inbound struct {
	*Gateway
	*Snapshot
	w     http.ResponseWriter
	ctl   *http.ResponseController
	r     *http.Request
	where place // what the path asks for
	start time.Time
	trace *event.Trace // nil when nobody traces

	id       string
	key      *workload.Key
	workload *workload.Workload // of the key
	arm      event.Arm          // which of two configurations serves it
	held     bool               // it counts among the requests of its arm
	arrival  workload.Arrival
	ticket   *admit.Ticket
	coming   slowBody
	upload   *upload // a body too large to be held, nil otherwise
	body     []byte
	envelope wire.Envelope
	model    *route.Model
	deadline time.Time
	repeats  int       // the caller's own retry count
	again    time.Time // when a limit of its own has room for it, zero for one that met none
	out      attempt.Outcome
	sent     sent
	over     bool     // refused for a limit or a lane of the caller's own
	values   []string // of a failure's headers
}

// sent is what the client was given.
type sent struct {
	status   int
	class    fault.Class
	reason   string
	degraded string
	bytes    int64
}

// serve walks one request down the pipeline. Each stage either passes it on
// or has answered it.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, where place) {
	x := &inbound{Gateway: g, Snapshot: g.snapshot.Load(), w: w, r: r, where: where, start: time.Now()}
	g.inflight.Add(1)
	defer x.finish()
	x.accept()
	if x.identify() && x.admit() && x.parse() && x.plan() {
		x.attempt(r.Context(), x.model)
		x.answer()
	}
}

// accept notes what the request says about itself.
func (x *inbound) accept() {
	x.ctl = http.NewResponseController(x.w)
	if x.r.Body != nil && x.r.Body != http.NoBody {
		// Behind an early refusal net/http reads what is left of the body.
		_ = x.ctl.SetReadDeadline(time.Now().Add(bodyPause)) // writers without deadlines have none to miss
	}
	x.id = requestID(x.r.Header)
	if x.Trace != nil {
		x.trace = x.Trace(x.r.Header)
	}
	x.w.Header().Set("X-Request-Id", x.id)
	x.repeats = inboundAttempt(x.r.Header)
	x.until()
}

// until is when the request must have ended.
func (x *inbound) until() {
	x.deadline = x.start.Add(x.Total)
	if d, ok := callerDeadline(x.r.Header); ok && d < x.Total {
		x.deadline = x.start.Add(d)
	}
}

// identify finds the workload of the key.
func (x *inbound) identify() bool {
	if !x.known() {
		return false
	}
	arrival, refusal, ok := x.workload.Begin(x.start, x.repeats > 0, first(x.r.Header, "Idempotency-Key"))
	x.arrival = arrival
	return (ok || x.limited(refusal)) && x.wanted()
}

// known finds whose key it is.
func (x *inbound) known() bool {
	shown := apiKey(x.r.Header)
	x.key = x.Directory.Identify(shown)
	if x.Rollout != nil {
		x.choose(shown)
	}
	if x.key == nil {
		x.reject(http.StatusUnauthorized, fault.Client, "invalid_api_key",
			"The API key is missing or not known to this router. Send it as Authorization: Bearer, x-api-key or api-key.", "")
		return false
	}
	x.workload = x.key.Workload
	return true
}

// admit takes the limits of the workload and of the key, and memory, before a
// byte of the body is read; then it reads the body.
func (x *inbound) admit() bool {
	input, output := x.foresee(x.r.ContentLength, 0)
	ticket, refusal := x.key.Admit(x.start, x.Ledger, BaseLease, input+output)
	if x.ticket = ticket; ticket == nil {
		return x.limited(refusal)
	}
	if x.r.Body != nil && x.r.Body != http.NoBody && !x.read() {
		return false
	}
	ticket.Lease().Admitted()
	x.hold()
	refusal, ok := x.workload.Read(x.start, &x.arrival, x.where.asked(), x.body)
	return ok || x.limited(refusal)
}

// read leases and reads the body. A body that no target may repeat and that
// is large is passed on as it comes instead.
func (x *inbound) read() bool {
	body := &x.coming
	body.begin(x.ctl, x.r.Body, x.start)
	if x.where.pass && !isJSON(x.r.Header) && (x.r.ContentLength < 0 || x.r.ContentLength > holdUpload) {
		if x.r.ContentLength > x.MaxUpload {
			return x.unread(admit.ErrTooLarge{Limit: x.MaxUpload})
		}
		x.upload = newUpload(body, x.MaxUpload)
		return true
	}
	x.reading.add(x.r.Context(), body)
	var err error
	x.body, err = admit.ReadBody(body, x.r.ContentLength, x.MaxBody, x.ticket.Lease())
	x.reading.remove(body)
	if err != nil {
		return x.unread(err)
	}
	body.done()
	return true
}

// unread answers a body that could not be read.
func (x *inbound) unread(err error) bool {
	var large admit.ErrTooLarge
	x.w.Header().Set("Connection", "close")
	switch {
	case errors.As(err, &large):
		x.tooLarge(large)
	case errors.Is(err, admit.ErrOverload):
		return x.overloaded()
	case errors.Is(context.Cause(x.r.Context()), fault.ErrDraining):
		x.refuse(fault.Transport(fault.ErrDraining, fault.PhaseConnect), "The router is stopping and the request had not arrived whole. Nothing was done with it.")
	case x.r.Context().Err() != nil && !errors.Is(err, os.ErrDeadlineExceeded): // net/http cancels for either
		x.sent.class, x.sent.reason = fault.Canceled, "client_gone"
		x.out.Abort = true
	default:
		x.reject(http.StatusRequestTimeout, fault.Client, "body_incomplete", "The request body did not arrive whole and in time.", "")
	}
	return false
}

// tooLarge names the bound that was passed and the setting behind it.
func (x *inbound) tooLarge(err admit.ErrTooLarge) {
	setting := "http.max_body"
	if err.Limit == x.MaxUpload && x.where.pass && !isJSON(x.r.Header) {
		setting = "http.max_upload"
	}
	x.reject(http.StatusRequestEntityTooLarge, fault.Client, "body_too_large", err.Error()+". Raise "+setting+" if such requests are meant to pass.", "")
}

func (x *inbound) overloaded() bool {
	x.refuse(fault.Verdict{Class: fault.Overload, Reason: "memory"}, "The router's memory for request bodies is taken. The request was not read.")
	return false
}

// parse peeks into the body and finds the model.
func (x *inbound) parse() bool {
	if x.where.model != "" { // the path names it
		x.envelope.Model = x.where.model
	}
	if x.upload != nil || !x.where.json && !isJSON(x.r.Header) || x.where.pass && len(x.body) == 0 {
		return true
	}
	env, err := wire.Peek(x.body)
	var bad *wire.BodyError
	if errors.As(err, &bad) {
		x.reject(http.StatusBadRequest, fault.Client, bad.Code, bad.Message, bad.Param)
		return false
	}
	x.envelope = env
	if !env.HasModel && x.where.model != "" {
		x.envelope.Model = x.where.model
	}
	return true
}

// plan finds the model's targets and takes the limits that depend on it.
func (x *inbound) plan() bool {
	name := x.envelope.Model
	if x.where.model != "" {
		name = x.where.model
	}
	if name == "" {
		return x.planPass()
	}
	x.model = x.Models[name]
	if x.model == nil {
		x.model = x.Wildcard
	}
	if x.model == nil || !x.workload.Allows(x.model.Name) {
		x.reject(http.StatusNotFound, fault.Client, "model_not_found",
			"The model "+quote(name)+" is not served here. GET /v1/models lists what is.", "model")
		return false
	}
	return x.enter()
}

// planPass finds the provider of a path without a model.
func (x *inbound) planPass() bool {
	if !x.where.pass {
		x.reject(http.StatusBadRequest, fault.Client, "missing_model", "The body has no \"model\".", "model")
		return false
	}
	if x.workload.Restricted() { // its list names models, and this body shows none
		x.reject(http.StatusForbidden, fault.Client, "path_not_allowed",
			"This key is limited to some models, so paths whose body names no model in JSON are not open to it.", "")
		return false
	}
	for _, p := range x.Pass {
		if hasPathPrefix("/v1"+x.where.path, p.Prefix) {
			x.model = p.Model
			return x.enter()
		}
	}
	x.reject(http.StatusNotFound, fault.Client, "unknown_path",
		"No provider is configured for "+quote("/v1"+x.where.path)+". Name one under passthrough in the configuration.", "")
	return false
}

// attempt makes the upstream calls.
func (x *inbound) attempt(ctx context.Context, m *route.Model) {
	req := x.request(m)
	x.Runner.Run(ctx, req, x.w, &x.out)
}

func (x *inbound) request(m *route.Model) *attempt.Request {
	lane := x.workload.Placement().Limit() // in which no extra attempt is paid for
	input, output := x.foresee(int64(len(x.body)), int64(x.envelope.MaxTokens))
	q := &attempt.Request{
		ID: x.id, Method: x.r.Method, Endpoint: x.where.endpoint, Path: x.where.path, RawQuery: x.r.URL.RawQuery,
		Header: x.r.Header, Control: x.ctl, Body: x.body, Envelope: &x.envelope, Ticket: x.ticket,
		Model: m, Workload: x.workload, Priority: x.workload.Priority(), Upstreams: x.Upstreams,
		Tokens: input + output, Prompt: input, Usage: x.ticket.Metered(),
		Start: x.start, Deadline: x.deadline, Total: x.start.Add(x.Total), Writable: x.Writable,
		Repeat: x.arrival.Repeat() || lane > 0, Lane: lane, Attempts: x.Attempts, Prior: x.out.Notes, Line: x.Line, Caller: x.caller(), Trace: x.trace, Arm: x.arm,
	}
	q.Reserve = m == x.model && m.Fallback != nil // the last resort is to have its call
	q.Class = classOf(x.envelope, len(x.body))
	if x.upload != nil {
		q.Upload, q.UploadLength, q.Attempts = x.upload, x.r.ContentLength, 1
	}
	return q
}
