package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/bench/internal/upstream"
)

const (
	chatPath  = "/v1/chat/completions"
	chatBytes = 713     // of a request body without an image
	bodyMost  = 4 << 20 // of an answer that is not a stream
)

// request is a whole request, head and body, ready to be written.
func request(o Options, k Kind) []byte {
	head := `{"model":"` + upstream.Model + `",`
	if k == Stream {
		head += `"stream":true,`
	}
	head += `"temperature":0.7,"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":`
	tail := `}]}`
	var content string
	if o.Payload > 0 {
		content = `[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0K", o.Payload/8) + `"}}]`
	} else {
		content = `"` + strings.Repeat("word ", (chatBytes-len(head)-len(tail)-2)/5) + `"`
	}
	body := head + content + tail
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nUser-Agent: hourthree-bench\r\nContent-Length: %d\r\n\r\n%s",
		chatPath, o.Addr, o.Key, len(body), body)
}

// conn is one connection to the proxy; used by one goroutine at a time.
type conn struct {
	c    net.Conn
	in   *bufio.Reader
	line *bufio.Reader // over a chunked body
	buf  []byte
	used bool
}

func (c *Client) take(ctx context.Context, fresh bool) (*conn, error) {
	if !fresh {
		c.mu.Lock()
		if n := len(c.idle); n > 0 {
			k := c.idle[n-1]
			c.idle = c.idle[:n-1]
			c.mu.Unlock()
			return k, nil
		}
		c.mu.Unlock()
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", c.opt.Addr)
	if err != nil {
		return nil, err
	}
	return &conn{c: nc, in: bufio.NewReaderSize(nc, 4096)}, nil
}

func (c *Client) give(k *conn) {
	k.used = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, k)
}

// errStale is a kept connection that the server had closed already; the
// request is made once more, on a new one, as any HTTP client does.
var errStale = errors.New("stale connection")

// do makes one request and adds what became of it to out.
func (c *Client) do(ctx context.Context, due time.Time, kind Kind, out *Result) {
	s := Sample{Kind: kind, Due: due}
	ctx, cancel := context.WithDeadline(ctx, due.Add(c.opt.Timeout))
	defer cancel()
	err := c.once(ctx, false, &s, out)
	if errors.Is(err, errStale) {
		err = c.once(ctx, true, &s, out)
	}
	if err != nil {
		s.Outcome = Broken
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.Outcome = Late
		}
	}
	s.Took = time.Since(due)
	out.Samples = append(out.Samples, s)
}

func (c *Client) once(ctx context.Context, fresh bool, s *Sample, out *Result) error {
	k, err := c.take(ctx, fresh)
	if err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	_ = k.c.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { k.c.Close() })
	keep, err := c.converse(k, s, out)
	if stop() && keep && err == nil {
		c.give(k)
	} else {
		k.c.Close()
	}
	return err
}

func (c *Client) converse(k *conn, s *Sample, out *Result) (keep bool, err error) {
	_, wrote := k.c.Write(c.requests[s.Kind])
	// A server may answer and close before it has read the whole request.
	if _, err := k.in.Peek(1); err != nil {
		if k.used && !errors.Is(err, os.ErrDeadlineExceeded) {
			return false, errStale
		}
		return false, err
	}
	h, err := k.readHead()
	if err != nil {
		return false, err
	}
	s.Status, s.RetryAfter = h.status, h.retryAfter
	if h.status == 200 && s.Kind == Stream {
		err = c.readStream(k, h, s, out)
	} else {
		err = c.readJSON(k, h, s)
	}
	return err == nil && wrote == nil && !h.close, err
}

// head is what matters of a response head.
type head struct {
	status     int
	length     int64 // -1 without
	chunked    bool
	close      bool
	retryAfter bool
}

var errHead = errors.New("malformed response head")

func (k *conn) readHead() (head, error) {
	h := head{length: -1}
	line, err := k.in.ReadSlice('\n')
	if err != nil {
		return h, unexpected(err)
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return h, errHead
	}
	if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return h, errHead
	}
	for {
		if line, err = k.in.ReadSlice('\n'); err != nil {
			return h, unexpected(err)
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return h, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if h.length, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return h, errHead
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			h.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			h.close = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("Retry-After")):
			h.retryAfter = true
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readJSON reads an answer that is no stream, or any that is not 200.
func (c *Client) readJSON(k *conn, h head, s *Sample) error {
	n, err := k.readAll(h)
	if err != nil {
		return err
	}
	s.First = time.Since(s.Due)
	body := k.buf[:n]
	switch {
	case h.status != 200:
		s.Outcome = Refused
	case bytes.Contains(body, []byte(upstream.Whole)):
		s.Outcome = OK
	case bytes.Contains(body, []byte(`"error":`)):
		s.Outcome = Told
	default:
		s.Outcome = Hidden
	}
	return nil
}

// readAll reads a body into k.buf.
func (k *conn) readAll(h head) (int, error) {
	if h.length > bodyMost {
		return 0, errHead
	}
	if h.length >= 0 {
		if int64(cap(k.buf)) < h.length {
			k.buf = make([]byte, h.length)
		}
		n, err := io.ReadFull(k.in, k.buf[:h.length])
		return n, unexpected(err)
	}
	from := io.Reader(k.in)
	if h.chunked {
		from = httputil.NewChunkedReader(k.in)
	}
	var err error
	if k.buf, err = io.ReadAll(io.LimitReader(from, bodyMost)); err != nil || !h.chunked {
		return len(k.buf), err
	}
	_, err = k.in.ReadSlice('\n')
	return len(k.buf), unexpected(err)
}

// readStream reads events to the end of the body.
func (c *Client) readStream(k *conn, h head, s *Sample, out *Result) error {
	from := io.Reader(k.in)
	limited := &io.LimitedReader{R: k.in, N: h.length}
	if h.chunked {
		from = httputil.NewChunkedReader(k.in)
	} else if h.length >= 0 {
		from = limited
	}
	if k.line == nil {
		k.line = bufio.NewReaderSize(from, 2048)
	} else {
		k.line.Reset(from)
	}
	var done, told bool
	for {
		line, err := k.line.ReadSlice('\n')
		switch at := bytes.Index(line, []byte(upstream.Stamp)); {
		case at >= 0:
			c.chunk(line[at+len(upstream.Stamp):], s, out)
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			done = true
		case bytes.Contains(line, []byte(`"error":`)), bytes.HasPrefix(line, []byte("event: error")):
			told = true
		}
		if errors.Is(err, io.EOF) && (h.chunked || limited.N <= 0) {
			break
		}
		if err != nil {
			return unexpected(err)
		}
	}
	s.Outcome = Hidden
	if told {
		s.Outcome = Told
	} else if done && s.Chunks == c.opt.Chunks {
		s.Outcome = OK
	}
	if h.chunked {
		_, err := k.in.ReadSlice('\n')
		return unexpected(err)
	}
	return nil
}

// chunk notes one content chunk, whose stamp is at the start of rest.
func (c *Client) chunk(rest []byte, s *Sample, out *Result) {
	now := time.Now()
	s.Chunks++
	if s.Chunks == 1 {
		s.First = now.Sub(s.Due)
	}
	if !c.opt.Delays || len(rest) < upstream.StampDigits {
		return
	}
	if at, err := strconv.ParseInt(string(rest[:upstream.StampDigits]), 10, 64); err == nil {
		out.Delays = append(out.Delays, now.Sub(time.Unix(0, at)))
	}
}
