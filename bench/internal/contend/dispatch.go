package contend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/hourthree/hourthree/bench/internal/upstream"
)

// The roles a benchmark's binary has besides its own, as first argument.
const (
	roleUpstream     = "role:upstream"
	roleReverseProxy = "role:reverseproxy" // LISTEN UPSTREAM
)

// Dispatch plays the role this process was started for and then exits; it
// returns at once in a process that has none.
func Dispatch() {
	if len(os.Args) < 2 {
		return
	}
	var err error
	switch os.Args[1] {
	case roleUpstream:
		err = upstream.Run(os.Stdin, os.Stdout)
	case roleReverseProxy:
		err = serveReverseProxy(os.Args[2], os.Args[3])
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, os.Args[1], err)
		os.Exit(1)
	}
	os.Exit(0)
}

// WithGo is ctx, ended too when this process was started by "go run" and that
// is killed: go passes an interrupt on but no other signal.
func WithGo(ctx context.Context) context.Context {
	parent := os.Getppid()
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if string(name) != "go\n" {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for os.Getppid() == parent && ctx.Err() == nil {
			time.Sleep(500 * time.Millisecond)
		}
		cancel()
	}()
	return ctx
}

// Upstream is a running fake provider.
type Upstream struct {
	*Process
	*upstream.Control
	stdin io.Closer
}

// StartUpstream starts a fake provider whose good answers have shape sh.
func StartUpstream(s Spec, sh upstream.Shape) (*Upstream, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.Log = nil
	cmd := s.command(self, roleUpstream)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the upstream: %w", err)
	}
	u := &Upstream{Process: &Process{Name: "upstream", cmd: cmd}, stdin: in}
	var at struct{ Addr, Control string }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err == nil {
		u.Addr, u.Control = at.Addr, upstream.NewControl(at.Control)
		err = u.Set(upstream.Setting{Shape: &sh})
	}
	if err != nil {
		u.Stop()
		return nil, fmt.Errorf("start the upstream: %w", err)
	}
	return u, nil
}

// ReverseProxy starts net/http/httputil's ReverseProxy, tuned, before addr.
func ReverseProxy(s Spec, addr string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return launch("ReverseProxy", listen, s.command(self, roleReverseProxy, listen, addr), func() error { return dial(listen) })
}

// buffers are the copy buffers of the ReverseProxy.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte  { return *b.pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

func serveReverseProxy(listen, addr string) error {
	target := &url.URL{Scheme: "http", Host: addr}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	return http.Serve(l, &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true},
		BufferPool: &buffers{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}},
		ErrorLog:   log.New(io.Discard, "", 0),
	})
}
