// Package contend starts the processes that the benchmarks compare, each on
// its own loopback port: this router built from the tree, nginx as a plain
// proxy, and net/http/httputil's ReverseProxy; and the fake upstreams behind
// them. It reads CPU time and memory of whole process trees from /proc, so it
// works on Linux only. Every process dies with the benchmark.
//
// A program that uses it calls Dispatch first in main: the upstream and the
// ReverseProxy are the same binary, started again.
package contend

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is a unit of CPU time in /proc: USER_HZ is 100 on Linux for all.
const tick = 10 * time.Millisecond

// Process is a running child with its descendants. A nil Process is no process
// and uses nothing. Not safe for concurrent use, except CPU, RSS and Peak.
type Process struct {
	Name string
	Addr string // host:port it listens on
	cmd  *exec.Cmd
}

// Spec says where and how a process runs.
type Spec struct {
	Core string // core to run on, "" for any
	Go   string // GOMAXPROCS, "" for the default
	Log  *os.File
}

func (s Spec) command(bin string, args ...string) *exec.Cmd {
	if s.Core != "" {
		bin, args = "taskset", append([]string{"-c", s.Core, bin}, args...)
	}
	cmd := exec.Command(bin, args...)
	cmd.Env = os.Environ()
	if s.Go != "" {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+s.Go)
	}
	if s.Log != nil {
		cmd.Stdout, cmd.Stderr = s.Log, s.Log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Stop ends the process and its children, and waits for it.
func (p *Process) Stop() {
	if p == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// launch starts cmd and waits up to 10 s until ready says nil.
func launch(name, addr string, cmd *exec.Cmd, ready func() error) (*Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, Addr: addr, cmd: cmd}
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ready(); err == nil {
			return p, nil
		}
	}
	p.Stop()
	return nil, fmt.Errorf("%s was not ready within 10 s: %w", name, err)
}

func dial(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		c.Close()
	}
	return err
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

// CPU is the user and system time of the tree so far, in steps of 10 ms.
func (p *Process) CPU() (sum time.Duration) {
	for _, pid := range p.tree() {
		f := statFields(pid)
		for _, i := range []int{11, 12, 13, 14} { // utime, stime and those of reaped children
			if i < len(f) {
				n, _ := strconv.ParseInt(f[i], 10, 64)
				sum += time.Duration(n) * tick
			}
		}
	}
	return sum
}

// RSS is the resident memory of the tree in bytes. Pages that two processes
// share count twice.
func (p *Process) RSS() int64 { return p.memory("VmRSS:") }

// Peak is the sum of the highest RSS that each process of the tree has had.
func (p *Process) Peak() int64 { return p.memory("VmHWM:") }

func (p *Process) memory(field string) (sum int64) {
	for _, pid := range p.tree() {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(data), field)
		if f := strings.Fields(rest); len(f) > 0 {
			kb, _ := strconv.ParseInt(f[0], 10, 64)
			sum += kb << 10
		}
	}
	return sum
}

// statFields are the fields of /proc/PID/stat from the state on.
func statFields(pid int) []string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if i := bytes.LastIndexByte(data, ')'); i >= 0 {
		return strings.Fields(string(data[i+1:]))
	}
	return nil
}

// tree is the process and all its descendants; no process has none.
func (p *Process) tree() []int {
	if p == nil {
		return nil
	}
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := statFields(pid); len(f) > 1 {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], pid)
		}
	}
	out := []int{p.cmd.Process.Pid}
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i]]...)
	}
	return out
}

// Split is how the cores are shared out.
type Split struct {
	Bench string // core of the load generator and the upstream, "" for any
	Proxy string // core of the proxy under test, "" for any
}

// Pin moves this process to core 0, so that its children start there, and
// keeps core 1 for the proxy. With one core, or without taskset, all share.
func Pin() (Split, error) {
	if runtime.NumCPU() < 2 {
		return Split{}, errors.New("one core only: generator, upstream and proxy share it")
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return Split{}, errors.New("no taskset (util-linux): generator, upstream and proxy share the cores")
	}
	out, err := exec.Command("taskset", "-acp", "0", strconv.Itoa(os.Getpid())).CombinedOutput()
	if err != nil {
		return Split{}, fmt.Errorf("taskset: %w: %s", err, out)
	}
	return Split{Bench: "0", Proxy: "1"}, nil
}
