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
	until     time.Time // write deadline in force
	committed bool
	bytes     int64
}

// commit sends status and headers: from here on nothing moves.
func (c *client) commit(e *exchange, length int64) {
	h := c.w.Header()
	provider.CopyResponseHeaders(h, e.header)
	h.Set("Hourthree-Target", e.call.Target.Spec().Name)
	h.Set("Hourthree-Attempts", strconv.Itoa(e.plan.made))
	if bodyless(e.req.Method, e.status) {
		length = e.length // of what a body would be
	}
	if e.status >= 300 && len(e.header["Location"]) > 0 {
		h["Location"] = e.header["Location"][:1:1]
	}
	if length >= 0 {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if u := e.req.Upload; u != nil && !u.Whole() { // what is left of the body is not read
		h.Set("Connection", "close")
	}
	c.committed = true
	e.watch.extend(e.req.Total)
	e.done.Content = time.Since(e.req.Start)
	c.w.WriteHeader(e.status)
}

// bodyless reports an answer that has headers only (RFC 9110, 6.4.1).
func bodyless(method string, status int) bool {
	return method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
}

// send writes p. The deadline of the connection is moved on only when a
// quarter of it is used up, so that a chunk does not cost a timer.
func (c *client) send(p []byte) error {
	if now := time.Now(); c.until.Sub(now) < c.req.Writable*3/4 {
		c.until = now.Add(c.req.Writable)
		_ = c.ctl.SetWriteDeadline(c.until) // writers without deadlines have none to miss
	}
	n, err := c.w.Write(p)
	c.bytes += int64(n)
	return err
}

func (c *client) flush() error { return c.ctl.Flush() }
