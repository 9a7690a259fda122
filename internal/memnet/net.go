package memnet

import (
	"context"
	"net"
	"strings"
	"sync"
	"syscall"
)

// backlog is how many connections wait to be accepted.
const backlog = 1024

// Net is a network of named hosts.
type Net struct {
	mu        sync.Mutex
	listeners map[string]*Listener // the last one opened at each address
	names     map[string]bool      // hosts that resolve
	dials     map[string]int       // by host
	next      int                  // number of the next connection
}

// New returns a network without hosts.
func New() *Net {
	return &Net{listeners: map[string]*Listener{}, names: map[string]bool{}, dials: map[string]int{}}
}

// Listen opens a host, at one port ("h:80") or at all that are not opened by
// themselves ("h"). Opening what is open is a mistake; what was
// closed may be opened again.
func (n *Net) Listen(addr string) *Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.listeners[addr]; l != nil && !l.over() {
		panic("memnet: " + addr + " is open")
	}
	l := &Listener{addr: addr, queue: make(chan *Conn, backlog), closed: make(chan struct{})}
	n.listeners[addr], n.names[hostOf(addr)] = l, true
	return l
}

// Listener is the one last opened at an address, as given to Listen; nil when
// there was none.
func (n *Net) Listener(addr string) *Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listeners[addr]
}

// Dials is how often a host was dialled, at any port, whatever came of it.
func (n *Net) Dials(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[host]
}

// Dial connects to a host. A host that was never opened, or is hidden, does
// not resolve; a closed or refusing one refuses, and so does a port nobody
// opened; a silent one answers nothing until the context ends. All errors are
// *net.OpError with Op "dial".
func (n *Net) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host := hostOf(addr)
	n.mu.Lock()
	l, resolves := n.listeners[addr], n.names[host]
	if l == nil {
		l = n.listeners[host]
	}
	n.dials[host]++
	n.next++
	id := n.next
	n.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: hostAddr(addr), Err: err}
	}
	d := hidden
	if resolves {
		d = l.door()
	}
	switch d {
	case hidden:
		return fail(&net.DNSError{Err: "no such host", Name: host, IsNotFound: true})
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
	hidden
)

// Listener is one host's. It implements net.Listener.
type Listener struct {
	addr   string
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

// door of no listener is that of a host without one at the port.
func (l *Listener) door() door {
	if l == nil || l.over() {
		return refusing
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// over reports that the listener is closed.
func (l *Listener) over() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Refuse makes the host refuse connections from now on; those that stand stay.
func (l *Listener) Refuse() { l.set(refusing) }

// Silence makes the host leave connection attempts unanswered from now on.
func (l *Listener) Silence() { l.set(silent) }

// Hide makes the host's name not resolve from now on.
func (l *Listener) Hide() { l.set(hidden) }

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
func (l *Listener) Addr() net.Addr { return hostAddr(l.addr) }

// hostOf is an address without its port, if it has one.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

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
