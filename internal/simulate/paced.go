package simulate

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// paced sends an answer in its time: a whole one after all of it, a stream
// token by token.
func (t *Transport) paced(r *http.Request, a *answer, e entry) (*http.Response, error) {
	ctx := r.Context()
	if f := a.streamed(); f != nil {
		if e.mode == InBody {
			f = a.failing()
		}
		resp := respond(r, http.StatusOK, "")
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.ContentLength = -1
		resp.Body = &stream{ctx: ctx, frames: f, first: e.wait, gap: t.opt.PerToken, end: f.len()}
		if e.mode == Truncate {
			resp.Body.(*stream).end = len(f.head) + f.tokens/2
		}
		return resp, nil
	}
	if err := sleep(ctx, e.wait+time.Duration(max(0, a.waits()-1))*t.opt.PerToken); err != nil {
		return nil, err
	}
	body := a.whole()
	if e.mode == InBody {
		body = failure
	}
	resp := respond(r, http.StatusOK, body)
	if e.mode == Truncate {
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:len(body)/2]), broken{}))
	}
	return resp, nil
}

var failure = errorBody("simulated error in a success", "server_error", nil)

// failing is a stream with an error for an answer.
func (a *answer) failing() *frames {
	frame := "data: " + failure + "\n\n"
	if a.kind == responses {
		frame = "event: error\n" + data(object{"type": "error", "sequence_number": 0, "code": "server_error", "message": "simulated error in a success", "param": nil})
	}
	return &frames{tokens: 1, token: func(int) string { return frame }}
}

// broken is a connection that ends too early.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// stream is a body that sends frames in their time. It belongs to its reader.
type stream struct {
	ctx        context.Context
	frames     *frames
	first, gap time.Duration
	next       int    // frame
	end        int    // frame before which it ends
	begun      bool   // content was sent
	rest       string // of the current frame
	closed     bool
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if s.rest == "" {
		if err := s.advance(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *stream) advance() error {
	if s.closed {
		return http.ErrBodyReadAfterClose
	}
	if s.next == s.end {
		if s.end < s.frames.len() {
			return io.ErrUnexpectedEOF
		}
		return io.EOF
	}
	frame, content := s.frames.at(s.next)
	wait := time.Duration(0)
	switch {
	case content && !s.begun:
		wait, s.begun = s.first, true
	case content:
		wait = s.gap
	}
	if err := sleep(s.ctx, wait); err != nil {
		return err
	}
	s.rest = frame
	s.next++
	return nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.closed, s.rest = true, ""
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
