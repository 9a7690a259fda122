package testnet

import (
	"context"
	"net"
	"strings"
	"sync"
	"syscall"
)

// backlog is how many connections wait to be accepted.
const backlog = 1024

// Net is a network of named hosts. A host is named without its port: every
// port of it is the same listener.
type Net struct {
	mu    sync.Mutex
	hosts map[string]*Listener
	dials map[string]int
	next  int
}

// NewNet returns a network without hosts.
func NewNet() *Net { return &Net{hosts: map[string]*Listener{}, dials: map[string]int{}} }

// Listen opens a host. Opening one twice is a mistake of the test.
func (n *Net) Listen(host string) *Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[host] != nil {
		panic("testnet: host " + host + " exists")
	}
	l := &Listener{host: host, queue: make(chan *Conn, backlog), closed: make(chan struct{})}
	n.hosts[host] = l
	return l
}

// Dials is how often a host was dialled, whatever came of it.
func (n *Net) Dials(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[host]
}

// Dial connects to a host. A host that was never opened does not resolve; a
// closed or refusing one refuses; a silent one answers nothing until the
// context ends. All errors are *net.OpError with Op "dial".
func (n *Net) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	n.mu.Lock()
	l := n.hosts[host]
	n.dials[host]++
	n.next++
	id := n.next
	n.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: hostAddr(addr), Err: err}
	}
	if l == nil {
		return fail(&net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
	}
	switch l.door() {
	case refusing:
		return fail(syscall.ECONNREFUSED)
	case silent:
		<-ctx.Done()
		return fail(ctx.Err())
	}
	client, server := pair(id, addr)
	select {
	case l.queue <- server:
		return client, nil
	case <-l.closed:
		return fail(syscall.ECONNREFUSED)
	case <-ctx.Done():
		return fail(ctx.Err())
	}
}

// door is how a listener meets the next connection.
type door uint8

const (
	open door = iota
	refusing
	silent
)

// Listener is one host's. It implements net.Listener.
type Listener struct {
	host   string
	queue  chan *Conn
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	state door
}

func (l *Listener) set(d door) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = d
}

func (l *Listener) door() door {
	select {
	case <-l.closed:
		return refusing
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Refuse makes the host refuse connections from now on; those that stand stay.
func (l *Listener) Refuse() { l.set(refusing) }

// Silence makes the host leave connection attempts unanswered from now on.
func (l *Listener) Silence() { l.set(silent) }

// Open makes the host accept connections again.
func (l *Listener) Open() { l.set(open) }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections nobody accepted are reset.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	for {
		select {
		case c := <-l.queue:
			c.Reset()
		default:
			return nil
		}
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return hostAddr(l.host) }

// hostAddr is a host with or without its port, as an address.
type hostAddr string

func (hostAddr) Network() string { return "mem" }

// String has a port always, as net/http expects.
func (a hostAddr) String() string {
	if strings.Contains(string(a), ":") {
		return string(a)
	}
	return string(a) + ":80"
}
