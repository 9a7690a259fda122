package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"

	"github.com/hourthree/hourthree/internal/route"
)

const (
	callerKey = "key-of-the-caller"
	otherKey  = "key-of-another"
)

// setup is what a test runs: upstreams in order of preference behind the
// model "m", and further settings.
type setup struct {
	upstreams []*fake
	kind      string            // provider type, default openai
	together  bool              // all targets have order 1
	provider  map[string]string // further settings of a provider, as a flow mapping's inside
	target    map[string]string // further settings of a target, likewise
	model     string            // further settings of the model
	workload  string            // further settings of the workload
	defaults  string            // inside of defaults
	http      string            // inside of http
	more      string            // further top-level settings
	whole     string            // the configuration itself, in place of all this
	hosts     map[string]http.Handler
}

func (s setup) yaml() string {
	if s.whole != "" {
		return s.whole
	}
	var b strings.Builder
	b.WriteString("listen: 127.0.0.1:8080\nadmin: {listen: 127.0.0.1:8081}\nmemory: {limit: 512MiB}\nproviders:\n")
	kind := s.kind
	if kind == "" {
		kind = "openai"
	}
	add := func(in string) string {
		if in == "" {
			return ""
		}
		return ", " + in
	}
	for _, u := range s.upstreams {
		base := "http://" + u.name + ".test/v1"
		if kind == "azure" {
			base = "http://" + u.name + ".test"
		}
		fmt.Fprintf(&b, "  %s: {type: %s, base_url: %q, api_key: secret-of-%s, domain: %s%s}\n", u.name, kind, base, u.name, u.name, add(s.provider[u.name]))
	}
	b.WriteString("models:\n  m:\n    targets:\n")
	for i, u := range s.upstreams {
		order := i + 1
		if s.together {
			order = 1
		}
		fmt.Fprintf(&b, "      - {provider: %s, model: real, order: %d%s}\n", u.name, order, add(s.target[u.name]))
	}
	if s.model != "" {
		b.WriteString("    " + s.model + "\n")
	}
	fmt.Fprintf(&b, "workloads:\n  team: {keys: [%s]%s}\n", callerKey, add(s.workload))
	if s.defaults != "" {
		fmt.Fprintf(&b, "defaults: {%s}\n", s.defaults)
	}
	if s.http != "" {
		fmt.Fprintf(&b, "http: {%s}\n", s.http)
	}
	return b.String() + s.more
}

// rig is the router as it is shipped, in front of fakes, in virtual time.
type rig struct {
	t      *testing.T
	net    *memnet.Net
	app    *App
	client *http.Client
	logs   *lockedBuffer
	file   string
}

type lockedBuffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	flush func() // writes what waits to be written, nil for none
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	if l.flush != nil {
		l.flush()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// run starts the router inside a bubble of virtual time, runs the test, and
// checks that everything was given back.
func run(t *testing.T, s setup, test func(*rig)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, net: memnet.New(), logs: new(lockedBuffer), file: filepath.Join(dir, "hourthree.yaml")}
		var servers []*http.Server
		var wg sync.WaitGroup
		for _, u := range s.upstreams {
			l := r.net.Listen(u.name + ".test")
			srv := &http.Server{Handler: u}
			servers = append(servers, srv)
			wg.Go(func() { _ = srv.Serve(l) }) // ends with Close
		}
		for host, h := range s.hosts {
			l, srv := r.net.Listen(host), &http.Server{Handler: h}
			servers = append(servers, srv)
			wg.Go(func() { _ = srv.Serve(l) })
		}
		r.configure(s)
		a, err := New(Options{ConfigPath: r.file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: r.logs, Version: "test", Network: over(r.net)})
		if err != nil {
			t.Fatalf("start: %v", err)
		}
		r.app, r.logs.flush = a, a.lines.Flush
		r.client = &http.Client{Transport: &http.Transport{DialContext: r.net.Dial, MaxIdleConnsPerHost: 1000}}
		test(r)
		r.client.CloseIdleConnections()
		synctest.Wait()
		if n := a.gateway.InFlight(); n != 0 {
			t.Errorf("%d requests still in flight", n)
		}
		if n := a.gateway.Ledger.Reserved(); n != 0 {
			t.Errorf("%d bytes still reserved", n)
		}
		for _, target := range a.builder.list() {
			if n := target.State(time.Now()).InFlight; n != 0 {
				t.Errorf("%d calls of %s still in flight", n, target.Spec().Name)
			}
		}
		for who, s := range a.builder.standing(time.Now()) {
			if s.InFlight != 0 {
				t.Errorf("%d requests still inside the limits of %+v", s.InFlight, who)
			}
		}
		if err := a.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		for _, srv := range servers {
			_ = srv.Close()
		}
		wg.Wait()
	})
}

