//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Paths, from this package's folder.
const (
	root       = "../.."
	clientsDir = "../clients"
	routerBin  = "../../bin/hourthree"
)

// TestMain builds the router once and ends the client programs.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		if _, err := os.Stat(filepath.Join(clientsDir, "node_modules")); err != nil {
			fmt.Fprintln(os.Stderr, "test/clients has no packages yet: run `make test-setup`")
			return 1
		}
		build := exec.Command("go", "build", "-o", "bin/hourthree", "./cmd/hourthree")
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "the router does not build: %v\n%s", err, out)
			return 1
		}
		defer programs.stop()
		return m.Run()
	}())
}

// conf is a piece of configuration; JSON is YAML too.
type conf map[string]any

// upstreams declares a provider of each type at the fake.
func upstreams(f *fake) conf {
	return conf{
		"plain":      conf{"type": "openai", "base_url": f.URL + "/v1", "api_key": upstreamKey, "domain": "plain"},
		"azure":      conf{"type": "azure", "base_url": f.URL, "api_key": upstreamKey, "domain": "azure"},
		"compatible": conf{"type": "openai-compatible", "base_url": f.URL + "/v1", "api_key": upstreamKey, "domain": "compatible"},
	}
}

// order is a list of targets tried in this order, each "provider/model".
func order(targets ...string) conf {
	var list []conf
	for i, t := range targets {
		provider, model, _ := strings.Cut(t, "/")
		list = append(list, conf{"provider": provider, "model": model, "order": i + 1})
	}
	return conf{"targets": list}
}

// userKey is what clients send; userKey+"-"+name for other workloads.
const userKey = "sk-user-91ab"

func workloads(names ...string) conf {
	w := conf{"users": conf{"keys": []string{userKey}}}
	for _, n := range names {
		w[n] = conf{"keys": []string{userKey + "-" + n}}
	}
	return w
}

// router is a running router process.
type router struct {
	cmd           *exec.Cmd
	origin, admin string // scheme, host and port
	config        string // the path of its file, "" where a command says which
	log           tail
	ended         chan error
}

var (
	servesLine = regexp.MustCompile(`serves (http://\S+)`)
	curlLine   = regexp.MustCompile(`(?m)^\s*(curl .*)\n`) // the last thing it says
	adminLine  = regexp.MustCompile(`dashboard\s+(http://[^\s/]+)`)
)

// startRouter runs `hourthree serve` with a configuration and ends it with
// the test.
func startRouter(t *testing.T, c conf) *router {
	t.Helper()
	c["listen"], c["admin"] = "127.0.0.1:0", conf{"listen": "127.0.0.1:0"}
	path := filepath.Join(t.TempDir(), "hourthree.yaml")
	write(t, path, c)
	r := startCommand(t, exec.Command(routerBin, "serve", "-c", path))
	r.config = path
	return r
}

// reconfigure changes the file of a router that runs, which reads it by itself.
func (r *router) reconfigure(t *testing.T, c conf) {
	t.Helper()
	write(t, r.config, c)
}

func write(t *testing.T, path string, c conf) {
	t.Helper()
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// startCommand runs a serve command and waits until it says where it serves.
func startCommand(t *testing.T, cmd *exec.Cmd) *router {
	t.Helper()
	r := &router{cmd: cmd, ended: make(chan error, 1)}
	var said tail
	cmd.Stdout, cmd.Stderr = &said, &r.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // `go run` has a child
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		if t.Failed() {
			t.Logf("the router's log ends with:\n%s", r.log.String())
		}
	})
	eventually(t, 2*time.Minute, "the router says where it serves", func() bool {
		select {
		case err := <-r.ended:
			t.Fatalf("serve ended: %v\n%s%s", err, said.String(), r.log.String())
		default:
		}
		a, b := servesLine.FindStringSubmatch(said.String()), adminLine.FindStringSubmatch(said.String())
		if a == nil || b == nil || !curlLine.MatchString(said.String()) {
			return false
		}
		r.origin, r.admin = a[1], b[1]
		return true
	})
	r.log.add(said.String())
	return r
}

// state is the part of the operator's JSON that the tests read.
type state struct {
	Targets   []targetState `json:"targets"`
	Workloads []struct {
		Name    string `json:"name"`
		Inbound int    `json:"inbound"`
	} `json:"workloads"`
}

type targetState struct {
	Name    string `json:"name"`
	Breaker string `json:"breaker"`
	Window  struct {
		Failed int `json:"failed"`
	} `json:"window"`
	InFlight int `json:"in_flight"`
}

func (r *router) state(t *testing.T) state {
	t.Helper()
	status, body, _ := get(t, r.admin+"/api/v1/state")
	var s state
	if err := json.Unmarshal(body, &s); status != http.StatusOK || err != nil {
		t.Fatalf("state: %d, %v: %s", status, err, body)
	}
	return s
}

func get(t *testing.T, url string) (int, []byte, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body, resp.Header
}

// post sends a body as a plain HTTP client would.
func post(t *testing.T, url, key, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// eventually polls a condition until it holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

// tail keeps the end of what a process says. Safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 64 << 10

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if over := len(b.buf) - tailBytes; over > 0 {
		b.buf = b.buf[over:]
	}
	return len(p), nil
}

func (b *tail) add(s string) { _, _ = b.Write([]byte(s)) }

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.buf)
}
