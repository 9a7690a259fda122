package app

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/gateway"
)

// free asserts that nothing is held by anybody: what an operator sees, and
// what the metrics say.
func (r *rig) free() {
	r.t.Helper()
	synctest.Wait()
	s := r.app.state(time.Now())
	if s.InFlight != 0 || s.Queued != 0 || s.Reserved != 0 {
		r.t.Errorf("%d requests, %d waiting, %d bytes", s.InFlight, s.Queued, s.Reserved)
	}
	for _, t := range s.Targets {
		if t.InFlight != 0 {
			r.t.Errorf("%d calls of %s", t.InFlight, t.Name)
		}
	}
	for _, w := range s.Workloads {
		if w.InFlight != 0 || w.Memory != 0 {
			r.t.Errorf("%d requests and %d bytes of workload %s", w.InFlight, w.Memory, w.Name)
		}
	}
}

// TestJ10AThousandMuteStreams: streams on which nothing comes, and streams
// that nobody reads, hold no more than their base lease and a little of the
// answer, others are served beside them, and all of it comes back.
func TestJ10AThousandMuteStreams(t *testing.T) {
	const streams = 1000
	chatter := script{head()}
	for range 200 {
		chatter = append(chatter, sse(chunk(strings.Repeat("x", 4<<10))))
	}
	phases := []script{
		{head(), hold()},
		{head(), sse(roleChunk), hold()},
		{head(), sse(chunk("x")), hold()},
		chatter, // 800 KB, to a client that reads nothing
	}
	u1 := upstream("u1")
	u1.pick = func(n int, _ *seen) script { return phases[n%len(phases)] }
	run(t, setup{upstreams: []*fake{u1}, http: "write_timeout: 5s"}, func(r *rig) {
		ctx, leave := context.WithCancel(r.t.Context())
		var wg sync.WaitGroup
		for range streams {
			wg.Go(func() {
				resp, err := r.client.Do(r.request(ask{stream: true, ctx: ctx}))
				if err != nil {
					return
				}
				<-ctx.Done()
				_ = resp.Body.Close()
			})
		}
		time.Sleep(time.Second)
		held, limit := r.app.Buffered(), r.app.gateway.Ledger.Limit()
		if n := r.app.gateway.InFlight(); n != streams {
			t.Errorf("%d streams are open", n)
		}
		if most := int64(streams * (gateway.BaseLease + 8<<10)); held < streams*gateway.BaseLease || held > most || held > limit {
			t.Errorf("%d bytes reserved for %d streams, want %d to %d", held, streams, streams*gateway.BaseLease, most)
		}
		for n := range u1.count() {
			if s := u1.request(n); s.written > 300<<10 {
				t.Errorf("an upstream sent %d bytes that nobody reads", s.written)
			}
		}
		time.Sleep(6 * time.Second) // who takes nothing is cut off by now
		if n := r.app.gateway.InFlight(); n > streams*3/4 {
			t.Errorf("%d of %d streams after the write timeout", n, streams)
		}
		leave()
		wg.Wait()
		r.free()
		u1.use(answers("from one"))
		r.good(r.do(ask{}), "from one")
	})
}

// taken counts what is read of a request's body, and looks at the ledger
// whenever it is.
type taken struct {
	io.Reader
	n    atomic.Int64
	look func()
}

