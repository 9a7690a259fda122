package app

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// sendSlowly uploads so many pieces of 64 KiB, one a second, and returns the
// answer's status.
func (r *rig) sendSlowly(pieces int) (status int, class string) {
	pr, pw := io.Pipe()
	defer pr.Close()
	req := r.request(ask{path: "/v1/files"})
	req.Body, req.ContentLength = pr, -1
	req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	go func() {
		defer pw.Close()
		for range pieces {
			if _, err := pw.Write(make([]byte, 64<<10)); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}()
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // the status is what counts
	return resp.StatusCode, resp.Header.Get("Hourthree-Class")
}

// TestUploadsAreNotJudgedByQuickCalls: how long a caller needs to send a file
// is not the target's doing. It fails when the headers timer runs during the
// upload, and when uploads are overdue like other calls.
func TestUploadsAreNotJudgedByQuickCalls(t *testing.T) {
	u1 := upstream("u1", after(100*time.Millisecond, script{status(200, `{"id":"f"}`)}))
	run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1: u1}\n"}, func(r *rig) {
		quick := func() int { return r.do(ask{path: "/v1/files/x", method: "GET", bare: true}).status }
		for range 60 {
			quick()
			time.Sleep(100 * time.Millisecond)
		}
		var wg sync.WaitGroup
		for i := range 25 {
			wg.Go(func() {
				if status, class := r.sendSlowly(9 + i); status != 200 {
					t.Errorf("an upload of %d s: %d %s", 9+i, status, class)
				}
			})
		}
		for range 8 {
			time.Sleep(3 * time.Second)
			if status := quick(); status != 200 {
				t.Errorf("a call beside uploads: %d", status)
			}
		}
		wg.Wait()
		if s := r.state("u1"); s.Phase != "closed" || s.Success < 1 {
			t.Errorf("%s, success %v", s.Phase, s.Success)
		}
		time.Sleep(2 * time.Second)
	})
	// An upstream that hangs once it has the body is still timed.
	hung := upstream("u1", script{hold()})
	run(t, setup{upstreams: []*fake{hung}, more: "passthrough: {/v1: u1}\n", defaults: "timeouts: {headers: 5s, first_content: 6s}"}, func(r *rig) {
		start := time.Now()
		if status, class := r.sendSlowly(10); status != 503 || class != "outage" || time.Since(start) > 17*time.Second {
			t.Errorf("status %d, class %s after %s", status, class, time.Since(start))
		}
		time.Sleep(2 * time.Second)
	})
}

// TestAnUploadToTheLastResort: while nothing of the body was read it can go to
// the degraded model. It fails when the first walk gives the body up.
func TestAnUploadToTheLastResort(t *testing.T) {
	u1 := upstream("u1", script{status(429, `{"error":{"message":"slow","type":"rate_limit","code":"rate_limit_exceeded"}}`, "Retry-After", "60")})
	small := upstream("small", script{status(200, `{"text":"hi"}`)})
	run(t, withSmall(setup{upstreams: []*fake{u1}}, small), func(r *rig) {
		r.do(ask{}) // makes u1 cool down
		a := r.do(ask{path: "/openai/deployments/m/audio/transcriptions", body: strings.Repeat("x", 2<<20), headers: []string{"Content-Type", "multipart/form-data; boundary=x"}})
		r.good(a, "hi")
		if s := r.state("small"); s.Breaker.Failed != 0 && s.Breaker.OK == 0 {
			t.Errorf("counted against the last resort: %+v", s.Breaker)
		}
	})
}

// withSmall adds a degraded model "small" on an upstream of its own.
func withSmall(s setup, small *fake) setup {
	s.model = "degraded: {model: small}"
	s.whole = strings.Replace(s.yaml(), "models:\n", "  small: {type: openai, base_url: \"http://small.test/v1\", api_key: x}\nmodels:\n  small: {targets: [{provider: small, model: real}]}\n", 1)
	s.upstreams = append(s.upstreams, small)
	return s
}

// TestWhatARedirectMeans: only one that asks for another page is an answer. A
// redirect of a body is none: its target may be anybody's. It fails when every
// 3xx is passed on.
func TestWhatARedirectMeans(t *testing.T) {
	for _, status_ := range []int{301, 302, 307, 308} {
		u1, u2 := upstream("u1", script{status(status_, "", "Location", "https://login.test/sso")}), upstream("u2", script{status(200, `{"x":1}`)})
		run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
			r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			r.good(r.do(ask{path: "/v1/messages"}), `"x"`)
		})
	}
}

