package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/wire"
	"github.com/hourthree/hourthree/internal/workload"
)

// answer deals with what the attempts left: nothing more to do when the
// answer was delivered, else a last resort or an honest error.
func (x *inbound) answer() {
	x.note(&x.out.Verdict)
	if x.out.Committed {
		x.sent.status = x.out.Status
		return
	}
	if x.upload != nil && x.upload.Err() != nil {
		x.unread(x.upload.Err())
		return
	}
	if x.degrades() && x.degraded() {
		return
	}
	v := x.out.Verdict
	switch v.Class {
	case fault.Canceled:
		x.out.Abort = true // one that only closed its sending side is not to read an empty success
		return
	case fault.Client, fault.ContentPolicy:
		x.verbatim()
		return
	}
	if until := time.Until(x.out.Reopens); !x.out.Reopens.IsZero() && !v.HasWait {
		v.Wait, v.HasWait = max(0, until), true
	}
	x.refuse(v, x.explain(v))
}

func (x *inbound) note(v *fault.Verdict) { x.sent.class, x.sent.reason = v.Class, v.Reason }

// degrades reports whether a last resort fits the failure: the caller's own
// mistake, deadline or leaving has none.
func (x *inbound) degrades() bool {
	switch x.out.Verdict.Class {
	case fault.Outage, fault.Capacity, fault.Account, fault.Credential:
		return x.model.Message != "" || x.model.Fallback != nil
	}
	return false
}

// degraded gives the configured last resort. It returns false when that has
// failed too.
func (x *inbound) degraded() bool {
	if m := x.model.Fallback; m != nil {
		if x.upload != nil && x.out.Attempts > 0 { // the body is gone
			return false
		}
		x.w.Header().Set("Hourthree-Degraded", "model")
		x.sent.degraded = "model"
		first := x.out
		x.attempt(x.r.Context(), m)
		x.note(&x.out.Verdict)
		if x.out.Committed {
			x.sent.status = x.out.Status
			return true
		}
		x.w.Header().Del("Hourthree-Degraded")
		x.sent.degraded = ""
		if x.out.Refused {
			first.Attempts, first.Notes = x.out.Attempts, x.out.Notes
			x.out = first
			x.note(&x.out.Verdict)
		}
		return false
	}
	body, contentType, ok := wire.Message(x.where.endpoint, x.envelope, x.id, x.start, x.model.Message)
	if !ok {
		return false
	}
	x.sent.degraded = "message"
	h := x.w.Header()
	h.Set("Hourthree-Degraded", "message")
	h.Set("Hourthree-Attempts", strconv.Itoa(x.out.Attempts))
	h.Set("Content-Type", contentType)
	x.write(http.StatusOK, body)
	return true
}

// verbatim passes on the upstream's own refusal of the request.
func (x *inbound) verbatim() {
	if x.out.Verdict.Reason == "bad_path" { // the router's own
		x.reject(http.StatusBadRequest, fault.Client, "bad_path",
			"The path has a segment . or .., also where it is escaped, and is not passed on. Leave it out.", "")
		return
	}
	if !json.Valid(x.out.Body) {
		x.reject(x.out.Status, x.out.Verdict.Class, x.out.Verdict.Reason, "The provider refused the request.", "")
		return
	}
	x.headers(x.out.Verdict.Class)
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("X-Should-Retry", "false")
	x.write(clientStatus(x.out.Status), x.out.Body)
}

// clientStatus is the status of a caller's mistake; an error found inside a
// 200 has none of its own.
func clientStatus(upstream int) int {
	if upstream < 400 || upstream > 499 {
		return http.StatusBadRequest
	}
	return upstream
}

