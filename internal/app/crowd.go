package app

import (
	"net"
	"net/netip"
	"sync"

	"github.com/hourthree/hourthree/internal/access"
)

const (
	// maxOperatorConns bounds the connections to the operator's listener.
	maxOperatorConns = 400
	// maxCrowd bounds those from one address, and of IPv6 from one network: whoever
	// reaches the listener needs no key to hold connections, and readiness is asked for
	// there too. This machine's own are not bounded so.
	maxCrowd = 100
)

// crowd is a listener that closes the connections of an address that has too many.
type crowd struct {
	net.Listener

	mu   sync.Mutex
	open map[string]int // by address, none of 0
}

// Accept returns the next connection that has a place.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		remote := conn.RemoteAddr().String()
		if at, err := netip.ParseAddrPort(remote); err != nil || at.Addr().Unmap().IsLoopback() {
			return conn, nil
		}
		if addr := access.AddressOf(remote); c.enter(addr) {
			return &counted{Conn: conn, left: sync.OnceFunc(func() { c.leave(addr) })}, nil
		}
		_ = conn.Close() // there is nothing to be said to it
	}
}

func (c *crowd) enter(addr string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[addr] >= maxCrowd {
		return false
	}
	if c.open == nil {
		c.open = map[string]int{}
	}
	c.open[addr]++
	return true
}

func (c *crowd) leave(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[addr]--; c.open[addr] == 0 {
		delete(c.open, addr)
	}
}

// counted is a connection that has a place.
type counted struct {
	net.Conn
	left func()
}

// Close gives the place back.
func (c *counted) Close() error {
	c.left()
	return c.Conn.Close()
}
