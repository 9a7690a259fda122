package provider

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"

	"github.com/hourthree/hourthree/internal/testnet"
)

// bench is one provider and its scripted upstream.
type bench struct {
	*Provider
	t   *testing.T
	net *memnet.Net
	up  *testnet.Upstream
}

func newBench(t *testing.T, rules ...testnet.Rule) *bench {
	n := memnet.New()
	b := &bench{t: t, net: n, up: testnet.NewUpstream(t, n, "u1")}
	b.up.Script(rules...)
	b.Provider = mustNew(t, Spec{Type: OpenAI, BaseURL: "http://u1", APIKey: "k"}, Deps{Dial: n.Dial})
	t.Cleanup(b.Close)
	return b
}

// call makes one call and reads its answer.
func (b *bench) call(ctx context.Context, c Call) (info *ConnInfo, status int, body string, err error) {
	info = new(ConnInfo)
	out, err := b.Request(WithTrace(ctx, info), c)
	if err != nil {
		return info, 0, "", err
	}
	resp, err := b.RoundTrip(ticket(b.t), out)
	if err != nil {
		return info, 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return info, resp.StatusCode, string(all), err
}

func calls() map[string]func() Call {
	body := `{"model":"m"}`
	return map[string]func() Call{
		"post": func() Call {
			return Call{Method: "POST", Path: "/a", Bytes: []byte(body)}
		},
		"stream": func() Call {
			return Call{Method: "POST", Path: "/a", Body: io.MultiReader(strings.NewReader(body)), ContentLength: 13}
		},
		"no length": func() Call {
			return Call{Method: "POST", Path: "/a", Body: io.MultiReader(strings.NewReader(body)), ContentLength: -1}
		},
		"empty post":      func() Call { return Call{Method: "POST", Path: "/a"} },
		"get with a body": func() Call { return Call{Method: "GET", Path: "/a", Bytes: []byte(body)} },
		"get":             func() Call { return Call{Method: "GET", Path: "/a"} },
		"delete":          func() Call { return Call{Method: "DELETE", Path: "/a"} },
		"idempotent": func() Call {
			return Call{Method: "POST", Path: "/a", Bytes: []byte(body), Header: http.Header{"Idempotency-Key": {"1"}, "X-Idempotency-Key": {"1"}}}
		},
	}
}

// TestNoReplay: a request that may have reached the upstream is not sent
// again by net/http, whatever its method, headers and body. Without the guards
// of setBody and headers, "get" and "idempotent" are sent twice here.
func TestNoReplay(t *testing.T) {
	for name, call := range calls() {
		for how, end := range map[string]testnet.Step{"cut": testnet.Cut(), "reset": testnet.RST()} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, testnet.Try(2, end), testnet.Always(testnet.JSON("{}")))
					info, status, _, err := b.call(t.Context(), call())
					if err != nil || status != 200 || info.Reused() {
						t.Fatal(status, err, info)
					}
					info, _, _, err = b.call(t.Context(), call())
					if err == nil || !info.Reused() {
						t.Fatal(err, info)
					}
					if b.up.Count() != 2 || b.net.Dials("u1") != 1 {
						t.Fatalf("%d requests on %d connections", b.up.Count(), b.net.Dials("u1"))
					}
					sent := b.up.Requests()
					if string(sent[0].Body) != string(sent[1].Body) || sent[0].Header.Get("Authorization") != "Bearer k" {
						t.Fatal(sent)
					}
				})
			})
		}
	}
}

// TestDeadIdleConnection: a kept connection that the upstream has closed
// costs no failed call.
func TestDeadIdleConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testnet.Try(1, testnet.Wire("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), testnet.Wait(time.Second), testnet.Cut()), testnet.Always(testnet.JSON("{}")))
		for range 2 {
			info, status, _, err := b.call(t.Context(), calls()["post"]())
			if err != nil || status != 200 || info.Reused() {
				t.Fatal(status, err)
			}
			time.Sleep(time.Minute) // virtual
		}
		if b.up.Count() != 2 || b.net.Dials("u1") != 2 {
			t.Fatal(b.up.Count(), b.net.Dials("u1"))
		}
	})
}

