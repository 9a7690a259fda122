package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/app"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/memnet"
)

const (
	clientAddr = "127.0.0.1:8080"
	// body stands for a prompt: its size decides nothing here. The user is the
	// workload, which the target reads again.
	body = `{"model":"m","stream":%v,"user":%q,"messages":[{"role":"user","content":"What does your code do in hour three?"}]}`
)

// router is this router: its handlers and pipeline, net/http's server and
// client, over connections in memory.
type router struct {
	*play
	app    *app.App
	client *http.Client
	hosts  []*http.Server
	wg     sync.WaitGroup
	calls  atomic.Uint64
	dir    string
}

func newRouter(p *play) (contender, error) {
	r := &router{play: p}
	n := memnet.New()
	for _, v := range p.servers {
		l := n.Listen(v.Name + ".test:80")
		s := &http.Server{Handler: &host{router: r, server: v, listener: l}, ReadHeaderTimeout: time.Minute}
		r.hosts = append(r.hosts, s)
		r.wg.Go(func() { _ = s.Serve(l) }) // ends with close
	}
	var err error
	if r.dir, err = os.MkdirTemp("", "hourthree-drill"); err != nil {
		return nil, err
	}
	file := filepath.Join(r.dir, "hourthree.yaml")
	if err = os.WriteFile(file, []byte(p.config()), 0o600); err != nil {
		return nil, err
	}
	r.app, err = app.New(app.Options{
		ConfigPath: file, Env: func(string) (string, bool) { return "", false }, Stdout: io.Discard, Stderr: io.Discard, Version: "drill", Drain: time.Second,
		Moved: func(t event.Transition) {
			p.books.moved(strings.TrimSuffix(t.Target, "/real"), t.At.Sub(p.start), t.To, t.Reason)
		},
		Network: app.Network{Listen: func(_, addr string) (net.Listener, error) { return n.Listen(addr), nil }, Dial: n.Dial},
	})
	if err != nil {
		return nil, err
	}
	r.client = &http.Client{Transport: &http.Transport{DialContext: n.Dial, MaxIdleConnsPerHost: 4096}}
	return r, nil
}

// config is the router's configuration: the scenario's targets in their order,
// and its workloads with their limits.
func (s *Scenario) config() string {
	var b strings.Builder
	b.WriteString("listen: " + clientAddr + "\nadmin: {listen: 127.0.0.1:8081}\nmemory: {limit: 512MiB}\nproviders:\n")
	var targets, degraded []string
	for i, t := range s.Targets {
		fmt.Fprintf(&b, "  %s: {type: openai-compatible, base_url: \"http://%s.test/v1\", api_key: drill, domain: %s}\n", t.Name, t.Name, t.Domain)
		line := fmt.Sprintf("{provider: %s, model: real, order: %d}", t.Name, i+1)
		if t.Degraded {
			degraded = append(degraded, line)
		} else {
			targets = append(targets, line)
		}
	}
	b.WriteString("models:\n  m:\n    targets: [" + strings.Join(targets, ", ") + "]\n")
	if degraded != nil {
		b.WriteString("    degraded: {model: last}\n  last: {targets: [" + strings.Join(degraded, ", ") + "]}\n")
	}
	b.WriteString("workloads:\n")
	for _, w := range s.Workloads {
		fmt.Fprintf(&b, "  %s: {keys: [%s], limits: {rpm: %d}}\n", w.Name, keyOf(w.Name), w.RPM)
	}
	return b.String()
}

func keyOf(workload string) string { return "key-of-workload-" + workload }

func (r *router) close() {
	r.client.CloseIdleConnections()
	_ = r.app.Stop() // nothing is running any more
	for _, s := range r.hosts {
		_ = s.Close()
	}
	r.wg.Wait()
	_ = os.RemoveAll(r.dir) // a temporary folder
}

// call is one HTTP request of a client.
func (r *router) call(ctx context.Context, w *Workload, _, attempt uint64) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+clientAddr+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(body, w.Stream, w.Name)))
	if err != nil {
		return reply{broken: true}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+keyOf(w.Name))
	if attempt > 1 {
		req.Header.Set("X-Stainless-Retry-Count", strconv.FormatUint(attempt-1, 10))
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return lost(ctx)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return lost(ctx)
	}
	out := reply{status: resp.StatusCode, stop: resp.Header.Get("X-Should-Retry") == "false", degraded: resp.Header.Get("Hourthree-Degraded") != ""}
	if s, e := strconv.Atoi(resp.Header.Get("Retry-After")); e == nil {
		out.after = time.Duration(s) * time.Second
	}
	out.good = resp.StatusCode == http.StatusOK && whole(w.Stream, text)
	return out
}

// lost is a call without an answer.
func lost(ctx context.Context) reply {
	if ctx.Err() != nil {
		return reply{late: true}
	}
	return reply{broken: true}
}

// whole reports that a success is one.
func whole(stream bool, text []byte) bool {
	if stream {
		return bytes.HasSuffix(text, []byte("data: [DONE]\n\n")) && !bytes.Contains(text, []byte(`"error"`))
	}
	var v struct{ Error any }
	return json.Unmarshal(text, &v) == nil && v.Error == nil
}

// host is a target on the network.
type host struct {
	*router
	server   *server
	listener *memnet.Listener
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		Stream bool
		User   string
	}
	// To its end: net/http watches for the caller's leaving from there on.
	text, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(text, &sent) != nil {
		return // cut off before it was whole
	}
	h.books.upstream(sent.User, h.since())
	a := h.server.take(time.Now(), h.since(), h.calls.Add(1))
	defer h.server.leave()
	gone := r.Context().Done()
	if a.mode == ModeHang {
		<-gone
		return
	}
	if !pause(a.wait, gone) {
		return
	}
	if a.mode == ModeReset || a.mode == ModeConnect {
		hangUp(w)
		return
	}
	if a.status != http.StatusOK {
		refuse(w, a)
		return
	}
	if sent.Stream {
		h.stream(w, a, gone)
		return
	}
	h.whole(w, a)
}

func pause(d time.Duration, gone <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
		return false
	}
}

// hangUp resets the connection.
func hangUp(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if m, ok := c.(*memnet.Conn); ok {
		m.Reset()
	}
	_ = c.Close() // it is gone
}

func refuse(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(a.retryAfter.Seconds())))
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, `{"error":{"message":"The drill says so.","type":"server_error","code":null}}`) // the router has left
}

func (h *host) whole(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	text := `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"It answers."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3}}`
	switch a.mode {
	case ModeInside:
		text = `{"error":{"message":"The drill says so.","type":"server_error","code":null}}`
	case ModeCut:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		text = text[:len(text)/2]
	}
	_, _ = io.WriteString(w, text) // the router has left
}

const piece = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n"

// stream sends a first content, the end after the rest of its time.
func (h *host) stream(w http.ResponseWriter, a answer, gone <-chan struct{}) {
	w.Header().Set("Content-Type", "text/event-stream")
	if a.mode == ModeInside {
		_, _ = io.WriteString(w, "data: {\"error\":{\"message\":\"The drill says so.\",\"type\":\"server_error\"}}\n\n")
		return
	}
	fmt.Fprintf(w, piece, `"content":"It "`, "null")
	_ = http.NewResponseController(w).Flush()
	// Long streams move, or the idle timer would end them.
	for left := a.rest; left > 0; left -= 10 * time.Second {
		if !pause(min(left, 10*time.Second), gone) {
			return
		}
		if a.mode == ModeCut {
			hangUp(w)
			return
		}
		fmt.Fprintf(w, piece, `"content":"answers."`, "null")
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, piece, "", `"stop"`)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
