package app

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
)

// digest reads an answer without keeping it: its hash, length, and last bytes.
func (r *rig) digest(a ask) (sum [32]byte, n int64, tail string, err error) {
	resp, err := r.client.Do(r.request(a))
	if err != nil {
		return sum, 0, "", err
	}
	defer resp.Body.Close()
	h := sha256.New()
	p := make([]byte, 32<<10)
	for {
		k, err := resp.Body.Read(p)
		h.Write(p[:k])
		n += int64(k)
		if tail += string(p[:k]); len(tail) > 1000 {
			tail = tail[len(tail)-1000:]
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return [32]byte(h.Sum(nil)), n, tail, err
		}
	}
}

// imageStream is a Responses stream with one event of size bytes.
func imageStream(size int) string {
	image := `{"type":"response.output_item.done","item":{"type":"image_generation_call","result":"` + strings.Repeat("iVBORw0K", size/8) + `"}}`
	return strings.Replace(responseEvents("x"), "event: response.completed", "event: response.output_item.done\ndata: "+image+"\n\nevent: response.completed", 1)
}

// Breaks when a stream's splitter is not paid for, or when a stream that the
// budget cannot hold ends as if it were whole.
func TestE02FiftyImagesWithinAMemoryBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		size   int
		limit  int64
		atOnce bool // all of them fit at once
	}{
		"all fit":     {1 << 20, 256 << 20, true},
		"some do not": {6 << 20, 64 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := imageStream(tc.size)
			want := sha256.Sum256([]byte(text))
			u1 := upstream("u1")
			u1.pick = func(n int, _ *seen) script {
				half := len(text)/2 + n // every splitter is half full at the same time
				return script{head(), raw(text[:half]), wait(time.Second), raw(text[half:])}
			}
			s := setup{upstreams: []*fake{u1}, defaults: "breaker: {min_requests: 1000}"}
			s.whole = strings.Replace(s.yaml(), "limit: 512MiB", fmt.Sprintf("limit: %d", tc.limit), 1)
			run(t, s, func(r *rig) {
				a := ask{path: "/v1/responses", body: `{"model":"m","stream":true,"input":"hi"}`}
				var mu sync.Mutex
				var wg sync.WaitGroup
				whole, refused := 0, 0
				for range 50 {
					wg.Go(func() {
						sum, n, tail, err := r.digest(a)
						mu.Lock()
						defer mu.Unlock()
						switch {
						case sum == want && err == nil:
							whole++
						case err == nil && !strings.Contains(tail, "overload"), strings.Contains(tail, "response.completed"):
							t.Errorf("%d of %d bytes ended with %.200q, error %v", n, len(text), tail, err)
						default:
							refused++
						}
					})
				}
				var most int64
				for range 20 {
					time.Sleep(100 * time.Millisecond)
					most = max(most, r.app.gateway.Ledger.Reserved())
				}
				wg.Wait()
				if most > tc.limit || most < int64(tc.size) {
					t.Errorf("%d bytes were reserved of %d", most, tc.limit)
				}
				if whole == 0 || whole+refused != 50 || (refused == 0) != tc.atOnce {
					t.Errorf("%d whole and %d refused", whole, refused)
				}
				synctest.Wait()
				if st := r.state("u1"); st.Breaker.Failed != 0 {
					t.Errorf("the router's own lack of memory counts as %d failures of the target", st.Breaker.Failed)
				}
				if sum, n, tail, err := r.digest(a); sum != want || err != nil {
					t.Errorf("afterwards: %d of %d bytes, %.200q, %v", n, len(text), tail, err)
				}
			})
		})
	}
}

// Breaks when a call's context is not its client's, or when a call starts a
// goroutine that only an answer ends.
func TestE19SilenceLeavesNothingBehind(t *testing.T) {
	for name, s := range map[string]script{
		"before headers": {hold()},
		"held back":      {head(), sse(roleChunk), hold()},
		"after content":  {head(), sse(chunk("x")), hold()},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("x"))
			run(t, setup{upstreams: []*fake{u1}, workload: "limits: {concurrency: 5000}"}, func(r *rig) {
				r.good(r.do(ask{stream: true}), "x")
				r.client.CloseIdleConnections()
				synctest.Wait()
				before := runtime.NumGoroutine()
				u1.use(s)
				var wg sync.WaitGroup
				for i := range 1000 {
					wg.Go(func() { r.leaving(time.Duration(100+i)*time.Millisecond, ask{stream: true}) })
				}
				wg.Wait()
				time.Sleep(2 * time.Minute) // kept connections of dials whose request had gone end
				r.client.CloseIdleConnections()
				synctest.Wait()
				if after := runtime.NumGoroutine(); after > before+5 {
					t.Errorf("%d goroutines, %d before", after, before)
				}
				if n := r.app.gateway.InFlight(); n != 0 {
					t.Errorf("%d in flight", n)
				}
				r.counts(map[*fake]int{u1: 1001})
			})
		})
	}
}

// Breaks when a silent stream whose client has vanished without a word has no
// timer of its own: neither side writes, so no write can fail.
func TestF04ASilentStreamOfAVanishedClientEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		script script
		most   time.Duration
	}{
		"after content":  {script{head(), sse(chunk("x")), hold()}, 31 * time.Second},
		"held back":      {script{head(), sse(roleChunk), hold()}, 2 * time.Minute},
		"before headers": {script{hold()}, 2 * time.Minute},
		"pings":          {append(script{head(), sse(chunk("x"))}, pings(40, time.Minute)...), 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", tc.script)
			run(t, setup{upstreams: []*fake{u1}, defaults: "timeouts: {total: 10m}"}, func(r *rig) {
				var vanished []io.Closer
				body := chatAsk(true)
				for range 100 {
					c := r.dialRaw()
					vanished = append(vanished, c)
					if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callerKey, len(body), body); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Millisecond)
				if n := r.app.gateway.InFlight(); n != 100 {
					t.Errorf("%d requests in flight", n)
				}
				time.Sleep(tc.most)
				synctest.Wait()
				if n, held := r.app.gateway.InFlight(), r.app.gateway.Ledger.Reserved(); n != 0 || held != 0 {
					t.Errorf("%d requests and %d bytes are still held", n, held)
				}
				for _, c := range vanished {
					_ = c.Close()
				}
			})
		})
	}
}

// pings are comments that keep a stream alive without content.
func pings(n int, pause time.Duration) script {
	var s script
	for range n {
		s = append(s, wait(pause/4), raw(": ping\n\n"), wait(pause/4), raw(": ping\n\n"), wait(pause/4), raw(": ping\n\n"), wait(pause/4), raw(": ping\n\n"))
	}
	return append(s, hold())
}

// Breaks when a client's reset is noticed only with the next write.
func TestF04AResetOfTheClientEndsItsCall(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(chunk("x")), hold()})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		c := r.dialRaw()
		body := chatAsk(true)
		if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callerKey, len(body), body); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.(*memnet.Conn).Reset()
		_ = c.Close()
		start := time.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		if d := u1.request(0).closed.Sub(start); d < 0 || d > 100*time.Millisecond {
			t.Errorf("the call ended %s after its client", d)
		}
		if s := r.state("u1"); s.Breaker.Failed != 0 {
			t.Errorf("%d failures", s.Breaker.Failed)
		}
	})
}
