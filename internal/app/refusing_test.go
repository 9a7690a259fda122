package app

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestC12BadBodies(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for name, tc := range map[string]struct {
		body, code string
	}{
		"not JSON":                {`model=m`, "invalid_json"},
		"cut":                     {`{"model":"m","messages":[`, "invalid_json"},
		"list":                    {`["m"]`, "invalid_json"},
		"null":                    {`null`, "invalid_json"},
		"text":                    {`"m"`, "invalid_json"},
		"two objects":             {`{"model":"m"}{"model":"m"}`, "invalid_json"},
		"byte order mark":         {"\xef\xbb\xbf" + `{"model":"m"}`, "invalid_json"},
		"bad UTF-8":               {"{\"model\":\"m\",\"x\":\"\xff\"}", "invalid_json"},
		"NUL":                     {"{\"model\":\"m\x00\"}", "invalid_json"},
		"bad number":              {`{"model":"m","n":01}`, "invalid_json"},
		"no model":                {`{"messages":[]}`, "missing_model"},
		"model is a number":       {`{"model":7}`, "wrong_type"},
		"model is null":           {`{"model":null}`, "wrong_type"},
		"model is empty":          {`{"model":""}`, "wrong_type"},
		"model is long":           {`{"model":"` + strings.Repeat("m", 600) + `"}`, "wrong_type"},
		"stream is text":          {`{"model":"m","stream":"yes"}`, "wrong_type"},
		"two models":              {`{"model":"m","model":"n"}`, "duplicate_key"},
		"two models, one escaped": {`{"model":"m","mod\u0065l":"n"}`, "duplicate_key"},
		"model in capitals":       {`{"Model":"n","model":"m"}`, "wrong_name"},
		"40 levels":               {`{"model":"m","x":` + deep + `}`, "too_deep"},
		"2 MB of brackets":        {strings.Repeat("[", 2<<20), "invalid_json"},
		"2 MB inside":             {`{"model":"m","x":` + strings.Repeat("[", 2<<20), "too_deep"},
		"unknown model":           {`{"model":"other"}`, "model_not_found"},
		"hostile model":           {`{"model":"../../etc\u0000<script>"}`, "model_not_found"},
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/openai/v1/chat/completions"} {
			t.Run(name+" "+path, func(t *testing.T) {
				u1 := upstream("u1", answers("x"))
				run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
					a := r.do(ask{path: path, body: tc.body})
					want := http.StatusBadRequest
					if tc.code == "model_not_found" {
						want = http.StatusNotFound
					}
					r.failed(a, want, "client")
					if _, code := errorOf(a.body); code != tc.code {
						t.Errorf("code %q, want %q: %.300s", code, tc.code, a.body)
					}
					if strings.Contains(a.body, "\x00") || len(a.body) > 2000 {
						t.Errorf("body of %d bytes: %.300q", len(a.body), a.body)
					}
					r.counts(map[*fake]int{u1: 0})
				})
			})
		}
	}
}

func TestC12EmptyBodies(t *testing.T) {
	for _, path := range []string{"/v1/chat/completions", "/v1/embeddings", "/v1/responses", "/openai/deployments/m/chat/completions"} {
		t.Run(path, func(t *testing.T) {
			u1 := upstream("u1", answers("x"))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				req := r.request(ask{path: path})
				req.Body, req.ContentLength = http.NoBody, 0
				resp, err := r.client.Do(req)
				if err != nil {
					r.t.Fatal(err)
				}
				defer resp.Body.Close()
				b, _ := io.ReadAll(resp.Body) // judged by what it holds
				if msg, _ := errorOf(string(b)); resp.StatusCode != 400 || msg == "" {
					t.Errorf("status %d, body %q", resp.StatusCode, b)
				}
				r.counts(map[*fake]int{u1: 0})
			})
		})
	}
}

func TestBadKeys(t *testing.T) {
	for name, header := range map[string][]string{
		"wrong":      {"Authorization", "Bearer wrong"},
		"none":       {"Authorization", ""},
		"scheme":     {"Authorization", "Basic " + callerKey},
		"other way":  {"Authorization", "", "X-Api-Key", callerKey + "x"},
		"upstream's": {"Authorization", "Bearer secret-of-u1"},
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/models", "/v1/files", "/openai/deployments/m/embeddings"} {
			t.Run(name+" "+path, func(t *testing.T) {
				u1 := upstream("u1", answers("x"))
				run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
					method := http.MethodPost
					if path == "/v1/models" {
						method = http.MethodGet
					}
					a := r.do(ask{path: path, method: method, headers: header})
					r.failed(a, 401, "client")
					if _, code := errorOf(a.body); code != "invalid_api_key" {
						t.Errorf("code %q", code)
					}
					r.counts(map[*fake]int{u1: 0})
				})
			})
		}
	}
}

