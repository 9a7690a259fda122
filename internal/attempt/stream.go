package attempt

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/wire"
)

const (
	// readBlock is the size of one read of a stream.
	readBlock = 2 << 10
	// maxHeld bounds the frames held back before content; past it the answer
	// is committed as it stands.
	maxHeld = 256 << 10
	// afterFinish is how long the terminal marker may take once the answer
	// has said that it is finished: usage and filter frames follow it, but
	// some servers never send the marker and keep the socket open.
	afterFinish = 2 * time.Second
	// afterDone is how long the end of the body may take after the terminal
	// marker, so that the connection can be used again.
	afterDone = 50 * time.Millisecond
)

var (
	doneFrame = []byte("data: [DONE]\n\n")
	blankLine = []byte("\n\n")
)

// relay is one answer stream on its way to the client: raw bytes in, the
// same bytes out, with a scanner beside them that looks for content, errors,
// usage and the end.
type relay struct {
	*exchange
	split wire.Splitter
	held  []byte // frames before the first content
	gaps  gaps
	progress
}

// progress is how far a stream has come.
type progress struct {
	begun    bool       // content was seen
	finished bool       // every choice of the answer said that it is finished
	tally    wire.Tally // of several choices
	reason   bool       // a choice said that it is finished
	ended    bool       // the terminal marker was seen
	stopped  bool       // finish_reason "stop": an answer without content is then empty
	buffered int64      // bytes of the splitter paid for
	wrote    bool       // something is to be flushed
	moved    bool       // the last read brought data or a piece of it, not only comments
	said     bool       // the last read brought content
}

var (
	relays = sync.Pool{New: func() any { return new(relay) }}
	reads  = sync.Pool{New: func() any { b := make([]byte, readBlock); return &b }}
)

// stream relays an event stream.
func (e *exchange) stream(ctx context.Context, resp *http.Response) {
	r := relays.Get().(*relay)
	r.reset(e)
	block := reads.Get().(*[]byte)
	r.pump(ctx, resp.Body, *block)
	reads.Put(block)
	r.exchange = nil
	relays.Put(r)
}

// reset makes a used relay ready.
func (r *relay) reset(e *exchange) {
	r.exchange, r.held = e, nil
	r.split.Reset()
	r.gaps.last, r.gaps.n = time.Time{}, 0
	r.progress = progress{}
}

// pump reads until the answer ends, one way or another.
func (r *relay) pump(ctx context.Context, body io.Reader, block []byte) {
	r.watch.phase(time.Now(), max(r.contentLeft(), time.Millisecond), fault.ErrFirstContentTimeout)
	for {
		n, err := body.Read(block)
		if n > 0 && !r.feed(ctx, block[:n]) {
			return
		}
		if err != nil {
			r.end(ctx, err)
			return
		}
		if r.moved {
			r.rearm()
		}
	}
}

// rearm sets the time allowed until the next data. Before content the first
// content limit keeps running: pings and role frames do not feed it. Comments
// feed no limit at all: a proxy goes on sending them when what is behind it
// has died.
func (r *relay) rearm() {
	switch {
	case r.ended:
		r.watch.phase(time.Now(), afterDone, fault.ErrIdleTimeout)
	case r.finished:
		r.watch.phase(time.Now(), afterFinish, fault.ErrIdleTimeout)
	case r.begun:
		r.watch.phase(time.Now(), r.up.Idle, fault.ErrIdleTimeout)
	}
}

// feed takes one read. It returns false when the verdict stands.
func (r *relay) feed(ctx context.Context, p []byte) bool {
	r.split.Write(p)
	if grow := int64(r.split.Buffered()) - r.buffered; grow > firstBlock {
		if !r.req.Ticket.Lease().Grow(grow) {
			return r.halt(ctx, fault.ErrOverload)
		}
		r.buffered += grow
	}
	r.wrote, r.moved, r.said = false, false, false
	for {
		ev, ok, err := r.split.Next()
		if err != nil {
			return r.halt(ctx, fault.ErrProtocol)
		}
		if !ok {
			break
		}
		if !r.event(ctx, ev) {
			return false
		}
	}
	r.moved = r.moved || r.split.Partial()
	if r.said {
		if median, ok := r.gaps.add(time.Now()); ok {
			r.call.Pace(median)
		}
	}
	if r.wrote {
		if err := r.out.flush(); err != nil {
			r.fail(ctx, fault.ErrClientGone, fault.PhaseContent)
			return false
		}
	}
	return true
}

// event looks at one frame and passes it on.
func (r *relay) event(ctx context.Context, ev wire.Event) bool {
	if r.ended {
		return true // nothing follows the terminal marker
	}
	s := wire.Inspect(r.req.Endpoint, ev)
	if s&wire.HasUsage != 0 {
		r.done.Usage = wire.UsageOf(r.req.Endpoint, ev.Data)
	}
	if s&wire.Error != 0 {
		v := r.up.Table.ClassifyEvent(r.up.Vendor, ev.Data, time.Now())
		if !r.out.committed {
			r.body = append([]byte(nil), ev.Data[:min(len(ev.Data), maxErrorBody)]...)
			r.verdict = v
			return false
		}
		// The provider's own error frame says it in the right dialect.
		if err := r.out.send(r.redact(ev.Raw)); err == nil {
			_ = r.out.flush() // the connection is reset next in any case
		}
		r.verdict, r.done.Abort = v, true
		return false
	}
	r.note(s, ev.Data)
	r.moved = r.moved || len(ev.Data) > 0
	if r.asked && s&wire.UsageOnly != 0 {
		return true
	}
	return r.pass(ctx, ev.Raw, s)
}

