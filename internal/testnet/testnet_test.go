package testnet_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
	"github.com/hourthree/hourthree/internal/testnet"
)

func get(t *testing.T, c *http.Client, url string) (*http.Response, string, error) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

// TestVerbs: each verb is on the client's side what its name says.
func TestVerbs(t *testing.T) {
	for _, c := range []struct {
		name   string
		steps  []testnet.Step
		status int
		body   string
		err    error // of the call or of the body
	}{
		{"status", []testnet.Step{testnet.Status(429, "Retry-After", "5")}, 429, "scripted 429", nil},
		{"json", []testnet.Step{testnet.JSON(`{"a":1}`)}, 200, `{"a":1}`, nil},
		{"chat", []testnet.Step{testnet.Chat("hello")}, 200, `"content":"hello"`, nil},
		{"stream", []testnet.Step{testnet.ChatStream("a", "b")}, 200, "data: [DONE]\n\n", nil},
		{"raw", []testnet.Step{testnet.Raw("da", "ta: x\r\n\r\n"), testnet.Fin()}, 200, "data: x\r\n\r\n", nil},
		{"wait", []testnet.Step{testnet.SSE("1"), testnet.Wait(time.Hour), testnet.SSE("2")}, 200, "data: 1\n\ndata: 2\n\n", nil},
		{"head", []testnet.Step{testnet.Head(503, "X-A", "b"), testnet.Raw("oops")}, 503, "oops", nil},
		{"cut", []testnet.Step{testnet.SSE("1"), testnet.Cut()}, 200, "data: 1\n\n", io.ErrUnexpectedEOF},
		{"rst", []testnet.Step{testnet.SSE("1"), testnet.Wait(time.Second), testnet.RST()}, 200, "data: 1\n\n", syscall.ECONNRESET},
		{"cut at once", []testnet.Step{testnet.Cut()}, 0, "", io.EOF},
		{"wire", []testnet.Step{testnet.Wire("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), testnet.Cut()}, 200, "short", io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				u := testnet.NewUpstream(t, n, "u1")
				u.Script(testnet.Always(c.steps...))
				resp, body, err := get(t, testnet.Client(t, n), "http://u1/v1/x")
				if !errors.Is(err, c.err) {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				if c.status != 0 && (resp.StatusCode != c.status || !strings.Contains(body, c.body)) {
					t.Fatalf("%d %q", resp.StatusCode, body)
				}
				if u.Count() != 1 {
					t.Fatalf("%d requests, want 1", u.Count())
				}
			})
		})
	}
}

// TestHold: a silent upstream notes when the client left.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		u := testnet.NewUpstream(t, n, "u1")
		u.Script(testnet.Always(testnet.Mute()))
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "POST", "http://u1/v1/x", strings.NewReader("body"))
		start := time.Now()
		if _, err := testnet.Client(t, n).Do(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		synctest.Wait()
		log := u.Requests()
		if len(log) != 1 || log[0].Gone.Sub(start) != 7*time.Second || string(log[0].Body) != "body" || log[0].Hash == "" {
			t.Fatalf("%+v", log)
		}
	})
}

// TestRules: tries, connections and times each get their script.
func TestRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		u := testnet.NewUpstream(t, n, "u1")
		u.Script(
			testnet.Try(2, testnet.Status(502)),
			testnet.OnConnTry(1, 3, testnet.Cut()),
			testnet.OnConn(2, testnet.Status(503)),
			testnet.During(time.Hour, 2*time.Hour, testnet.Status(504)),
			testnet.When(func(r testnet.Request) bool { return r.URI == "/teapot" }, testnet.Status(418)),
			testnet.Always(testnet.Status(200)),
		)
		c := testnet.Client(t, n)
		for i, want := range []int{200, 502, 0, 503} {
			resp, err := c.Post("http://u1/", "text/plain", strings.NewReader("x"))
			got := 0
			if err == nil {
				got = resp.StatusCode
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if got != want {
				t.Fatalf("request %d: %d, want %d (%v)", i+1, got, want, err)
			}
		}
		c.CloseIdleConnections()
		if resp, _, err := get(t, c, "http://u1/teapot"); err != nil || resp.StatusCode != 418 {
			t.Fatal(resp, err)
		}
		time.Sleep(time.Hour) // virtual
		if resp, _, err := get(t, c, "http://u1/teapot"); err != nil || resp.StatusCode != 504 {
			t.Fatal(resp, err)
		}
	})
}

