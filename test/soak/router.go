package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// goMemory is the router's GOMEMLIMIT; its ledger is 0.6 of it.
	goMemory = 384 << 20
	// besides is what a process has in memory that GOMEMLIMIT does not count:
	// the pages of the binary itself, mostly.
	besides = 64 << 20
)

// The workloads' keys.
const (
	keySmall  = "soak-key-of-the-small-one" // behaves well
	keyGreedy = "soak-key-of-the-greedy-one"
	keyMute   = "soak-key-of-the-mute-one"
	keyBulk   = "soak-key-of-the-one-with-large-bodies"
)

var providers = []string{"a", "b", "c", "d", "e"}

// conf is the router's configuration; narrow is how many calls e takes at once,
// which reloads change.
func conf(addrs []string, listen, admin string, narrow int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nadmin: {listen: %s}\nproviders:\n", listen, admin)
	for i, name := range providers {
		fmt.Fprintf(&b, "  %s: {type: openai-compatible, base_url: \"http://%s/v1\", api_key: soak-upstream-key}\n", name, addrs[i])
	}
	const limits = "limits: {concurrency: 100}"
	b.WriteString("models:\n  m:\n    targets:\n")
	for i, name := range providers[:3] {
		fmt.Fprintf(&b, "      - {provider: %s, model: real, order: %d, %s}\n", name, 1+i/2, limits)
	}
	fmt.Fprintf(&b, "  narrow: {targets: [{provider: e, model: real, limits: {concurrency: %d}}]}\n", narrow)
	for _, name := range []string{modelMute, modelQuiet, modelFlood} {
		fmt.Fprintf(&b, "  %s: {targets: [{provider: d, timeouts: {headers: 1m, first_content: 1m}}]}\n", name)
	}
	fmt.Fprintf(&b, "passthrough: {/v1/files: a}\nworkloads:\n  small: {keys: [%s]}\n  greedy: {keys: [%s], %s}\n  mute: {keys: [%s]}\n  bulk: {keys: [%s]}\n",
		keySmall, keyGreedy, "limits: {concurrency: 200}", keyMute, keyBulk)
	b.WriteString("defaults:\n  timeouts: {idle: 15s, total: 1m}\n  breaker: {cool_down: 1s, max_cool_down: 5s, ramp: 5s}\nhttp: {write_timeout: 5s, drain: 5s}\n")
	return b.String()
}

// router is the running child.
type router struct {
	cmd    *exec.Cmd
	file   string
	addrs  []string // of the upstreams
	listen string
	admin  string
	ended  chan struct{} // closed when the process is gone
	err    error         // how; readable then
	log    logWatch
}

// build makes the router from the tree.
func build(dir string) (string, error) {
	bin := filepath.Join(dir, "hourthree")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/hourthree/hourthree/cmd/hourthree").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the router: %w\n%s", err, out)
	}
	return bin, nil
}

func startRouter(bin, dir string, addrs []string, log io.Writer) (*router, error) {
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddr()
	if err != nil {
		return nil, err
	}
	r := &router{file: filepath.Join(dir, "hourthree.yaml"), addrs: addrs, listen: listen, admin: admin, ended: make(chan struct{})}
	if err := r.write(conf(addrs, listen, admin, 4)); err != nil {
		return nil, err
	}
	r.cmd = exec.Command(bin, "serve", "-c", r.file)
	r.cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%d", goMemory))
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := r.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the router: %w", err)
	}
	go func() {
		r.log.read(io.TeeReader(out, log))
		r.err = r.cmd.Wait()
		close(r.ended)
	}()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + admin + "/readyz"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return r, nil
			}
		}
		select {
		case <-r.ended:
			return nil, fmt.Errorf("the router ended at once: %w: %s", r.err, r.log.last())
		default:
		}
		if time.Now().After(end) {
			r.kill()
			return nil, fmt.Errorf("the router was not ready within 20 s: %s", r.log.last())
		}
	}
}

func (r *router) write(text string) error { return os.WriteFile(r.file, []byte(text), 0o600) }

// reload changes the file and tells the router. A bad file must be refused.
func (r *router) reload(narrow int, bad bool) error {
	text := conf(r.addrs, r.listen, r.admin, narrow)
	if bad {
		text += "nonsense: true\n"
	}
	if err := r.write(text); err != nil {
		return err
	}
	return r.cmd.Process.Signal(syscall.SIGHUP)
}

func (r *router) running() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

func (r *router) kill() {
	_ = r.cmd.Process.Kill() // gone already is as good
	<-r.ended
}

// stop asks the router to end, as an operator does, and says how it did.
func (r *router) stop() error {
	if !r.running() {
		return fmt.Errorf("it had ended before: %w", r.err)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-r.ended:
		return r.err
	case <-time.After(15 * time.Second):
		r.kill()
		return fmt.Errorf("it did not stop within 15 s")
	}
}

// logWatch reads the router's log, keeps its last lines and those that say
// that something broke.
type logWatch struct {
	mu    sync.Mutex
	lines int
	tail  []string
	alarm []string // at most alarmMost
	loud  int      // lines at level ERROR
}

const (
	tailLines = 50
	alarmMost = 100
)

func (l *logWatch) read(r io.Reader) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			l.note(strings.TrimRight(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

func (l *logWatch) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines++
	if l.tail = append(l.tail, line); len(l.tail) > 2*tailLines {
		l.tail = append([]string(nil), l.tail[tailLines:]...)
	}
	if strings.Contains(line, `"level":"ERROR"`) {
		l.loud++
	}
	for _, sign := range []string{"panic", "fatal error", "DATA RACE", "runtime error", "goroutine "} {
		if strings.Contains(line, sign) && len(l.alarm) < alarmMost {
			l.alarm = append(l.alarm, line)
			break
		}
	}
}

func (l *logWatch) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.tail, "\n")
}

func (l *logWatch) alarms() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.alarm...)
}

// upstreams is the process of the fake upstreams.
type upstreams struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	addrs []string
}

func startUpstreams() (*upstreams, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	u := &upstreams{cmd: exec.Command(self, append([]string{roleUpstream}, providers...)...)}
	u.cmd.Stderr = io.Discard // net/http's own complaints of broken connections
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if u.in, err = u.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := u.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := u.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the upstreams: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	u.addrs = strings.Fields(line)
	if err == nil && len(u.addrs) != len(providers) {
		err = fmt.Errorf("it said %q", line)
	}
	if err != nil {
		u.stop()
		return nil, fmt.Errorf("start the upstreams: %w", err)
	}
	return u, nil
}

// set changes the fault of one upstream.
func (u *upstreams) set(name, fault string) error {
	_, err := fmt.Fprintln(u.in, name, fault)
	return err
}

func (u *upstreams) stop() {
	_ = u.cmd.Process.Kill() // gone already is as good
	_ = u.cmd.Wait()
}

// freeAddr is a loopback address that nothing listens on just now.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
