package attempt

import (
	"net/http"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/provider"
)

// client is the answering side of a request: it counts what was sent and
// bounds how long one write may take. It belongs to the request's goroutine.
type client struct {
	w         http.ResponseWriter
	ctl       *http.ResponseController
	req       *Request
	write     time.Duration
	until     time.Time // write deadline in force
	committed bool
	bytes     int64
}

func newClient(w http.ResponseWriter, req *Request, write time.Duration) *client {
	return &client{w: w, ctl: http.NewResponseController(w), req: req, write: write}
}

// commit sends status and headers: from here on nothing moves.
func (c *client) commit(e *exchange, length int64) {
	h := c.w.Header()
	provider.CopyResponseHeaders(h, e.header)
	h.Set("Hourthree-Target", e.call.Target.Spec().Name)
	h.Set("Hourthree-Attempts", strconv.Itoa(e.plan.made))
	if length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if u := e.req.Upload; u != nil {
		select {
		case <-u.Over():
		default: // answered before the body was taken: what is left of it is not read
			h.Set("Connection", "close")
		}
	}
	c.committed = true
	e.watch.extend(e.req.Total)
	e.done.Content = time.Since(e.req.Start)
	c.w.WriteHeader(e.status)
}

// send writes p. The deadline of the connection is moved on only when a
// quarter of it is used up, so that a chunk does not cost a timer.
func (c *client) send(p []byte) error {
	if now := time.Now(); c.until.Sub(now) < c.write*3/4 {
		c.until = now.Add(c.write)
		_ = c.ctl.SetWriteDeadline(c.until) // writers without deadlines have none to miss
	}
	n, err := c.w.Write(p)
	c.bytes += int64(n)
	return err
}

func (c *client) flush() error { return c.ctl.Flush() }
