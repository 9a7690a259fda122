package attempt

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/wire"
)

// An answer is held whole before it is passed on, so that a cut or an empty
// one can still be had elsewhere. Past maxHold it is passed on as it comes.
const maxHold = 8 << 20

// firstBlock is what an answer's buffer starts with; the request's base
// lease pays for it.
const firstBlock = 16 << 10

var blocks = sync.Pool{New: func() any { b := make([]byte, 0, firstBlock); return &b }}

// unary passes on an answer that is not a stream of events.
func (e *exchange) unary(ctx context.Context, resp *http.Response) {
	block := blocks.Get().(*[]byte)
	buf := (*block)[:0]
	defer func() {
		if cap(buf) <= firstBlock*4 {
			*block = buf[:0]
		}
		blocks.Put(block)
	}()
	if !e.holdable(resp) {
		e.through(ctx, resp, buf)
		return
	}
	e.watch.phase(time.Now(), max(e.contentLeft(), e.up.Idle), fault.ErrFirstContentTimeout)
	for {
		if len(buf) == cap(buf) {
			grown := 2 * cap(buf)
			if grown > maxHold || !e.req.Ticket.Lease().Grow(int64(cap(buf))) {
				e.through(ctx, resp, buf)
				return
			}
			buf = append(make([]byte, 0, grown), buf...)
		}
		n, err := resp.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			e.fail(ctx, err, fault.PhaseContent)
			return
		}
	}
	e.deliver(ctx, resp, buf)
}

// holdable reports whether the answer can be held and checked: JSON, of no
// stated length beyond the hold.
func (e *exchange) holdable(resp *http.Response) bool {
	if resp.ContentLength > maxHold {
		return false
	}
	if e.req.Endpoint != wire.Other {
		return true
	}
	mt := wire.MediaType(resp.Header.Get("Content-Type"))
	return mt == "" || strings.HasSuffix(mt, "json")
}

// deliver judges a whole answer and sends it.
func (e *exchange) deliver(ctx context.Context, resp *http.Response, body []byte) {
	now := time.Now()
	switch wire.InspectBody(e.req.Endpoint, resp.Header.Get("Content-Type"), body) {
	case wire.BodyGood:
	case wire.BodyErrorInside:
		e.body = append([]byte(nil), body[:min(len(body), maxErrorBody)]...)
		e.verdict = e.up.Table.ClassifyEvent(e.up.Vendor, e.body, now)
		return
	case wire.BodyEmpty:
		e.broken(fault.ErrEmpty)
		return
	default:
		e.broken(fault.ErrProtocol)
		return
	}
	e.firstContent(now)
	e.learn = e.content
	e.done.Usage = wire.UsageOf(e.req.Endpoint, body)
	if e.vigil.alone() {
		e.good("")
		return
	}
	e.watch.phase(now, 0, nil)
	e.out.commit(e, int64(len(body)))
	if err := e.out.send(body); err != nil {
		e.fail(ctx, fault.ErrClientGone, fault.PhaseContent)
		return
	}
	e.good("")
}

// through passes an answer on as it arrives: too long to be held, or not
// JSON. What was read so far goes first; an empty answer is a failure still.
func (e *exchange) through(ctx context.Context, resp *http.Response, held []byte) {
	chunk := held[:cap(held)]
	n := len(held)
	for {
		var err error
		if n == 0 {
			e.watch.phase(time.Now(), e.idle(), fault.ErrIdleTimeout)
			n, err = resp.Body.Read(chunk)
		}
		if n > 0 {
			if !e.out.committed {
				e.firstContent(time.Now())
				e.out.commit(e, resp.ContentLength)
			}
			if werr := e.out.send(chunk[:n]); werr != nil {
				e.fail(ctx, fault.ErrClientGone, fault.PhaseContent)
				return
			}
			if werr := e.out.flush(); werr != nil {
				e.fail(ctx, fault.ErrClientGone, fault.PhaseContent)
				return
			}
		}
		n = 0
		switch {
		case err == io.EOF && !e.out.committed && e.req.Endpoint != wire.Other:
			e.broken(fault.ErrEmpty)
			return
		case err == io.EOF:
			if !e.out.committed {
				e.out.commit(e, 0)
			}
			e.good("")
			return
		case err != nil:
			e.fail(ctx, err, fault.PhaseIdle)
			e.done.Abort = e.out.committed
			return
		}
	}
}

// idle is the silence allowed before the next read: until first content the
// first-content limit, later the idle limit.
func (e *exchange) idle() time.Duration {
	if e.out.committed {
		return e.up.Idle
	}
	return e.call.Timeouts.FirstContent
}