func (r *relay) note(s wire.Signal, data []byte) {
	if s&wire.Finish != 0 {
		r.reason = true
	}
	switch n := r.req.Envelope.Choices(r.req.Endpoint); {
	case r.req.Endpoint == wire.Responses || n == 1:
		r.finished = r.finished || s&wire.Finish != 0
	case !r.finished: // several: these events are few
		r.tally.Add(data)
		r.finished = n > 0 && r.tally.Finished() >= n
	}
	r.ended = r.ended || s&wire.Done != 0
	r.stopped = r.stopped || s&wire.Stop != 0
	if s&wire.Content == 0 {
		return
	}
	r.said = true
	if !r.begun {
		r.begun = true
		now := time.Now()
		r.firstContent(now)
		r.learn = r.content
	}
}

// pass holds the frame back or sends it. Content commits, and so does the
// end of an answer that rightly has none.
func (r *relay) pass(ctx context.Context, raw []byte, s wire.Signal) bool {
	if !r.out.committed {
		if len(r.held)+len(raw) > cap(r.held) && !r.req.Ticket.Lease().Grow(int64(len(r.held)+len(raw))) {
			return r.halt(ctx, fault.ErrOverload)
		}
		r.held = append(r.held, raw...)
		switch {
		case r.begun, len(r.held) > maxHeld:
		case r.ended && !r.blank():
		case r.ended:
			r.broken(fault.ErrEmpty)
			return false
		default:
			return true
		}
		raw, r.held = r.held, nil // a stream may last for minutes
		r.out.commit(r.exchange, -1)
	}
	r.wrote = true
	if err := r.out.send(raw); err != nil {
		if r.ended {
			return true // the client closed behind the last frame
		}
		r.fail(ctx, fault.ErrClientGone, fault.PhaseContent)
		return false
	}
	return true
}

// blank reports an answer that ended without content and without a reason
// for having none.
func (r *relay) blank() bool {
	usage := r.done.Usage
	return !r.begun && !(r.reason && (!r.stopped || usage.Output > 0))
}

// halt ends a stream that cannot be read on.
func (r *relay) halt(ctx context.Context, err error) bool {
	r.broken(err)
	r.breakOff()
	return false
}

// end is reached when the upstream's body ends, cleanly or not.
func (r *relay) end(ctx context.Context, err error) {
	if ev, ok := r.split.Flush(); ok && err == io.EOF {
		if !r.event(ctx, ev) {
			return
		}
		if ev.Unterminated && r.out.committed {
			_ = r.out.send(blankLine) // so that what follows is a frame of its own
		}
	}
	// An upstream may give fewer choices than were asked for.
	r.finished = r.finished || err == io.EOF && r.tally.All()
	switch {
	case r.ended:
		r.good("")
	case r.finished && !r.gone(ctx) && !r.blank():
		r.close()
	case err == io.EOF && !r.begun && !r.finished:
		r.broken(fault.ErrEmpty)
		r.breakOff()
	case err == io.EOF && r.req.Endpoint == wire.Other:
		r.good("")
	case err == io.EOF:
		r.broken(fault.ErrTruncated)
		r.breakOff()
	default:
		r.fail(ctx, err, fault.PhaseIdle)
		r.breakOff()
	}
	if r.out.committed && r.verdict.Class == fault.OK {
		_ = r.out.flush()
	}
}

func (r *relay) gone(ctx context.Context) bool {
	return cause(ctx, nil) == fault.ErrClientGone
}

// close ends a finished answer whose terminal marker never came. It is whole,
// but it proves nothing about the target.
func (r *relay) close() {
	if !r.out.committed {
		r.out.commit(r.exchange, -1)
		_ = r.out.send(r.held)
	}
	if r.req.Endpoint.EndsWithDone() {
		_ = r.out.send(doneFrame)
	}
	r.good("missing_done")
}

// breakOff tells a client that already has content that the rest is missing:
// one error event, then a reset. It sends no terminal marker.
func (r *relay) breakOff() {
	if !r.out.committed || r.verdict.Class == fault.Canceled {
		return
	}
	body := wire.ErrorBody{
		Message: "The answer broke off: " + r.verdict.Reason + ". What was received is incomplete.",
		Type:    "server_error", Code: "upstream_" + r.verdict.Reason, Class: r.verdict.Class.String(), RequestID: r.req.ID,
	}
	if err := r.out.send(body.Event(r.req.Endpoint)); err == nil {
		_ = r.out.flush()
	}
	r.done.Abort = true
}
