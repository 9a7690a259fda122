package drill

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hourthree/hourthree/internal/app"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/memnet"
	"github.com/hourthree/hourthree/internal/rollout"
)

// process is one instance of the router, which may die and begin again.
type process struct {
	*router
	number int

	mu    sync.Mutex
	app   *app.App
	addr  string
	times int // it has begun
	conns sync.Map
}

// begin starts the process on an address of its own, unless everything ends.
func (p *process) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Load() {
		return nil
	}
	p.times++
	p.books.begun(p.number + 1)
	addr, admin := p.addresses()
	a, err := app.New(app.Options{
		Config: func() (*config.Config, error) { return p.config(addr, admin), nil },
		Env:    func(string) (string, bool) { return "", false }, Stdout: io.Discard, Stderr: io.Discard, Version: "drill", Drain: 30 * time.Second,
		Random: p.draw(), Breaker: p.weaken.breaker,
		Moved: func(t event.Transition) {
			p.books.moved(p.targetOf(t.Target), p.number+1, t.At.Sub(p.start), t.To, t.Reason)
		},
		Noticed: p.noticed,
		Rolled:  func(s rollout.State, at time.Time) { p.books.said(at.Sub(p.start), "rollout "+string(s)) },
		Network: app.Network{Listen: p.listen, Dial: p.net.Dial},
	})
	p.app, p.addr = a, addr
	return err
}

// noticed books what the process says of an outage.
func (p *process) noticed(n detect.Notice) {
	name, _, _ := strings.Cut(n.Source.Name, "/")
	if i := slices.IndexFunc(p.Workloads, func(w Workload) bool { return slices.Contains(p.callers(w.Name), name) }); i >= 0 {
		name = p.Workloads[i].Name
	}
	at := n.At.Sub(p.start)
	switch n.What {
	case "source":
		p.books.said(at, sourceOf+name)
	case "state", "closed":
		p.books.said(at, string(n.State))
	}
	for _, s := range n.Scope {
		for _, t := range p.Targets {
			if s.Kind == detect.Target && targetOf(s.Name) == t.Name || s.Kind == detect.Model && s.Name == t.Model {
				p.books.outage(t.Name, p.number, n.Outage, at)
			}
		}
	}
}

// addresses are those of the process, of its clients and of its operator, other
// ones each time that it begins.
func (p *process) addresses() (clients, admin string) {
	host, port := fmt.Sprintf("127.0.%d.1:", p.number+1), 10_000+2*(p.times%25_000)
	return host + strconv.Itoa(port), host + strconv.Itoa(port+1)
}

// buffered is what the process holds by its own ledger.
func (p *process) buffered() int64 {
	a, _ := p.current()
	return a.Buffered()
}

// draw is the process's source of chance.
func (p *process) draw() func() float64 {
	var n atomic.Uint64
	source := "process " + strconv.Itoa(p.number) + "." + strconv.Itoa(p.times)
	return func() float64 { return chance(p.seed, source, n.Add(1)) }
}

// targetOf is the scenario's target behind a target of the router.
func targetOf(name string) string {
	before, _, _ := strings.Cut(name, "/")
	return before
}

// targetOf is the same where a changed configuration may have put another in its
// place.
func (p *process) targetOf(name string) string {
	target := targetOf(name)
	if strings.HasSuffix(name, app.Besides) {
		return p.called(target)
	}
	return target
}

// listen notes the connections of clients, which a kill ends.
func (p *process) listen(_, addr string) (net.Listener, error) {
	return &noted{Listener: p.net.Listen(addr), process: p}, nil
}

// noted is a listener whose connections are known.
type noted struct {
	*memnet.Listener
	process *process
}

func (l *noted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if m, ok := c.(*memnet.Conn); ok {
		l.process.conns.Store(m, nil)
		return &notedConn{Conn: m, process: l.process}, nil
	}
	return c, err
}

type notedConn struct {
	*memnet.Conn
	process *process
}

func (c *notedConn) Close() error {
	c.process.conns.Delete(c.Conn)
	return c.Conn.Close()
}

// stop ends the process as an operator does: it drains.
func (p *process) stop() {
	p.mu.Lock()
	a := p.app
	p.mu.Unlock()
	if a != nil {
		_ = a.Stop() // reports nothing that matters here
	}
}

// kill ends every connection of the process at once, then what is left of it.
func (p *process) kill() {
	p.conns.Range(func(c, _ any) bool {
		c.(*memnet.Conn).Reset()
		return true
	})
	p.stop()
}

func (p *process) current() (*app.App, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.app, p.addr
}