func TestKeysInEveryPlace(t *testing.T) {
	for _, header := range [][]string{
		{"Authorization", "Bearer " + callerKey}, {"Authorization", "bearer  " + callerKey},
		{"Authorization", "", "X-Api-Key", callerKey}, {"Authorization", "", "Api-Key", callerKey},
	} {
		t.Run(strings.Join(header, " "), func(t *testing.T) {
			u1 := upstream("u1", answers("from one"))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				r.good(r.do(ask{headers: header}), "from one")
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}

func TestJ07SizeOfABody(t *testing.T) {
	const limit = 1 << 20
	for _, chunked := range []bool{false, true} {
		for extra, want := range map[int]int{-1: 200, 0: 200, 1: 413, 1 << 20: 413} {
			t.Run(fmt.Sprint(chunked, extra), func(t *testing.T) {
				u1 := upstream("u1", answers("from one"))
				run(t, setup{upstreams: []*fake{u1}, http: "max_body: 1MiB"}, func(r *rig) {
					body := `{"model":"m","x":"` + strings.Repeat("a", limit+extra-20) + `"}`
					a := ask{body: body}
					if chunked {
						a.length = -1
					}
					got := r.do(a)
					if want == 200 {
						r.good(got, "from one")
						if s := u1.request(0); !strings.HasSuffix(s.body, `a"}`) || len(s.body) != len(body)+3 {
							t.Errorf("%d bytes went up for %d", len(s.body), len(body))
						}
						r.counts(map[*fake]int{u1: 1})
						return
					}
					r.failed(got, 413, "client")
					if msg, _ := errorOf(got.body); !strings.Contains(msg, "1") {
						t.Errorf("the limit is not named: %q", msg)
					}
					r.counts(map[*fake]int{u1: 0})
				})
			})
		}
	}
}

func TestJ08ALargeBodyIsRefusedBeforeItIsSent(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}, http: "max_body: 1MiB"}, func(r *rig) {
		c := r.dialRaw()
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n", callerKey)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			r.t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("status %d", resp.StatusCode)
		}
		r.counts(map[*fake]int{u1: 0})
	})
}

func TestLargeHeaders(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}, http: "max_header: 8KiB"}, func(r *rig) {
		a := r.do(ask{headers: []string{"X-Large", strings.Repeat("h", 64<<10)}})
		if a.status != 431 {
			t.Errorf("status %d, error %v", a.status, a.err)
		}
		r.counts(map[*fake]int{u1: 0})
	})
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}, http: "header_timeout: 5s"}, func(r *rig) {
		c := r.dialRaw()
		defer c.Close()
		start := time.Now()
		go func() {
			for _, b := range "POST /v1/chat/completions HTTP/1.1\r\nHost: a.very.long.name.indeed\r\n" {
				if _, err := fmt.Fprint(c, string(b)); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		_, _ = io.Copy(io.Discard, c) // ends when the router hangs up
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("cut off after %s", d)
		}
		_ = c.Close()
		time.Sleep(2 * time.Second)
		r.counts(map[*fake]int{u1: 0})
	})
}

func TestSlowBodiesAreCutOff(t *testing.T) {
	for name, tc := range map[string]struct {
		pause time.Duration
		most  time.Duration
	}{
		"standing still": {time.Hour, 16 * time.Second},
		"drip":           {10 * time.Second, 5*time.Minute + 16*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("x"))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				c := r.dialRaw()
				start := time.Now()
				over := make(chan struct{})
				go func() {
					fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"model\"", callerKey)
					for {
						select {
						case <-over:
							return
						case <-time.After(tc.pause):
						}
						if _, err := fmt.Fprint(c, " "); err != nil {
							return
						}
					}
				}()
				answer, _ := io.ReadAll(c) // ends when the router hangs up
				if d := time.Since(start); d > tc.most {
					t.Errorf("cut off after %s", d)
				}
				if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), `"error":{"message"`) {
					t.Errorf("got %q", answer)
				}
				close(over)
				_ = c.Close()
				synctest.Wait()
				r.counts(map[*fake]int{u1: 0})
			})
		})
	}
}

func TestOddRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path string
		status       int
	}{
		"unknown path":    {"POST", "/v1/nothing/here", 404},
		"no such root":    {"POST", "/elsewhere", 404},
		"wrong method":    {"GET", "/v1/chat/completions", 404},
		"climbing":        {"POST", "/v1/%2e%2e/admin", 404},
		"one model":       {"GET", "/v1/models/m", 200},
		"unknown model":   {"GET", "/v1/models/x", 404},
		"list":            {"GET", "/v1/models", 200},
		"deployment":      {"POST", "/openai/deployments/x/chat/completions", 404},
		"deployment path": {"POST", "/openai/deployments/m/%2e%2e/x", 400},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("x"))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				body := `{"messages":[]}`
				a := r.do(ask{method: tc.method, path: tc.path, body: body})
				if a.status != tc.status {
					t.Errorf("status %d, want %d: %.300s", a.status, tc.status, a.body)
				}
				if msg, _ := errorOf(a.body); (msg == "") == (tc.status >= 400) {
					t.Errorf("body %q", a.body)
				}
				r.counts(map[*fake]int{u1: 0})
			})
		})
	}
}

func TestAClimbingPathCoolsNothingDown(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1/files: u1}\n"}, func(r *rig) {
		for _, path := range []string{"/v1/files/%2e%2e/%2e%2e/admin", "/v1/files/x%5c..%5cy", "/openai/deployments/m/a/%2e%2e/b"} {
			r.failed(r.do(ask{path: path, body: `{"x":1}`}), 400, "client")
		}
		r.counts(map[*fake]int{u1: 0})
		r.good(r.do(ask{}), "from one")
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestARefusedBodyHoldsNoConnection(t *testing.T) {
	for name, start := range map[string]string{
		"wrong key":    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 1000\r\n\r\n{",
		"unknown path": "POST /elsewhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"too large":    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + callerKey + "\r\nContent-Length: 99999999999\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", answers("x"))
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				c := r.dialRaw()
				defer c.Close()
				began := time.Now()
				fmt.Fprint(c, start)
				answer, _ := io.ReadAll(c) // ends when the router hangs up
				if d := time.Since(began); d > 20*time.Second {
					t.Errorf("held for %s", d)
				}
				if !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
					t.Errorf("got %q", answer)
				}
				r.counts(map[*fake]int{u1: 0})
			})
		})
	}
}
