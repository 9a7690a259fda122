// Package upstream is the fake provider behind the benchmarks: an OpenAI-like
// server whose faults are switched at run time, and which counts what it was
// asked. It knows nothing of the router.
package upstream

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The faults.
const (
	None     = "none"
	Hang     = "hang"      // read the request, never answer
	Storm    = "503"       // every call
	Half     = "share50"   // a 500 for every second call, at random
	Limited  = "429"       // with Retry-After: 5
	Slow     = "slow"      // first content after 20 s
	Cut      = "reset"     // half of the answer, then the connection breaks
	InFirst  = "error-200" // an error as first event or as JSON body
	InMiddle = "error-mid" // an error event after five chunks
)

// Options are how the upstream answers when it is well.
type Options struct {
	Chunks int           // of a stream
	Gap    time.Duration // between them
	Delay  time.Duration // before a JSON answer
	Pad    int           // bytes of text in a chunk
}

// Server is one fake provider.
type Server struct {
	URL string

	opt     Options
	fault   atomic.Pointer[string]
	srv     *http.Server
	answer  []byte
	chunk   string
	turn    atomic.Uint64
	now     atomic.Int64
	most    atomic.Int64
	started atomic.Int64
	done    chan struct{} // ends what hangs

	mu       sync.Mutex
	arrivals map[int64]int // by 100 ms since 1970
}

// Start listens on a free loopback port.
func Start(o Options) (*Server, error) { return StartAt("127.0.0.1:0", o) }

// StartAt listens on addr.
func StartAt(addr string, o Options) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + l.Addr().String() + "/v1", opt: o, arrivals: map[int64]int{}, done: make(chan struct{})}
	s.Set(None)
	text := strings.Repeat("word ", 200)
	s.answer = fmt.Appendf(nil, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":120,"completion_tokens":200,"total_tokens":320}}`, text)
	s.chunk = `data: {"id":"chatcmpl-0000000000000000000000000000","object":"chat.completion.chunk","created":1796000000,"model":"m","system_fingerprint":"fp_0000000000","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", o.Pad) + `"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	s.srv = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go s.srv.Serve(l)
	return s, nil
}

// Close ends the server and what hangs on it.
func (s *Server) Close() {
	close(s.done)
	s.srv.Close()
}

// Set switches the fault.
func (s *Server) Set(fault string) { s.fault.Store(&fault) }

// InFlight is the calls in flight and the most there have been since the last
// call of InFlight.
func (s *Server) InFlight() (now, most int64) { return s.now.Load(), s.most.Swap(s.now.Load()) }

// Attempts is the calls since the last call of Attempts.
func (s *Server) Attempts() int64 { return s.started.Swap(0) }

// Peak is the most arrivals within any 100 ms from from on.
func (s *Server) Peak(from, to time.Time) (most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot, n := range s.arrivals {
		if slot >= from.UnixMilli()/100 && slot < to.UnixMilli()/100 {
			most = max(most, n)
		}
	}
	return most
}

// Arrivals is the calls that arrived between from and to.
func (s *Server) Arrivals(from, to time.Time) (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot, n := range s.arrivals {
		if slot >= from.UnixMilli()/100 && slot < to.UnixMilli()/100 {
			sum += n
		}
	}
	return sum
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.started.Add(1)
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	s.mu.Lock()
	s.arrivals[time.Now().UnixMilli()/100]++
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	head := string(body[:min(len(body), 4096)])
	stream := strings.Contains(head, `"stream":true`)
	switch fault := *s.fault.Load(); fault {
	case Hang:
		s.wait(r, time.Hour)
	case Storm:
		fail(w, 503, "")
	case Limited:
		fail(w, 429, "5")
	case Half:
		if s.turn.Add(1)*0x9e3779b97f4a7c15>>63 == 0 {
			fail(w, 500, "")
			return
		}
		s.good(w, r, stream, None)
	case Slow:
		if s.wait(r, 20*time.Second) {
			s.good(w, r, stream, None)
		}
	default:
		s.good(w, r, stream, fault)
	}
}

func (s *Server) wait(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

func fail(w http.ResponseWriter, status int, after string) {
	w.Header().Set("Content-Type", "application/json")
	if after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(status)
	io.WriteString(w, `{"error":{"message":"failing","type":"server_error","param":null,"code":null}}`)
}

const errorFrame = `{"error":{"message":"failing","type":"server_error","param":null,"code":null}}`

func (s *Server) good(w http.ResponseWriter, r *http.Request, stream bool, fault string) {
	if !stream {
		if s.opt.Delay > 0 && !s.wait(r, s.opt.Delay) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		switch fault {
		case InFirst, InMiddle:
			io.WriteString(w, errorFrame)
		case Cut:
			w.Header().Set("Content-Length", fmt.Sprint(len(s.answer)))
			w.Write(s.answer[:len(s.answer)/2])
			panic(http.ErrAbortHandler)
		default:
			w.Write(s.answer)
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	if fault == InFirst {
		io.WriteString(w, "data: "+errorFrame+"\n\n")
		return
	}
	for i := range s.opt.Chunks {
		if i == 5 && fault == Cut {
			flush()
			panic(http.ErrAbortHandler)
		}
		if i == 5 && fault == InMiddle {
			io.WriteString(w, "data: "+errorFrame+"\n\n")
			return
		}
		io.WriteString(w, s.chunk)
		flush()
		if s.opt.Gap > 0 && !s.wait(r, s.opt.Gap) {
			return
		}
	}
	io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}