func (x *inbound) explain(v fault.Verdict) string {
	switch v.Reason {
	case fault.ReasonDrained:
		return "Every target of this model is drained: an operator has taken it out of use for now."
	case fault.ReasonForcedOpen:
		return "Every target of this model is held open: an operator has taken it out of use for now."
	}
	switch v.Class {
	case fault.Deadline:
		return "The deadline of the request passed before an answer was complete."
	case fault.Credential, fault.Account:
		return "No provider accepted this router's own credentials or configuration (" + v.Reason + "). An operator must look at it; your key is not the cause."
	case fault.Capacity:
		return "Every target of this model is at its limit (" + v.Reason + ")."
	}
	return "No target of this model gave a whole answer (" + v.Reason + ")."
}

// refuse answers a verdict in the shape that this client obeys.
func (x *inbound) refuse(v fault.Verdict, message string) {
	r := fault.Refusal{Class: v.Class, Reason: v.Reason, Wait: v.Wait, Status: x.out.Status}
	if fault.Ordered(v.Reason) {
		r.Code = v.Reason
	}
	x.turnAway(r, message)
}

func (x *inbound) turnAway(r fault.Refusal, message string) {
	if (r.Class == fault.Overload && r.Reason != fault.ReasonShed || r.Reason == "no_capacity") && x.workload.Placement().Lane != workload.Quarantine { // its own share is no want of room
		x.shed.Add(1)
	}
	x.sent.class, x.sent.reason = r.Class, r.Reason
	advice := x.Clients.Advise(r, x.r.UserAgent(), x.Random())
	x.headers(r.Class)
	if advice.RetryAfter > 0 {
		seconds := strconv.FormatInt(int64((advice.RetryAfter+time.Second-1)/time.Second), 10)
		x.header("Retry-After", seconds)
		x.header("Retry-After-Ms", seconds+"000")
	}
	x.header("X-Should-Retry", "false")
	x.fail(advice.Status, wire.ErrorBody{Message: message, Type: advice.Type, Code: advice.Code, Class: r.Class.String()})
}

// reject answers a mistake of the caller that the router found itself.
func (x *inbound) reject(status int, class fault.Class, code, message, param string) {
	x.sent.class, x.sent.reason = class, code
	x.headers(class)
	x.header("X-Should-Retry", "false")
	x.fail(clientStatus(status), wire.ErrorBody{Message: message, Type: "invalid_request_error", Code: code, Param: param, Class: class.String()})
}

// failureHeaders is how many headers a failure has.
const failureHeaders = 8

// header sets one of them. Their values share one piece of memory: a refusal is
// to cost little, and half of its allocations would be these. The name is
// written as net/http writes it.
func (x *inbound) header(canonical, value string) {
	if x.values == nil {
		x.values = make([]string, 0, failureHeaders)
	}
	x.values = append(x.values, value)
	n := len(x.values)
	x.w.Header()[canonical] = x.values[n-1 : n : n]
}

func (x *inbound) headers(class fault.Class) {
	x.header("Hourthree-Class", class.String())
	x.header("Hourthree-Attempts", strconv.Itoa(x.out.Attempts))
}

func (x *inbound) fail(status int, body wire.ErrorBody) {
	body.RequestID, body.Attempts = x.id, x.out.Notes
	x.header("Content-Type", "application/json")
	x.write(status, body.JSON())
}

func (x *inbound) write(status int, body []byte) {
	x.sent.status = status
	if x.upload != nil && !x.upload.Whole() {
		x.w.Header().Set("Connection", "close")
	}
	x.header("Content-Length", strconv.Itoa(len(body)))
	if x.unreadBody() { // net/http waits for up to 256 KiB of it before it writes
		_ = x.ctl.SetReadDeadline(time.Now().Add(linger)) // writers without deadlines have none to miss
	}
	x.w.WriteHeader(status)
	n, _ := x.w.Write(body) // a client that has left is told nothing
	x.sent.bytes = int64(n)
}

// unreadBody reports a body of which nothing was read, and which may never come.
func (x *inbound) unreadBody() bool {
	return x.ticket == nil && x.r.Body != nil && x.r.Body != http.NoBody
}

