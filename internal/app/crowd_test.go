package app

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// arrivals are connections from addresses, without a network.
type arrivals struct {
	net.Listener
	from []string
	shut int
}

type arrival struct {
	net.Conn
	from string
	line *arrivals
}

func (a *arrivals) Accept() (net.Conn, error) {
	if len(a.from) == 0 {
		return nil, net.ErrClosed
	}
	next := &arrival{from: a.from[0], line: a}
	a.from = a.from[1:]
	return next, nil
}

func (a *arrival) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.from))
}

func (a *arrival) Close() error {
	a.line.shut++
	return nil
}

// TestCrowd: one address, or one network of IPv6, leaves room for others, and has its
// places again once its connections end.
func TestCrowd(t *testing.T) {
	l := &arrivals{}
	c := &crowd{Listener: l}
	come := func(n int, from func(i int) string) (in []net.Conn) {
		for i := range n {
			l.from = append(l.from, from(i))
		}
		for len(l.from) > 0 {
			if conn, err := c.Accept(); err == nil {
				in = append(in, conn)
			}
		}
		return in
	}
	one := come(3*maxCrowd, func(i int) string { return fmt.Sprintf("203.0.113.9:%d", 1000+i) })
	if len(one) != maxCrowd || l.shut != 2*maxCrowd {
		t.Errorf("%d of one address have a place, %d were closed", len(one), l.shut)
	}
	if n := len(come(3*maxCrowd, func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1", i+1) })); n != maxCrowd {
		t.Errorf("%d of one network have a place", n)
	}
	if n := len(come(1, func(int) string { return "203.0.113.10:1" })); n != 1 {
		t.Error("another address has no place")
	}
	if n := len(come(3*maxCrowd, func(int) string { return "127.0.0.1:1" })); n != 3*maxCrowd {
		t.Errorf("%d of this machine have a place", n)
	}
	for _, conn := range one {
		_, _ = conn.Close(), conn.Close() // a server closes more than once
	}
	if n := len(come(maxCrowd+1, func(int) string { return "203.0.113.9:1" })); n != maxCrowd {
		t.Errorf("%d have a place again", n)
	}
	if n := len(c.open); n != 3 {
		t.Errorf("%d addresses are remembered", n)
	}
}