// TestAnswersWithoutABody: headers alone are an answer where no body belongs,
// whatever they say of one. It fails when such an answer is read as a stream
// or decoded.
func TestAnswersWithoutABody(t *testing.T) {
	for _, c := range []struct {
		method, text string
		status       int
	}{
		{"HEAD", "200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 20", 200},
		{"HEAD", "200 OK\r\nContent-Type: text/event-stream", 200},
		{"GET", "304 Not Modified\r\nContent-Type: text/event-stream", 304},
		{"GET", "304 Not Modified\r\nContent-Type: application/json\r\nContent-Encoding: gzip", 304},
		{"GET", "204 No Content\r\nContent-Type: text/event-stream", 204},
		{"GET", "204 No Content\r\nContent-Type: application/json\r\nContent-Encoding: gzip", 204},
		{"GET", "302 Found\r\nLocation: /v1/a\r\nContent-Encoding: gzip\r\nContent-Length: 0", 302},
		{"GET", "099 Odd\r\nContent-Length: 0", 503},
	} {
		u1 := upstream("u1", script{wireText("HTTP/1.1 " + c.text + "\r\n\r\n")})
		run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1: u1}\n"}, func(r *rig) {
			r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			if a := r.do(ask{path: "/v1/files/x", method: c.method, bare: true}); a.err != nil || a.status != c.status {
				t.Errorf("%s %q: status %d, error %v", c.method, c.text, a.status, a.err)
			}
		})
	}
}

// TestAnUploadsTimers: what follows an upload is timed as ever. Each case fails
// when only the total runs, or when the clock of the caller's sending counts.
func TestAnUploadsTimers(t *testing.T) {
	text := sse(`{"type":"transcript.text.delta","delta":"hi"}`)
	for name, c := range map[string]struct {
		script script
		early  bool
		pieces int
		status int
		within time.Duration
	}{
		"a stream soon after":            {script{head(), wait(3 * time.Second), text}, false, 12, 200, 16 * time.Second},
		"a stream that is silent":        {script{head(), wait(time.Minute), text}, false, 12, 503, 24 * time.Second},
		"an upstream that reads nothing": {script{wait(time.Minute)}, true, 40, 503, 8 * time.Second},
		"a hang behind the upload":       {script{hold()}, false, 12, 503, 18 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", c.script)
			u1.early = c.early
			run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1: u1}\n", defaults: "timeouts: {headers: 5s, first_content: 10s}"}, func(r *rig) {
				start := time.Now()
				if status, class := r.sendSlowly(c.pieces); status != c.status || time.Since(start) > c.within {
					t.Errorf("status %d, class %s after %s", status, class, time.Since(start))
				}
				if s := r.state("u1"); s.Latency != 0 {
					t.Errorf("learned %s from an upload", s.Latency)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// TestEveryClientReadsItsRefusal: over real sockets a client that is still
// sending reads the answer before the connection ends. It fails when reads
// are broken off, or when the connection is closed over unread data.
func TestEveryClientReadsItsRefusal(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"no such purpose","type":"invalid_request_error"}}`)
	}))
	defer up.Close()
	s := setup{upstreams: []*fake{upstream("u1")}, more: "passthrough: {/v1: u1}\nstore: {path: memory}\n"}
	text := strings.NewReplacer("http://u1.test", up.URL, ":8080", ":0", ":8081", ":0").Replace(s.yaml())
	file := filepath.Join(t.TempDir(), "hourthree.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := New(Options{ConfigPath: file, Env: os.LookupEnv, Stdout: io.Discard, Stderr: io.Discard, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Stop()
	for _, chunked := range []bool{true, false} {
		for range 20 {
			body := make([]byte, 4<<20)
			req, err := http.NewRequest(http.MethodPost, "http://"+a.Addr().String()+"/v1/files", io.NopCloser(bytes.NewReader(body)))
			if err != nil {
				t.Fatal(err)
			}
			if req.ContentLength = int64(len(body)); chunked {
				req.ContentLength = -1
			}
			req.Header.Set("Authorization", "Bearer "+callerKey)
			req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatalf("chunked %v: %v", chunked, err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Fatalf("chunked %v: status %d", chunked, resp.StatusCode)
			}
		}
	}
}
