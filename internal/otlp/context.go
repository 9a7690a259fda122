package otlp

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/hourthree/hourthree/internal/event"
)

// maxState bounds a tracestate, in bytes: what the specification asks to be
// carried.
const maxState = 512

// Begin finds a request's place in its trace. A caller's traceparent is
// continued with its decision; without a valid one a trace begins here.
func (e *Exporter) Begin(h http.Header) *event.Trace {
	t := &event.Trace{Upstream: e.opt.Upstream}
	binary.BigEndian.PutUint64(t.Span[:], max(rand.Uint64(), 1))
	if v := h["Traceparent"]; len(v) == 1 && parse(v[0], t) {
		if s := h["Tracestate"]; len(s) == 1 && len(s[0]) <= maxState {
			t.State = s[0]
		}
		return t
	}
	low := max(rand.Uint64(), 1)
	binary.BigEndian.PutUint64(t.ID[:8], rand.Uint64())
	binary.BigEndian.PutUint64(t.ID[8:], low)
	t.Sampled = low>>1 < e.limit
	return t
}

// parse reads a traceparent (W3C Trace Context, level 1): version, trace, span
// and flags in lower-case hex. A later version may have more behind them. t is
// as it was when the header is not valid.
func parse(s string, t *event.Trace) bool {
	const length = 55
	if len(s) < length || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" {
		return false
	}
	if len(s) > length && (s[:2] == "00" || s[length] != '-') {
		return false
	}
	var version, flags [1]byte
	var id [16]byte
	var parent [8]byte
	if !lower(version[:], s[:2]) || !lower(id[:], s[3:35]) || !lower(parent[:], s[36:52]) || !lower(flags[:], s[53:55]) {
		return false
	}
	if id == [16]byte{} || parent == [8]byte{} {
		return false
	}
	t.ID, t.Parent, t.Sampled = id, parent, flags[0]&1 != 0
	return true
}

// lower decodes hex without capitals.
func lower(dst []byte, s string) bool {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'F' {
			return false
		}
	}
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

// ids are those that a span is to have.
type ids struct {
	trace [16]byte
	span  [8]byte
}

type idsKey struct{}

// given is an IDGenerator that takes the ids of the context: they were made
// when the request arrived.
type given struct{}

func (given) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, _ := ctx.Value(idsKey{}).(ids)
	return i.trace, i.span
}

func (given) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	i, _ := ctx.Value(idsKey{}).(ids)
	return i.span
}

// below is a context in which a span with an id begins below a parent, none
// where that is zero. A tracestate that is not valid is left out.
func below(t *event.Trace, parent, span [8]byte) context.Context {
	ctx := context.WithValue(context.Background(), idsKey{}, ids{t.ID, span})
	if parent == [8]byte{} {
		return ctx
	}
	state, _ := trace.ParseTraceState(t.State)
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: t.ID, SpanID: parent, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: parent == t.Parent,
	}))
}

// instance names this process among others of the same service.
func instance() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	return hex.EncodeToString(b[:])
}
