package testnet

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
)

// Rule says which requests get which steps.
type Rule struct {
	fits  func(r *Request, since time.Duration) bool
	steps []Step
}

// Try is for the n-th request the upstream sees, from 1.
func Try(n int, steps ...Step) Rule {
	return Rule{func(r *Request, _ time.Duration) bool { return r.Attempt == n }, steps}
}

// OnConn is for every request of the n-th connection, from 1.
func OnConn(n int, steps ...Step) Rule {
	return Rule{func(r *Request, _ time.Duration) bool { return r.Conn == n }, steps}
}

// OnConnTry is for the k-th request of the n-th connection, both from 1.
func OnConnTry(n, k int, steps ...Step) Rule {
	return Rule{func(r *Request, _ time.Duration) bool { return r.Conn == n && r.Nth == k }, steps}
}

// During is for requests that come from..to after the upstream was made, to
// not included.
func During(from, to time.Duration, steps ...Step) Rule {
	return Rule{func(_ *Request, since time.Duration) bool { return since >= from && since < to }, steps}
}

// When is for requests that a test picks itself.
func When(fits func(Request) bool, steps ...Step) Rule {
	return Rule{func(r *Request, _ time.Duration) bool { return fits(*r) }, steps}
}

// Always is for every request.
func Always(steps ...Step) Rule {
	return Rule{func(*Request, time.Duration) bool { return true }, steps}
}

// Step is one thing an upstream does with a request. It returns false to end
// the connection there.
type Step func(*Exchange) bool

// Exchange is one request being answered. It belongs to the connection's
// goroutine; Seen must not be changed.
type Exchange struct {
	Request *http.Request // its body has been read, see Seen.Body
	Seen    *Request
	conn    *memnet.Conn
	begun   bool // head of a chunked answer sent
	done    bool // answer complete
}

// run plays the steps and reports whether the connection stays.
func (x *Exchange) run(steps []Step) bool {
	for _, do := range steps {
		if !do(x) {
			return false
		}
	}
	if !x.done {
		return Fin()(x)
	}
	return true
}

func (x *Exchange) write(s string) bool {
	_, err := x.conn.Write([]byte(s))
	return err == nil
}

// begin sends the head of a chunked answer, once.
func (x *Exchange) begin(contentType string) bool {
	if x.begun {
		return true
	}
	x.begun = true
	return x.write("HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\nTransfer-Encoding: chunked\r\n\r\n")
}

func (x *Exchange) chunk(s string) bool {
	return s == "" || x.write(fmt.Sprintf("%x\r\n%s\r\n", len(s), s))
}

// head is a status line and headers, given as pairs.
func head(status int, headers []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for i := 0; i+1 < len(headers); i += 2 {
		b.WriteString(headers[i] + ": " + headers[i+1] + "\r\n")
	}
	return b.String()
}

// Status answers with an error body of OpenAI's shape. Headers are given as
// pairs: Status(429, "retry-after", "5").
func Status(status int, headers ...string) Step {
	body := fmt.Sprintf(`{"error":{"message":"scripted %d","type":"scripted","param":null,"code":null}}`, status)
	return Answer(status, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// Answer answers with a whole body of known length.
func Answer(status int, body string, headers ...string) Step {
	return func(x *Exchange) bool {
		x.done = true
		return x.write(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head(status, headers), len(body), body))
	}
}

// JSON answers 200 with a JSON body.
func JSON(body string) Step { return Answer(http.StatusOK, body, "Content-Type", "application/json") }

// Head sends status and headers of a chunked answer, for bodies by Raw.
func Head(status int, headers ...string) Step {
	return func(x *Exchange) bool {
		x.begun = true
		return x.write(head(status, headers) + "Transfer-Encoding: chunked\r\n\r\n")
	}
}

// SSE sends events, each with its own write, after the head of a stream if
// none was sent.
func SSE(data ...string) Step {
	return func(x *Exchange) bool {
		if !x.begin("text/event-stream") {
			return false
		}
		for _, d := range data {
			if !x.chunk("data: " + d + "\n\n") {
				return false
			}
		}
		return true
	}
}

// Raw sends bytes of the body as they are, each piece with its own write.
func Raw(pieces ...string) Step {
	return func(x *Exchange) bool {
		if !x.begin("text/event-stream") {
			return false
		}
		for _, p := range pieces {
			if !x.chunk(p) {
				return false
			}
		}
		return true
	}
}

// Wire sends bytes on the connection as they are, head and all. The answer
// counts as complete.
func Wire(text string) Step {
	return func(x *Exchange) bool {
		x.begun, x.done = true, true
		return x.write(text)
	}
}

// Wait lets time pass, unless the peer leaves.
func Wait(d time.Duration) Step {
	return func(x *Exchange) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-x.conn.Gone():
			return false
		case <-x.conn.Closed():
			return false // stopped
		}
	}
}

// Fin ends a chunked answer in order. A script that ends without another end
// ends so.
func Fin() Step {
	return func(x *Exchange) bool {
		x.done = true
		return x.begin("text/event-stream") && x.write("0\r\n\r\n")
	}
}

// Cut closes the connection without the end of the answer.
func Cut() Step { return func(*Exchange) bool { return false } }

// RST resets the connection.
func RST() Step {
	return func(x *Exchange) bool {
		x.conn.Reset()
		return false
	}
}

// Hold sends nothing more until the peer leaves. As the only step it is an
// upstream that reads a request and never answers.
func Hold() Step {
	return func(x *Exchange) bool {
		select {
		case <-x.conn.Gone():
		case <-x.conn.Closed(): // stopped
		}
		return false
	}
}

// Mute is Hold as the only step.
func Mute() Step { return Hold() }