// over is the router's network in a test.
func over(n *memnet.Net) Network {
	return Network{Listen: func(_, addr string) (net.Listener, error) { return n.Listen(addr), nil }, Dial: n.Dial}
}

func (r *rig) configure(s setup) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(s.yaml()), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// ask is a request of a client.
type ask struct {
	path    string // default /v1/chat/completions
	method  string
	body    string
	bare    bool // no body at all
	stream  bool // of the default body
	key     string
	headers []string // pairs
	ctx     context.Context
	length  int64 // Content-Length, -1 for chunked
}

// answer is what the client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body, or of the request
	took   time.Duration
	first  time.Duration // until the first byte of the body
}

var asked atomic.Int64

// chatAsk is a question that was not asked before: the same one behind a failure
// would be taken for a repeat.
func chatAsk(stream bool) string {
	return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"hello %d"}]}`, stream, asked.Add(1))
}

func (r *rig) request(a ask) *http.Request {
	if a.path == "" {
		a.path = "/v1/chat/completions"
	}
	if a.method == "" {
		a.method = http.MethodPost
	}
	if a.body == "" {
		a.body = chatAsk(a.stream)
	}
	if a.ctx == nil {
		a.ctx = context.Background()
	}
	req, err := http.NewRequestWithContext(a.ctx, a.method, "http://127.0.0.1:8080"+a.path, strings.NewReader(a.body))
	if err != nil {
		r.t.Error(err)
	}
	if a.bare {
		req.Body, req.ContentLength = nil, 0
	}
	if a.length != 0 {
		req.ContentLength = a.length
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+callerKey)
	if a.key != "" {
		req.Header.Set("Authorization", "Bearer "+a.key)
	}
	for i := 0; i < len(a.headers); i += 2 {
		req.Header.Set(a.headers[i], a.headers[i+1])
	}
	return req
}

// do makes a request and reads the answer to its end.
func (r *rig) do(a ask) answer {
	start := time.Now()
	resp, err := r.client.Do(r.request(a))
	if err != nil {
		return answer{err: err, took: time.Since(start)}
	}
	defer resp.Body.Close()
	out := answer{status: resp.StatusCode, header: resp.Header}
	var b strings.Builder
	p := make([]byte, 4<<10)
	for {
		n, err := resp.Body.Read(p)
		if n > 0 && out.first == 0 {
			out.first = time.Since(start)
		}
		b.Write(p[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			out.err = err
			break
		}
	}
	out.body, out.took = b.String(), time.Since(start)
	return out
}

// each makes n requests at once and returns their answers.
func (r *rig) each(n int, make_ func(i int) ask) []answer {
	out := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = r.do(make_(i)) })
	}
	wg.Wait()
	return out
}

// every makes n requests, one each period, without waiting for answers.
func (r *rig) every(period time.Duration, n int, a ask) []answer {
	out := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { out[i] = r.do(a) })
		time.Sleep(period)
	}
	wg.Wait()
	return out
}

// dialRaw is a connection to the router without a client on it.
func (r *rig) dialRaw() net.Conn {
	c, err := r.net.Dial(context.Background(), "tcp", "127.0.0.1:8080")
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// state is a target's, by its provider.
func (r *rig) state(provider string) route.State {
	r.t.Helper()
	for _, t := range r.app.builder.list() {
		if s := t.State(time.Now()); s.Provider == provider {
			return s
		}
	}
	r.t.Fatalf("no target at %s", provider)
	return route.State{}
}

// counts asserts how many requests each upstream has had.
func (r *rig) counts(want map[*fake]int) {
	r.t.Helper()
	for u, n := range want {
		if got := u.count(); got != n {
			r.t.Errorf("%s had %d requests, want %d", u.name, got, n)
		}
	}
}

// good asserts a whole answer with a text in it.
func (r *rig) good(a answer, text string) {
	r.t.Helper()
	if a.err != nil || a.status != http.StatusOK || !strings.Contains(a.body, text) {
		r.t.Errorf("got status %d, error %v, body %.300q; want 200 with %q", a.status, a.err, a.body, text)
	}
}

// failed asserts an error in the OpenAI dialect with a class.
func (r *rig) failed(a answer, status int, class string) {
	r.t.Helper()
	if a.err != nil || a.status != status {
		r.t.Errorf("got status %d, error %v, body %.300q; want %d", a.status, a.err, a.body, status)
		return
	}
	if got := a.header.Get("Hourthree-Class"); got != class {
		r.t.Errorf("class %q, want %q (body %.300q)", got, class, a.body)
	}
	if got := a.header.Get("X-Should-Retry"); got != "false" {
		r.t.Errorf("x-should-retry %q, want false", got)
	}
	if msg, _ := errorOf(a.body); msg == "" {
		r.t.Errorf("no error message in %.300q", a.body)
	}
}