func (c *taken) Read(p []byte) (int, error) {
	c.look()
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestJ01BodiesBeyondTheLedger: ten times as much as fits comes in. The excess
// is refused early, the ledger never passes its limit, and what fits is served.
func TestJ01BodiesBeyondTheLedger(t *testing.T) {
	const (
		limit = 64 << 20
		size  = 10 << 20
		many  = 64
	)
	for name, tc := range map[string]struct {
		chunked bool
		gap     time.Duration
		served  int // at least
		early   int // refused with no more than what a connection buffers, at least
	}{
		"announced, one by one": {false, time.Millisecond, 4, many - 8},
		"announced, at once":    {false, 0, 3, many / 4}, // how many had begun to send is the scheduler's
		"chunked, one by one":   {true, time.Millisecond, 1, 0},
		"chunked, at once":      {true, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", after(time.Second, answers("from one")))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				r.app.gateway.Ledger.SetLimit(limit)
				look := func() {
					if n := r.app.Buffered(); n > limit {
						t.Errorf("%d bytes reserved of %d", n, limit)
					}
				}
				u1.pick = func(int, *seen) script { look(); return after(time.Second, answers("from one")) }
				filling := strings.Repeat("a", size)
				var served, early atomic.Int64
				var wg sync.WaitGroup
				for i := range many {
					wg.Go(func() {
						in := &taken{look: look, Reader: io.MultiReader(strings.NewReader(fmt.Sprintf(`{"model":"m","x":"%d`, i)), strings.NewReader(filling), strings.NewReader(`"}`))}
						req := r.request(ask{})
						req.Body, req.ContentLength = io.NopCloser(in), -1
						if !tc.chunked {
							req.ContentLength = int64(size + len(fmt.Sprintf(`{"model":"m","x":"%d"}`, i)))
						}
						resp, err := r.client.Do(req)
						if err != nil {
							t.Errorf("no answer: %v", err)
							return
						}
						defer resp.Body.Close()
						body, _ := io.ReadAll(resp.Body)
						switch {
						case resp.StatusCode == http.StatusOK && strings.Contains(string(body), "from one"):
							served.Add(1)
						case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Hourthree-Class") == "overload":
							if in.n.Load() <= 512<<10 {
								early.Add(1)
							}
							if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || wait < 1 || resp.Header.Get("X-Should-Retry") != "false" { // J14
								t.Errorf("Retry-After %q, X-Should-Retry %q", resp.Header.Get("Retry-After"), resp.Header.Get("X-Should-Retry"))
							}
						default:
							t.Errorf("status %d, class %q: %.200s", resp.StatusCode, resp.Header.Get("Hourthree-Class"), body)
						}
					})
					time.Sleep(tc.gap)
				}
				wg.Wait()
				t.Logf("%d of %d served, %d refused early", served.Load(), many, early.Load())
				if n := int(served.Load()); n < tc.served {
					t.Errorf("%d of %d served, want %d", n, many, tc.served)
				}
				if n := int(early.Load()); n < tc.early {
					t.Errorf("%d of %d refused early, want %d", n, many, tc.early)
				}
				r.free()
				r.good(r.do(ask{}), "from one")
			})
		})
	}
}

// TestJ06LargeBodiesPassByDefault: no setting is needed for what providers take,
// 34 MB at the most (J09).
func TestJ06LargeBodiesPassByDefault(t *testing.T) {
	for _, size := range []int{1 << 20, 20 << 20, 35 << 20} {
		for _, length := range []int64{0, -1} { // announced, chunked
			t.Run(fmt.Sprint(size, length), func(t *testing.T) {
				u1 := upstream("u1", answers("from one"))
				run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
					r.good(r.do(ask{body: `{"model":"m","x":"` + strings.Repeat("a", size) + `"}`, length: length}), "from one")
					if n := len(u1.request(0).body); n < size {
						t.Errorf("%d of %d bytes went up", n, size)
					}
				})
			})
		}
	}
}

