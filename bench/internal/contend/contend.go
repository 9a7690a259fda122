// Package contend starts what the benchmarks compare, each as a process of
// its own on loopback: this router built from the tree, nginx as a plain
// proxy, and net/http/httputil's ReverseProxy. It measures their CPU time and
// memory from the kernel's books.
package contend

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Key is the workload key of the router's configuration.
const Key = "bench-key"

// Proxy is one contender.
type Proxy struct {
	Name string
	URL  string // base address, with /v1
	cmd  *exec.Cmd
	stop func()
}

// Options are how a contender is started.
type Options struct {
	Dir       string // for its files
	Upstreams []string
	CPU       string // processors to run on, "" for all
	Go        string // GOMAXPROCS of Go contenders, "" for the default
	SameOrder bool   // the router balances its targets instead of ordering them
}

// Build builds the router into dir.
func Build(dir string) (string, error) {
	bin := filepath.Join(dir, "hourthree")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/hourthree/hourthree/cmd/hourthree").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the router: %w\n%s", err, out)
	}
	return bin, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (o Options) command(bin string, args ...string) *exec.Cmd {
	if o.CPU != "" {
		if ts, err := exec.LookPath("taskset"); err == nil {
			args = append([]string{"-c", o.CPU, bin}, args...)
			bin = ts
		}
	}
	cmd := exec.Command(bin, args...)
	cmd.Env = os.Environ()
	if o.Go != "" {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+o.Go)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func start(name string, port int, cmd *exec.Cmd) (*Proxy, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &Proxy{Name: name, URL: fmt.Sprintf("http://127.0.0.1:%d/v1", port), cmd: cmd}
	for range 200 {
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			return p, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	p.Stop()
	return nil, fmt.Errorf("%s did not listen within 5 s", name)
}

// Stop ends the process and its children.
func (p *Proxy) Stop() {
	if p == nil || p.cmd == nil {
		return
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.cmd.Wait()
}

// Router starts this router with its first upstream first.
func Router(bin string, o Options) (*Proxy, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	admin, err := freePort()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:%d\nadmin: {listen: 127.0.0.1:%d}\nproviders:\n", port, admin)
	for i, u := range o.Upstreams {
		fmt.Fprintf(&b, "  up%d: {type: openai-compatible, base_url: %q, api_key: k, domain: d%d}\n", i, u, i)
	}
	b.WriteString("models:\n  m:\n    targets:\n")
	for i := range o.Upstreams {
		order := i + 1
		if o.SameOrder {
			order = 1
		}
		fmt.Fprintf(&b, "      - {provider: up%d, order: %d}\n", i, order)
	}
	fmt.Fprintf(&b, "workloads:\n  bench: {keys: [%s], limits: {rpm: 100000000, concurrency: 100000}}\n", Key)
	path := filepath.Join(o.Dir, fmt.Sprintf("router-%d.yaml", port))
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	return start("hourthree", port, o.command(bin, "serve", "-c", path))
}

// Nginx starts nginx as a plain proxy with kept upstream connections; with
// two upstreams the second is the backup (or an equal, with SameOrder).
func Nginx(o Options) (*Proxy, error) {
	bin, err := exec.LookPath("nginx")
	if err != nil {
		return nil, errors.New("nginx is not installed; try: apt-get install nginx-light")
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	var servers strings.Builder
	for i, raw := range o.Upstreams {
		u, err := url.Parse(raw)
		if err != nil {
			return nil, err
		}
		role := " max_fails=5 fail_timeout=10s"
		if i > 0 && !o.SameOrder {
			role += " backup"
		}
		fmt.Fprintf(&servers, "    server %s%s;\n", u.Host, role)
	}
	dir := filepath.Join(o.Dir, fmt.Sprintf("nginx-%d", port))
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log /dev/null;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  client_max_body_size 64m; client_body_buffer_size 64k; keepalive_requests 1000000;
  upstream up {
%[2]s    keepalive 512; keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:%[3]d;
    location / {
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_connect_timeout 3s; proxy_read_timeout 10s;
      proxy_next_upstream error timeout http_500 http_502 http_503 http_504 http_429 non_idempotent;
    }
  }
}
`, dir, servers.String(), port)
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	return start("nginx", port, o.command(bin, "-p", dir, "-c", path))
}

const proxyEnv = "HOURTHREE_BENCH_PROXY"

// ReverseProxy starts this program again as a ReverseProxy of the first
// upstream. Main must call ServeReverseProxy first.
func ReverseProxy(o Options) (*Proxy, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := o.command(self)
	cmd.Env = append(cmd.Env, proxyEnv+"="+strconv.Itoa(port)+" "+o.Upstreams[0])
	return start("ReverseProxy", port, cmd)
}

// ServeReverseProxy serves and never returns when this process was started by
// ReverseProxy.
func ServeReverseProxy() {
	port, upstream, ok := strings.Cut(os.Getenv(proxyEnv), " ")
	if !ok {
		return
	}
	u, err := url.Parse(upstream)
	if err != nil {
		os.Exit(1)
	}
	u.Path = ""
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 2000, MaxIdleConns: 2000, DisableCompression: true},
	}
	_ = http.ListenAndServe("127.0.0.1:"+port, p)
	os.Exit(1)
}

// CPU is the processor time of the process and its children so far.
func (p *Proxy) CPU() time.Duration {
	var sum time.Duration
	for _, pid := range p.pids() {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		f := strings.Fields(rest)
		if len(f) < 13 {
			continue
		}
		user, _ := strconv.ParseInt(f[11], 10, 64)
		system, _ := strconv.ParseInt(f[12], 10, 64)
		sum += time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
	}
	return sum
}

// RSS is the resident memory of the process and its children, in bytes.
func (p *Proxy) RSS() int64 {
	var sum int64
	for _, pid := range p.pids() {
		data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		if err != nil {
			continue
		}
		if f := strings.Fields(string(data)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			sum += pages * int64(os.Getpagesize())
		}
	}
	return sum
}

func (p *Proxy) pids() []int {
	root := p.cmd.Process.Pid
	out := []int{root}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", root, root))
	if err != nil {
		return out
	}
	for _, f := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(f); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
