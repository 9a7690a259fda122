package app

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/steer"
)

// What a refusal may cost in the router, without net/http's connection (I17).
const (
	refusalBytes  = 4 << 10
	refusalAllocs = 16
)

// untouched is a body that nobody may read.
type untouched struct{ read int }

func (u *untouched) Read([]byte) (int, error) {
	u.read++
	return 0, errors.New("read")
}

func (*untouched) Close() error { return nil }

// refusing is a router in which every way to refuse a request is open, and one
// request of each kind. reset makes it ready for the next.
type refusing struct {
	app     *App
	handler http.Handler
	w       quiet
	body    untouched
}

// refusals are the kinds, with what each answers.
var refusals = []struct {
	name, key string
	headers   []string // pairs
	status    int
	code      string // of the class
	full      bool   // the ledger grants nothing
}{
	{"unknown-key", "key-of-nobody", nil, http.StatusUnauthorized, "client", false},
	{"workload-limit", overKey, nil, http.StatusTooManyRequests, "capacity", false},
	{"repeats", "key-of-one-that-repeats", []string{"X-Stainless-Retry-Count", "2"}, http.StatusTooManyRequests, "capacity", false},
	{"memory", callerKey, nil, http.StatusServiceUnavailable, "overload", true},
	{"shed", "key-of-one-that-is-shed", nil, http.StatusServiceUnavailable, "overload", false},
}

func newRefusing(t testing.TB) *refusing {
	file := filepath.Join(t.TempDir(), "hourthree.yaml")
	text := "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nmemory: {limit: 512MiB}\n" +
		"providers: {a: {type: openai, api_key: secret-of-a}}\nmodels: {m: {targets: [{provider: a, model: real}]}}\n" +
		"workloads:\n  team: {keys: [" + callerKey + "]}\n  over: {keys: [" + overKey + "], limits: {rpm: 1}}\n  again: {keys: [key-of-one-that-repeats]}\n  nightly: {keys: [key-of-one-that-is-shed], priority: batch}\n" +
		"quarantine: {automatic: false}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	up := instant{json: chatBody(strings.Repeat("word ", 180))}
	a, err := New(Options{ConfigPath: file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: io.Discard, Version: "test", trip: up})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop() })
	if _, err := a.Order(steer.Order{Kind: steer.Shed, Subject: "batch", Why: "a test"}, admin.By{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	return &refusing{app: a, handler: a.gateway.Handler(), w: quiet{header: http.Header{}}}
}

func (f *refusing) request(key string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("User-Agent", "OpenAI/Python 1.99.0")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.ContentLength = 10 << 20
	return r
}

// serve runs the handler once, without an allocation of its own.
func (f *refusing) serve(r *http.Request, body io.ReadCloser) int {
	clear(f.w.header)
	f.w.status, f.w.bytes = 0, 0
	r.Body = body
	f.handler.ServeHTTP(&f.w, r)
	return f.w.status
}

// refuse makes the kind's request until it is refused as it is to be.
func (f *refusing) refuse(t testing.TB, i int) func() {
	c := refusals[i]
	r := f.request(c.key, c.headers...)
	limit := f.app.gateway.Ledger.Limit()
	if c.full {
		f.app.gateway.Ledger.SetLimit(0)
		t.Cleanup(func() { f.app.gateway.Ledger.SetLimit(limit) })
	}
	for range 1000 { // the burst of a limit, the reserve of the allowance
		if f.serve(r, http.NoBody) == c.status {
			break
		}
	}
	return func() {
		if got := f.serve(r, &f.body); got != c.status || f.w.header.Get("Hourthree-Class") != c.code {
			t.Fatalf("status %d, class %q", got, f.w.header.Get("Hourthree-Class"))
		}
	}
}

// served is a request that is answered, with a body of 2 KB.
func (f *refusing) served(t testing.TB) func() {
	r, text := f.request(callerKey), `{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("x", 2<<10)+`"}]}`
	r.ContentLength = int64(len(text))
	in := strings.NewReader(text)
	body := io.NopCloser(in)
	return func() {
		in.Reset(text)
		if got := f.serve(r, body); got != http.StatusOK {
			t.Fatalf("status %d", got)
		}
	}
}

// BenchmarkRefusal is the router's part of a refused request, beside that of a
// served one.
func BenchmarkRefusal(b *testing.B) {
	for i, c := range refusals {
		b.Run(c.name, func(b *testing.B) {
			one := newRefusing(b).refuse(b, i)
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
		})
	}
	b.Run("served", func(b *testing.B) {
		one := newRefusing(b).served(b)
		b.ReportAllocs()
		for b.Loop() {
			one()
		}
	})
}

// cost is what one call of f allocates: the least of some rounds, for other
// goroutines allocate too.
func cost(f func()) (allocs, bytes uint64) {
	const rounds, each = 5, 200
	f()
	allocs, bytes = 1<<63, 1<<63
	var before, after runtime.MemStats
	for range rounds {
		runtime.ReadMemStats(&before)
		for range each {
			f()
		}
		runtime.ReadMemStats(&after)
		allocs, bytes = min(allocs, (after.Mallocs-before.Mallocs)/each), min(bytes, (after.TotalAlloc-before.TotalAlloc)/each)
	}
	return allocs, bytes
}

// TestI17ARefusalIsCheap: it reads nothing of the body, and costs the router
// little and always the same.
func TestI17ARefusalIsCheap(t *testing.T) {
	for i, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			f := newRefusing(t)
			allocs, bytes := cost(f.refuse(t, i))
			t.Logf("%d allocations, %d bytes", allocs, bytes)
			if allocs > refusalAllocs || bytes > refusalBytes {
				t.Errorf("%d allocations and %d bytes, want at most %d and %d", allocs, bytes, refusalAllocs, refusalBytes)
			}
			if f.body.read != 0 {
				t.Errorf("the body was read %d times", f.body.read)
			}
			if f.app.Buffered() != 0 {
				t.Errorf("%d bytes reserved", f.app.Buffered())
			}
		})
	}
	t.Run("served", func(t *testing.T) {
		allocs, bytes := cost(newRefusing(t).served(t))
		t.Logf("%d allocations, %d bytes", allocs, bytes)
	})
}