// TestF10AbortsAtRandomMoments: clients leave, upstreams break, bodies do not
// come, and the configuration changes meanwhile. The one behind them is served,
// and every gauge is at nothing.
func TestF10AbortsAtRandomMoments(t *testing.T) {
	phases := []script{
		{hold()}, {head(), hold()}, {head(), sse(roleChunk), hold()}, {head(), sse(chunk("x")), hold()},
		{head(), sse(chunk("x")), wait(20 * time.Millisecond), cut()}, {head(), sse(chunk("x")), rst()}, {rst()},
		{status(429, "", "Retry-After", "1")}, {status(500, "")}, after(30*time.Millisecond, answers("x")),
	}
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			u1, u2 := upstream("u1"), upstream("u2")
			for _, u := range []*fake{u1, u2} {
				from := rnd.IntN(len(phases))
				u.pick = func(n int, _ *seen) script { return phases[(from+7*n)%len(phases)] }
			}
			limits := map[string]string{"u1": "limits: {concurrency: 10}", "u2": "limits: {concurrency: 10}"}
			s := setup{upstreams: []*fake{u1, u2}, together: true, target: limits, defaults: "breaker: {cool_down: 1s, ramp: 1s}"}
			run(t, s, func(r *rig) {
				var wg sync.WaitGroup
				for i := range 100 {
					d, kind := time.Duration(1+rnd.IntN(120_000))*time.Microsecond, rnd.IntN(5)
					wg.Go(func() {
						switch kind {
						case 0: // a body that is announced and does not come
							c := r.dialRaw()
							fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n{", callerKey)
							time.Sleep(d)
							_ = c.Close()
						case 1: // a file in the middle of its way
							ctx, cancel := context.WithTimeout(r.t.Context(), d)
							defer cancel()
							r.do(ask{path: "/openai/deployments/m/files", ctx: ctx, headers: []string{"Content-Type", "application/octet-stream"}, body: strings.Repeat("x", 2<<20), length: -1})
						default:
							r.leaving(d, ask{stream: kind > 2})
						}
					})
					if i%10 == 9 {
						time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
					}
					if i == 50 {
						other := s
						other.target = map[string]string{"u1": "limits: {concurrency: 9}", "u2": "limits: {concurrency: 9}"}
						r.configure(other)
						if err := r.app.Reload(); err != nil {
							t.Error(err)
						}
					}
				}
				wg.Wait()
				time.Sleep(time.Second) // an upload in line learns at the end of its wait that its client has left
				r.free()
				u1.use(answers("served"))
				u2.use(answers("served"))
				r.every(100*time.Millisecond, 100, ask{}) // the failures among them may have opened the targets
				for _, a := range r.each(18, func(int) ask { return ask{} }) {
					r.good(a, "served")
				}
				r.free()
			})
		})
	}
}

// TestAReloadTakesNoSlotAway: calls to a target that the configuration no
// longer has, or has anew, end as others do.
func TestAReloadTakesNoSlotAway(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(chunk("early")), wait(time.Second), sse(chunk("late"), finishChunk, done)})
	u2 := upstream("u2", answers("from two"))
	s := setup{upstreams: []*fake{u1, u2}[:1], target: map[string]string{"u1": "limits: {concurrency: 20}"}, workload: "limits: {concurrency: 20}"}
	run(t, s, func(r *rig) {
		old := r.app.builder.list()[0]
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if i%2 == 0 {
					r.leaving(500*time.Millisecond, ask{stream: true})
					return
				}
				r.good(r.do(ask{stream: true}), "late")
			})
		}
		time.Sleep(100 * time.Millisecond)
		if n := old.State(time.Now()).InFlight; n != 20 {
			t.Errorf("%d calls under way", n)
		}
		other := s
		other.upstreams, other.target = []*fake{u2}, nil
		r.configure(other)
		if err := r.app.Reload(); err != nil { // the target is gone
			t.Fatal(err)
		}
		if n := old.State(time.Now()).InFlight; n != 20 {
			t.Errorf("%d calls under way behind the reload", n)
		}
		r.configure(s)
		if err := r.app.Reload(); err != nil { // and is back, as another one
			t.Fatal(err)
		}
		wg.Wait()
		r.free()
		if n := old.State(time.Now()).InFlight; n != 0 {
			t.Errorf("%d calls of the old target still under way", n)
		}
		u1.use(answers("from one"))
		for _, a := range r.each(20, func(int) ask { return ask{} }) {
			r.good(a, "from one")
		}
	})
}
