package attempt

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/provider"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/wire"
)

// maxErrorBody bounds what is read of an upstream's refusal.
const maxErrorBody = 64 << 10

// oneWrite is the largest body, in bytes, that is laid out in one piece so
// that head and body leave in one write.
const oneWrite = 16 << 10

// exchange is one upstream call: request out, answer in, verdict.
type exchange struct {
	*run
	call   *route.Call
	up     *Upstream
	cancel context.CancelCauseFunc
	vigil  *vigil // of a probe
	watch  watch
	conn   provider.ConnInfo
	start  time.Time

	verdict fault.Verdict
	fresh   bool // failed before any answer byte, on connect or a reused connection
	headers time.Duration
	content time.Duration
	learn   time.Duration
	tokens  int64
	fact    event.Attempt

	sent   http.Header
	status int
	header http.Header
	length int64 // Content-Length of the answer, -1 when unknown
	body   []byte
	asked  bool // include_usage was added: its chunk is taken out again
}

// do makes the call and leaves the verdict.
func (e *exchange) do(ctx context.Context) {
	e.up = e.req.Upstreams[e.call.Target]
	e.watch.begin(e.cancel, e.req.Deadline, fault.ErrTotalTimeout)
	if u := e.req.Upload; u != nil { // what the caller needs to send it is not the upstream's doing
		e.watch.upload(e.start, e.call.Timeouts.Headers, fault.ErrHeadersTimeout)
		u.Watch(
			func() { e.watch.await(time.Now()) },
			func() { e.watch.resume(time.Now(), e.call.Timeouts.Headers, fault.ErrHeadersTimeout) },
		)
	} else {
		e.watch.phase(e.start, e.call.Timeouts.Headers, fault.ErrHeadersTimeout)
	}
	out, err := e.request(provider.WithTrace(ctx, &e.conn))
	if errors.Is(err, provider.ErrPath) {
		e.verdict = fault.Verdict{Class: fault.Client, Scope: fault.ScopeRequest, Reason: "bad_path"}
		return
	}
	if err != nil && ctx.Err() != nil { // while a token was fetched
		e.fail(ctx, err, fault.PhaseHeaders)
		return
	}
	if err != nil {
		e.verdict = fault.Verdict{Class: fault.Credential, Scope: fault.ScopeKey, Reason: "provider_config", Elsewhere: true}
		return
	}
	e.sent = out.Header
	resp, err := e.up.Provider.RoundTrip(e.req.Ticket, out)
	if u := e.req.Upload; err != nil && u != nil && u.Err() != nil && ctx.Err() == nil {
		e.verdict = fault.Verdict{Class: fault.Client, Scope: fault.ScopeRequest, Reason: "body_incomplete"}
		return
	}
	if err != nil {
		e.fail(ctx, err, fault.PhaseHeaders)
		// A kept connection that was dead says nothing about the target. A
		// failed connect and a time-out do: those move on.
		if e.verdict.Reason == "reset" && e.conn.Reused() {
			e.fresh, e.verdict.Breaker = true, false
		}
		return
	}
	defer resp.Body.Close()
	e.headers, e.status, e.header, e.length = time.Since(e.start), resp.StatusCode, resp.Header, resp.ContentLength
	if e.status == http.StatusNoContent || resp.Header.Get("Content-Length") == "" {
		e.length = -1
	}
	now := e.start.Add(e.headers)
	if q, ok := fault.QuotaOf(resp.Header, now); ok {
		e.call.Quota(now, q)
	}
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 599:
		e.broken(fault.ErrProtocol)
	case e.answers(resp) && bodyless(e.req.Method, resp.StatusCode):
		e.headersOnly()
	case !e.answers(resp):
		e.refused(ctx, resp)
	case isEventStream(resp.Header) && !e.req.Envelope.Stream && e.req.Endpoint != wire.Other:
		e.broken(fault.ErrProtocol) // a stream nobody asked for
	case isEventStream(resp.Header):
		e.stream(ctx, resp)
	default:
		e.unary(ctx, resp)
	}
	e.body = e.redact(e.body)
}

// answers reports whether the status is an answer: success, and for a path
// that the router does not know what a file server says. A redirect that asks
// for the body to be sent elsewhere is none.
func (e *exchange) answers(resp *http.Response) bool {
	switch s := resp.StatusCode; {
	case s < 300:
		return true
	case s >= 400 || e.req.Endpoint != wire.Other:
		return false
	case s == http.StatusSeeOther, s == http.StatusNotModified:
		return true
	}
	return e.req.Method == http.MethodGet || e.req.Method == http.MethodHead
}

// headersOnly passes on an answer that has no body. Where one was asked for it
// is empty.
func (e *exchange) headersOnly() {
	if e.req.Endpoint != wire.Other {
		e.broken(fault.ErrEmpty)
		return
	}
	e.firstContent(time.Now())
	e.out.commit(e, -1)
	e.good("")
}

// redact takes our own credentials out of what the upstream said.
func (e *exchange) redact(p []byte) []byte { return e.up.Provider.Redact(p, e.sent) }