// TestDoors: a name that is not there, a refusing host, a silent one.
func TestDoors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		u := testnet.NewUpstream(t, n, "u1")
		u.Script(testnet.Always(testnet.Status(200)))
		c := testnet.Client(t, n)
		var dns *net.DNSError
		if _, _, err := get(t, c, "http://nowhere/"); !errors.As(err, &dns) {
			t.Fatal(err)
		}
		u.Refuse()
		if _, _, err := get(t, c, "http://u1/"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
		u.Silence()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dial(ctx, "tcp", "u1:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		u.Hide()
		if _, _, err := get(t, c, "http://u1/"); !errors.As(err, &dns) {
			t.Fatal(err)
		}
		u.Open()
		if resp, _, err := get(t, c, "http://u1/"); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if n.Dials("u1") != 4 || n.Dials("nowhere") != 1 || u.Count() != 1 {
			t.Fatal(n.Dials("u1"), n.Dials("nowhere"), u.Count())
		}
	})
}

// TestPorts: two listeners of a host, a port without one, and one that is
// opened again.
func TestPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		one, two := n.Listen("h:1"), n.Listen("h:2")
		for _, l := range []*memnet.Listener{one, two} {
			if _, err := n.Dial(t.Context(), "tcp", l.Addr().String()); err != nil {
				t.Fatal(err)
			}
			c, err := l.Accept()
			if err != nil || c.LocalAddr().String() != l.Addr().String() {
				t.Fatal(c, err)
			}
		}
		two.Close()
		for _, addr := range []string{"h:2", "h:3"} {
			if _, err := n.Dial(t.Context(), "tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatal(addr, err)
			}
		}
		again := n.Listen("h:2")
		if _, err := n.Dial(t.Context(), "tcp", "h:2"); err != nil {
			t.Fatal(err)
		}
		if n.Listener("h:2") != again || n.Listener("h:1") != one || n.Listener("h") != nil || n.Dials("h") != 5 {
			t.Fatal(n.Dials("h"))
		}
	})
}

// TestConn: windows, deadlines and ends are those of a TCP connection.
func TestConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		l := n.Listen("h")
		defer l.Close()
		dial := func() (client, server net.Conn) {
			client, err := n.Dial(t.Context(), "tcp", "h:1")
			if err != nil {
				t.Fatal(err)
			}
			server, err = l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return client, server
		}
		client, server := dial()
		_ = client.SetReadDeadline(time.Now().Add(time.Minute))
		start := time.Now()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Minute {
			t.Fatal(err, time.Since(start))
		}
		_ = client.SetWriteDeadline(time.Now().Add(time.Minute))
		sent, err := client.Write(make([]byte, 1<<20))
		if sent != 64<<10 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(sent, err)
		}
		client.Close()
		if got, err := io.ReadAll(server); len(got) != sent || err != nil {
			t.Fatal("an orderly end loses what was sent:", len(got), err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
		client, server = dial()
		_, _ = client.Write([]byte("lost"))
		client.(*memnet.Conn).Reset()
		if got, err := io.ReadAll(server); len(got) != 0 || !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(got, err)
		}
		server.Close()
	})
}

// TestServe: a handler behind a real server, streaming in virtual time.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		base := testnet.Serve(t, n, "router", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, s := range []string{"one\n", "two\n"} {
				_, _ = io.WriteString(w, s)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Hour) // virtual
			}
		}))
		resp, err := testnet.Client(t, n).Get(base + "/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		start := time.Now()
		in := bufio.NewScanner(resp.Body)
		for i, want := range []string{"one", "two"} {
			if !in.Scan() || in.Text() != want || time.Since(start) != time.Duration(i)*time.Hour {
				t.Fatal(in.Text(), time.Since(start))
			}
		}
		if in.Scan() || in.Err() != nil || time.Since(start) != 2*time.Hour {
			t.Fatal(in.Text(), in.Err(), time.Since(start))
		}
	})
}
