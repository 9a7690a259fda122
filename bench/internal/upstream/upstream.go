// Package upstream is the fake provider behind the benchmarks: an OpenAI-like
// server in a process of its own whose faults are switched at run time, and
// which counts what it was asked. It speaks HTTP/1.1 by hand, because it
// shares a core with the load generator and must cost little beside what is
// measured. It is no model of a careful server: it trusts its peers, and it
// listens on loopback only. It knows nothing of the router.
//
// Concurrency: one goroutine a connection; the fault and the shape of answers
// are swapped atomically; Meter has its own lock.
package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Model is the one model served, and asked for by the load generator.
const Model = "bench-model"

const (
	cutAfter   = 5 // content chunks before a broken or failing stream ends
	retryAfter = 5 // seconds, sent with a 429
	hangMost   = 10 * time.Minute
)

// Shape is what good answers are like.
type Shape struct {
	Chunks int           `json:"chunks"` // content chunks of a stream
	Gap    time.Duration `json:"gap"`    // between two chunks, nanoseconds
	Delay  time.Duration `json:"delay"`  // before a JSON answer, nanoseconds
	Slow   time.Duration `json:"slow"`   // before any answer under the Slow fault
}

// Server is one fake provider.
type Server struct {
	Meter *Meter

	fault atomic.Int32
	shape atomic.Pointer[Shape]
}

// New returns a healthy server with single-chunk answers.
func New() *Server {
	s := &Server{Meter: NewMeter(time.Now())}
	s.shape.Store(&Shape{Chunks: 1})
	return s
}

// Set switches the fault for calls that begin from now on.
func (s *Server) Set(f Fault) { s.fault.Store(int32(f)) }

// SetShape changes what good answers are like, from the next call on.
func (s *Server) SetShape(sh Shape) { s.shape.Store(&sh) }

// Serve takes connections until l is closed.
func (s *Server) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go s.connection(c.(*net.TCPConn))
	}
}

// connection answers one call after the other until either side ends it.
func (s *Server) connection(c *net.TCPConn) {
	defer c.Close()
	x := &exchange{c: c, in: bufio.NewReaderSize(c, 4096)}
	for {
		if err := x.readHead(); err != nil {
			return
		}
		s.Meter.Begin(time.Now())
		keep := x.readBody() == nil && s.answer(x)
		s.Meter.End()
		if !keep || x.close {
			return
		}
	}
}

// answer writes one answer and says whether the connection may stay.
func (s *Server) answer(x *exchange) bool {
	sh := s.shape.Load()
	f := Fault(s.fault.Load())
	switch f {
	case Hang:
		x.wait(hangMost)
		return false
	case Storm:
		return x.write(answer503)
	case Half:
		if rand.IntN(2) == 0 {
			return x.write(answer500)
		}
	case Limited:
		return x.write(answer429)
	case Slow:
		if !x.wait(sh.Slow) {
			return false
		}
	}
	switch x.kind() {
	case stream:
		return s.stream(x, sh, f)
	case embeddings:
		return x.write(answerEmbeddings)
	case models:
		return x.write(answerModels)
	case chat:
		return s.chat(x, sh, f)
	}
	return x.write(answer404)
}

func (s *Server) chat(x *exchange, sh *Shape, f Fault) bool {
	if sh.Delay > 0 && !x.wait(sh.Delay) {
		return false
	}
	switch f {
	case ResetMid, ResetFirst:
		x.write(answerJSON[:len(answerJSON)/2])
		return x.reset()
	case ErrorFirst, ErrorMid:
		return x.write(answerError200)
	}
	return x.write(answerJSON)
}

func (s *Server) stream(x *exchange, sh *Shape, f Fault) bool {
	if f == ErrorFirst {
		return x.write(streamErrorFirst)
	}
	if !x.write(streamStart) {
		return false
	}
	if f == ResetFirst {
		time.Sleep(sh.Gap)
		return x.reset()
	}
	due := time.Now()
	for i := range sh.Chunks {
		if i == cutAfter && f == ResetMid {
			return x.reset()
		}
		if i == cutAfter && f == ErrorMid {
			return x.write(streamErrorMid)
		}
		if i > 0 && sh.Gap > 0 {
			due = due.Add(sh.Gap)
			time.Sleep(time.Until(due))
		}
		if !x.write(x.chunk(time.Now())) {
			return false
		}
	}
	if x.wantsUsage() {
		return x.write(streamEndUsage)
	}
	return x.write(streamEnd)
}

// exchange is one connection's call in progress.
type exchange struct {
	c     *net.TCPConn
	in    *bufio.Reader
	path  []byte
	body  []byte // the first headBytes of it
	size  int64  // -1 is chunked
	close bool
	out   []byte // the chunk template with room for the stamp
	keep  [128]byte
}

// write reports whether the client was still there.
func (x *exchange) write(b []byte) bool {
	_, err := x.c.Write(b)
	return err == nil
}

// reset breaks the connection so that the peer sees a reset, not an end.
func (x *exchange) reset() bool {
	_ = x.c.SetLinger(0)
	return false
}

// wait reports whether the client was still there after d.
func (x *exchange) wait(d time.Duration) bool {
	_ = x.c.SetReadDeadline(time.Now().Add(d))
	_, err := x.in.Peek(1)
	_ = x.c.SetReadDeadline(time.Time{})
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// Run is the process: it serves on two free loopback ports, answers and
// control, names both in one JSON line on out, and ends when in does, that is
// with its parent.
func Run(in io.Reader, out io.Writer) error {
	answers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := New()
	failed := make(chan error, 2)
	go func() { failed <- s.Serve(answers) }()
	go func() { failed <- s.serveControl(control) }()
	go func() {
		_, err := io.Copy(io.Discard, in)
		failed <- err
	}()
	if _, err := fmt.Fprintf(out, "{\"addr\":%q,\"control\":%q}\n", answers.Addr(), control.Addr()); err != nil {
		return err
	}
	return <-failed
}