// crashed turns a panic below into the end of this one request: how much of an
// answer is out nobody knows, so the connection is reset. net/http would do
// that too, but in silence, and the request would count as served.
func (x *inbound) crashed(what any) {
	x.out.Abort = true
	x.sent.class, x.sent.reason = fault.Outage, "panic"
	c := event.Crash{RequestID: x.id, What: fmt.Sprintf("%T", what), Stack: debug.Stack()}
	if err, ok := what.(runtime.Error); ok { // any other text may hold what a caller sent
		c.What = err.Error()
	}
	x.Listener.Crashed(&c)
}

// finish gives back what the request held, states its end, and resets the
// connection of a broken answer. It also runs when a stage panics.
func (x *inbound) finish() {
	if what := recover(); what != nil {
		x.crashed(what)
	}
	x.inflight.Add(-1)
	if x.upload != nil {
		if !x.out.Abort {
			_ = x.ctl.Flush() // a client that has left is told nothing
		}
		x.upload.giveUp()
	}
	use, partial, cost := x.settle()
	e := event.Request{
		ID: x.id, Method: x.r.Method, Path: x.r.URL.Path, Stream: x.envelope.Stream,
		Class: x.sent.class, Reason: x.sent.reason, Status: x.sent.status, Attempts: x.out.Attempts,
		InboundAttempt: x.repeats, Degraded: x.sent.degraded, Repeat: x.arrival.Repeat(), Over: x.over, Start: x.start, Content: x.out.Content,
		Total: time.Since(x.start), BytesIn: int64(len(x.body)), BytesOut: x.out.BytesOut + x.sent.bytes,
		InputTokens: use.Input, OutputTokens: use.Output, Partial: partial, CostUSD: cost.Dollars(),
		Operation: x.where.endpoint.Operation(), Trace: x.trace,
	}
	if x.model != nil {
		e.Model = x.model.Name
	}
	if x.out.Committed {
		e.Target = x.out.Target
	}
	if x.workload != nil {
		e.Workload = x.workload.Name()
		x.remember(time.Now())
		x.workload.End(x.out.Attempts)
	}
	x.Listener.RequestDone(&e)
	if x.out.Abort {
		panic(http.ErrAbortHandler)
	}
}

// remember keeps in mind what the caller may repeat. Its own mistake is none of
// it: no retry loop repeats that, and refusing it costs as much as saying why. One
// that waits for its own limit, as it was told, repeats nothing.
func (x *inbound) remember(now time.Time) {
	switch {
	case x.sent.class == fault.Client, x.sent.class == fault.ContentPolicy:
	case x.sent.class == fault.OK, x.sent.degraded != "":
		x.workload.Served(now, &x.arrival, x.where.asked(), x.body)
	default:
		x.workload.Failed(now, &x.arrival, x.where.asked(), x.body, x.again)
	}
}

// models lists the models the caller may use.
func (g *Gateway) models(w http.ResponseWriter, r *http.Request) { g.list(w, r, "") }

// model shows one of them.
func (g *Gateway) model(w http.ResponseWriter, r *http.Request) { g.list(w, r, r.PathValue("id")) }

func (g *Gateway) list(w http.ResponseWriter, r *http.Request, one string) {
	x := &inbound{Gateway: g, Snapshot: g.snapshot.Load(), w: w, r: r, start: time.Now()}
	g.inflight.Add(1)
	defer x.finish()
	x.accept()
	if !x.known() {
		return
	}
	x.workload.Look()
	names := make([]string, 0, len(x.Models))
	for name := range x.Models {
		if x.workload.Allows(name) && (one == "" || name == one) {
			names = append(names, name)
		}
	}
	if one != "" && len(names) == 0 {
		x.reject(http.StatusNotFound, fault.Client, "model_not_found", "The model "+quote(one)+" is not served here.", "model")
		return
	}
	body := wire.ModelList(names)
	if one != "" {
		body = wire.ModelCard(one)
	}
	w.Header().Set("Content-Type", "application/json")
	x.write(http.StatusOK, body)
}