// TestEmptyBodies: a request without body says so in the way its method wants.
func TestEmptyBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, testnet.Always(testnet.JSON("{}")))
		for _, method := range []string{"GET", "DELETE", "POST"} {
			if _, _, _, err := b.call(t.Context(), Call{Method: method, Path: "/a", Body: strings.NewReader("")}); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range b.up.Requests() {
			if len(r.Header["Transfer-Encoding"]) != 0 || (r.Header.Get("Content-Length") == "0") != (r.Method == "POST") {
				t.Error(i, r.Method, r.Header)
			}
		}
	})
}

// TestOneWrite: head and body of a small request leave in one write.
func TestOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		up := testnet.NewUpstream(t, n, "u1")
		up.Script(testnet.Always(testnet.JSON("{}")))
		var writes atomic.Int64
		p := mustNew(t, Spec{Type: OpenAI, BaseURL: "http://u1", APIKey: "k"}, Deps{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := n.Dial(ctx, network, addr)
			return countWrites{c, &writes}, err
		}})
		defer p.Close()
		b := &bench{t: t, Provider: p}
		if _, _, _, err := b.call(t.Context(), calls()["post"]()); err != nil || writes.Load() != 1 {
			t.Errorf("%d writes, %v", writes.Load(), err)
		}
	})
}

type countWrites struct {
	net.Conn
	n *atomic.Int64
}

func (c countWrites) Write(p []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(p)
}

// TestUnconnected: every failure before a connection stands is a *net.OpError
// with Op "dial", within the connect limit, and nothing is sent.
func TestUnconnected(t *testing.T) {
	for _, c := range []struct {
		name, base string
		prepare    func(*testnet.Upstream)
		late       bool
	}{
		{"no such host", "http://nowhere", func(*testnet.Upstream) {}, false},
		{"refused", "http://u1", func(u *testnet.Upstream) { u.Refuse() }, false},
		{"silent", "http://u1", func(u *testnet.Upstream) { u.Silence() }, true},
		{"no TLS there", "https://u1", func(*testnet.Upstream) {}, false},
		{"silent TLS", "https://u1", func(u *testnet.Upstream) { u.Silence() }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				c.prepare(b.up)
				b.Provider = mustNew(t, Spec{Type: OpenAI, BaseURL: c.base, APIKey: "sk-secret", ConnectTimeout: 2 * time.Second}, Deps{Dial: b.net.Dial})
				start := time.Now()
				info, _, _, err := b.call(t.Context(), calls()["post"]())
				var op *net.OpError
				if !errors.As(err, &op) || op.Op != "dial" || op.Timeout() != c.late || info.Reused() || strings.Contains(err.Error(), "sk-secret") {
					t.Fatalf("%v (%+v)", err, op)
				}
				if took := time.Since(start); took > 2*time.Second || c.late && took != 2*time.Second {
					t.Fatal(took)
				}
				if b.up.Count() != 0 {
					t.Fatal("something was sent")
				}
			})
		})
	}
}

// TestHandshakeTimeout: a host that accepts and then says nothing to TLS ends
// within the connect limit too.
func TestHandshakeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		l := n.Listen("u1")
		defer l.Close()
		b := &bench{t: t, Provider: mustNew(t, Spec{Type: OpenAI, BaseURL: "https://u1", APIKey: "k", ConnectTimeout: 2 * time.Second}, Deps{Dial: n.Dial})}
		start := time.Now()
		_, _, _, err := b.call(t.Context(), calls()["post"]())
		var op *net.OpError
		if !errors.As(err, &op) || op.Op != "dial" || !op.Timeout() || time.Since(start) != 2*time.Second {
			t.Fatal(err, time.Since(start))
		}
	})
}

