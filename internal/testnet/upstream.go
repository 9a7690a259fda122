package testnet

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
)

// Upstream is a scripted server. It speaks just enough HTTP/1.1 to read
// requests; what it answers, and how it breaks off, is the script's.
type Upstream struct {
	*memnet.Listener
	name  string
	start time.Time
	wg    sync.WaitGroup

	mu    sync.Mutex
	rules []Rule
	log   []*Request
	conns map[*memnet.Conn]bool
	ended bool
}

// Request is one request as the upstream saw it.
type Request struct {
	At      time.Time
	Attempt int // from 1, over all connections
	Conn    int // from 1 at this upstream, in the order of first requests
	Nth     int // from 1 on this connection
	Method  string
	URI     string
	Header  http.Header
	Body    []byte
	Hash    string    // SHA-256 of Body, in hex
	Err     error     // why Body is not whole
	Gone    time.Time // when the peer closed before the answer's end; zero if it did not
}

// NewUpstream opens a host. It answers 500 until it has a Script, and is
// closed with the test.
func NewUpstream(t testing.TB, n *memnet.Net, host string) *Upstream {
	u := &Upstream{Listener: n.Listen(host), name: host, start: time.Now(), conns: map[*memnet.Conn]bool{}}
	u.wg.Go(u.serve)
	t.Cleanup(u.Stop)
	return u
}

// Script replaces what the upstream does. Of the rules that fit a request the
// first counts; when none fits the upstream answers 500.
func (u *Upstream) Script(rules ...Rule) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rules = rules
}

// Count is the number of requests seen.
func (u *Upstream) Count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.log)
}

// Requests are copies of all requests seen, in order.
func (u *Upstream) Requests() []Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]Request, len(u.log))
	for i, r := range u.log {
		out[i] = *r
	}
	return out
}

// Stop closes the host and resets every connection. It waits for their ends.
func (u *Upstream) Stop() {
	_ = u.Close() // cannot fail
	u.mu.Lock()
	u.ended = true
	for c := range u.conns {
		c.Reset()
	}
	u.mu.Unlock()
	u.wg.Wait()
}

func (u *Upstream) serve() {
	for id := 1; ; id++ {
		c, err := u.Accept()
		if err != nil {
			return
		}
		conn := c.(*memnet.Conn)
		if !u.adopt(conn) {
			conn.Reset()
			return
		}
		u.wg.Go(func() { u.talk(conn, id) })
	}
}

func (u *Upstream) adopt(c *memnet.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.conns[c] = true
	}
	return !u.ended
}

// talk serves one connection until a script ends it or the peer does.
func (u *Upstream) talk(c *memnet.Conn, id int) {
	defer func() {
		_ = c.Close() // a reset before it wins
		u.mu.Lock()
		delete(u.conns, c)
		u.mu.Unlock()
	}()
	in := bufio.NewReader(c)
	for nth := 1; ; nth++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		sum := sha256.Sum256(body)
		seen := &Request{
			At: time.Now(), Conn: id, Nth: nth, Method: r.Method, URI: r.RequestURI, Header: r.Header,
			Body: body, Hash: hex.EncodeToString(sum[:]), Err: err,
		}
		x := &Exchange{Request: r, Seen: seen, conn: c}
		steps := u.note(seen)
		if !x.run(steps) || r.Close {
			select {
			case <-c.Gone():
				u.mu.Lock()
				seen.Gone = time.Now()
				u.mu.Unlock()
			default:
			}
			return
		}
	}
}

// note logs a request and finds what to do with it.
func (u *Upstream) note(r *Request) []Step {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.log = append(u.log, r)
	r.Attempt = len(u.log)
	for _, rule := range u.rules {
		if rule.fits(r, r.At.Sub(u.start)) {
			return rule.steps
		}
	}
	return []Step{Status(http.StatusInternalServerError, "x-testnet", "no script for "+u.name)}
}
