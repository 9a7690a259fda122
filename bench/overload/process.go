package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child that leads a process group of its own. A nil process is
// none, and uses nothing.
type process struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer // of the provider
}

// command runs bin on core, "" for any, so that it dies with this process.
func command(core, bin string, args ...string) *exec.Cmd {
	if core != "" {
		bin, args = "taskset", append([]string{"-c", core, bin}, args...)
	}
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// startProvider starts an upstream with so many slots.
func startProvider(core string, slots int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := command(core, self, roleProvider, strconv.Itoa(slots))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	p := &process{cmd: cmd, stdin: in}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("start the provider: %w", err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// launch starts cmd and waits up to 10 s until it takes connections at addr.
func launch(addr string, cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{addr: addr, cmd: cmd}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			return p, c.Close()
		}
	}
	p.stop()
	return nil, errors.New("not ready within 10 s")
}

func (p *process) stop() {
	if p == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// books fetches what a provider has counted.
func (p *process) books() (b books, err error) {
	resp, err := http.Get("http://" + p.addr + booksPath)
	if err != nil {
		return b, fmt.Errorf("read the provider's books: %w", err)
	}
	defer resp.Body.Close()
	return b, json.NewDecoder(resp.Body).Decode(&b)
}

// tick is a unit of CPU time in /proc: USER_HZ is 100 on Linux for all.
const tick = 10 * time.Millisecond

// usage is what a process group has used.
type usage struct {
	cpu  time.Duration
	peak int64 // bytes, the sum of each process's highest resident memory
}

func (p *process) usage() (u usage) {
	if p == nil {
		return u
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		data, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(f) < 15 || f[2] != strconv.Itoa(p.cmd.Process.Pid) {
			continue
		}
		for _, i := range []int{11, 12} { // user and system time
			n, _ := strconv.ParseInt(f[i], 10, 64)
			u.cpu += time.Duration(n) * tick
		}
		status, _ := os.ReadFile("/proc/" + e.Name() + "/status")
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		if w := strings.Fields(rest); len(w) > 0 {
			kb, _ := strconv.ParseInt(w[0], 10, 64)
			u.peak += kb << 10
		}
	}
	return u
}

// machineBusy is the CPU time that everything on this machine has used.
func machineBusy() (sum time.Duration) {
	data, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(data), "\n")
	for i, f := range strings.Fields(line) {
		if i == 4 || i == 5 || i > 8 { // idle, waiting for disks, guests counted before
			continue
		}
		n, _ := strconv.ParseInt(f, 10, 64)
		sum += time.Duration(n) * tick
	}
	return sum
}

// self is what this process has used.
func self() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