// TestClientLeaves: when the caller's context ends, the upstream sees the
// connection close at once, before headers and in the middle of a stream.
func TestClientLeaves(t *testing.T) {
	for name, steps := range map[string][]testnet.Step{
		"before headers": {testnet.Mute()}, "in a stream": {testnet.SSE(testnet.Role), testnet.Hold()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, testnet.Always(steps...))
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				start := time.Now()
				if _, _, _, err := b.call(ctx, calls()["post"]()); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				synctest.Wait()
				if log := b.up.Requests(); len(log) != 1 || log[0].Gone.Sub(start) != 200*time.Millisecond {
					t.Fatal(log)
				}
			})
		})
	}
}

// TestAsItCame: redirects are not followed, and a header beyond the bound is
// an error.
func TestAsItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t,
			testnet.Try(1, testnet.Answer(307, "", "Location", "http://u2/v1/a")),
			testnet.Try(2, testnet.Answer(200, "", "X-Long", strings.Repeat("x", 70<<10))),
		)
		other := testnet.NewUpstream(t, b.net, "u2")
		_, status, _, err := b.call(t.Context(), calls()["post"]())
		if err != nil || status != 307 || other.Count() != 0 || b.up.Count() != 1 {
			t.Fatal(status, err, other.Count())
		}
		if _, _, _, err := b.call(t.Context(), calls()["post"]()); err == nil || b.up.Count() != 2 {
			t.Fatal(err, b.up.Count())
		}
	})
}

// TestCloseInTraffic: providers are replaced and closed while calls run on
// them; no call notices, and a closed provider's late call still works.
func TestCloseInTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		up := testnet.NewUpstream(t, n, "u1")
		up.Script(testnet.Always(testnet.SSE("1"), testnet.Wait(3*time.Millisecond), testnet.SSE("2")))
		var current atomic.Pointer[Provider]
		fresh := func() *Provider {
			return mustNew(t, Spec{Type: OpenAI, BaseURL: "http://u1", APIKey: "k"}, Deps{Dial: n.Dial})
		}
		current.Store(fresh())
		const callers, each = 8, 100
		failed := make(chan error, callers*each)
		for range callers {
			go func() {
				for range each {
					b := &bench{t: t, Provider: current.Load()}
					if _, status, body, err := b.call(t.Context(), calls()["post"]()); err != nil || status != 200 || body != "data: 1\n\ndata: 2\n\n" {
						failed <- errors.Join(err, errors.New(body))
					} else {
						failed <- nil
					}
				}
			}()
		}
		for range 1000 {
			time.Sleep(300 * time.Microsecond) // virtual
			current.Swap(fresh()).Close()
		}
		for range callers * each {
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
		}
		last := current.Load()
		last.Close()
		if _, status, _, err := (&bench{t: t, Provider: last}).call(t.Context(), calls()["post"]()); err != nil || status != 200 {
			t.Fatal(status, err)
		}
		last.Close()
		time.Sleep(2 * idleTimeout) // virtual: idle connections of late calls end too
		if up.Count() != callers*each+1 {
			t.Fatal(up.Count())
		}
	})
}

// TestRotatedKey: the next call after a reload has the new key, and no call
// has the old one.
func TestRotatedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		up := testnet.NewUpstream(t, n, "u1")
		up.Script(testnet.Always(testnet.JSON("{}")))
		for _, key := range []string{"old", "new", "newer"} {
			b := &bench{t: t, Provider: mustNew(t, Spec{Type: OpenAI, BaseURL: "http://u1", APIKey: key}, Deps{Dial: n.Dial})}
			for range 2 {
				if _, _, _, err := b.call(t.Context(), calls()["post"]()); err != nil {
					t.Fatal(err)
				}
				log := up.Requests()
				if got := log[len(log)-1].Header.Get("Authorization"); got != "Bearer "+key {
					t.Fatal(got)
				}
			}
			b.Close()
		}
	})
}