// request builds the upstream request: the caller's bytes with only the
// model name and declared edits changed.
func (e *exchange) request(ctx context.Context) (*http.Request, error) {
	model := e.call.Model
	var edit wire.Edit
	if model == "" {
		model = e.req.Envelope.Model
	}
	named := e.req.Envelope.HasModel && e.req.Envelope.Model == model
	if !named && model != "" && (e.req.Envelope.HasModel || e.req.Endpoint != wire.Other) {
		edit.Model = model // the path may have named it
	}
	if e.req.Envelope.Stream && (e.req.Usage || e.up.Usage) && !e.req.Envelope.IncludeUsage && e.req.Endpoint.HasStreamOptions() {
		edit.IncludeUsage, e.asked = true, true
	}
	call := provider.Call{Method: e.req.Method, Path: e.req.Path, RawQuery: e.req.RawQuery, Model: model, Header: e.req.Header, Trace: e.trace()}
	if e.req.Upload != nil {
		call.Body, call.ContentLength = e.req.Upload, e.req.UploadLength
	} else if body := e.req.Envelope.Splice(e.req.Body, edit); len(body.Parts()) == 1 {
		call.Bytes = body.Parts()[0]
	} else if body.Len() <= oneWrite {
		call.Bytes = body.AppendTo(make([]byte, 0, body.Len()))
	} else {
		call.Body, call.ContentLength = body.Reader(), body.Len()
	}
	return e.up.Provider.Request(ctx, call)
}

// trace is what the provider is told of the trace; nil leaves it to the caller.
func (e *exchange) trace() *provider.TraceContext {
	t := e.req.Trace
	switch {
	case t == nil || t.Upstream == event.Pass:
		return nil
	case t.Upstream == event.Own:
		return &provider.TraceContext{Parent: t.Traceparent(e.plan.made), State: t.State}
	}
	return &provider.TraceContext{}
}

// usage is what the answer reported, where it is a whole one.
func (e *exchange) usage() event.Usage {
	u := e.done.Usage
	if e.tokens < 0 || !u.Present { // what is there is of an attempt before
		return event.Usage{}
	}
	return event.Usage{Reported: true, Input: u.Input, Output: u.Output, Cached: u.Cached, Reasoning: u.Reasoning}
}

// fail turns an error of the transport or of a read into the verdict.
func (e *exchange) fail(ctx context.Context, err error, phase fault.Phase) {
	e.verdict = fault.Transport(cause(ctx, err), phase)
}

// refused reads and classifies an answer that is not 2xx.
func (e *exchange) refused(ctx context.Context, resp *http.Response) {
	e.watch.phase(time.Now(), e.up.Idle, fault.ErrIdleTimeout)
	body, err := io.ReadAll(io.LimitReader(resp.Body, firstBlock))
	if err == nil && len(body) == firstBlock && e.req.Ticket.Lease().Grow(maxErrorBody-firstBlock) { // the base lease pays for the first block
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody-firstBlock))
		body = append(body, rest...)
	}
	if err != nil && context.Cause(ctx) != nil && errors.Is(cause(ctx, err), fault.ErrClientGone) {
		e.fail(ctx, err, fault.PhaseContent)
		return
	}
	e.body = body
	e.verdict = e.up.Table.Classify(fault.Answer{
		Vendor: e.up.Vendor, Status: resp.StatusCode, Header: resp.Header, Body: body, Now: time.Now(),
		PassThrough: !e.req.Envelope.HasModel,
	})
	if resp.StatusCode == http.StatusUnauthorized && e.verdict.Again {
		e.fresh = e.up.Provider.Refresh(ctx) == nil
	}
}

// maxDetail bounds what of an upstream's message is kept for the operator.
const maxDetail = 300

// detail is why our credential or account was refused, in the upstream's
// words: only a person can mend that. What a caller sent is not in it.
func (e *exchange) detail() string {
	if e.verdict.Class != fault.Credential && e.verdict.Class != fault.Account {
		return ""
	}
	text := string(e.redact([]byte(fault.Message(e.body)))) // an escaped key is plain now
	return strings.ToValidUTF8(text[:min(len(text), maxDetail)], "")
}

// good leaves the verdict of a whole answer.
func (e *exchange) good(reason string) {
	e.verdict = fault.Verdict{Class: fault.OK, Reason: reason}
	if e.done.Usage.Present {
		e.tokens = e.done.Usage.Input + e.done.Usage.Output
	}
}

// broken leaves the verdict of an answer that came but is not one.
func (e *exchange) broken(err error) {
	e.verdict = fault.Transport(err, fault.PhaseContent)
}

// contentLeft is what is left of the time until first content. Behind an
// upload it begins with the answer.
func (e *exchange) contentLeft() time.Duration {
	if e.req.Upload != nil {
		return e.call.Timeouts.FirstContent
	}
	return e.call.Timeouts.FirstContent - time.Since(e.start)
}

// firstContent notes that content arrived: the call no longer waits.
func (e *exchange) firstContent(now time.Time) {
	e.content = now.Sub(e.start)
	e.call.FirstContent(now)
	e.vigil.over()
}

func isEventStream(h http.Header) bool {
	return wire.MediaType(h.Get("Content-Type")) == "text/event-stream"
}
