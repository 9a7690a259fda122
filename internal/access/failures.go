package access

import (
	"net/netip"
	"sync"
	"time"
)

// Bounds of wrong keys. A person mistypes a few times; a guesser needs many. With
// keys of 16 characters and more they keep a guesser out by far; what they bound
// beside that is the work and the record.
const (
	addressBurst = 10              // wrong keys from one address at once
	addressEvery = 6 * time.Second // and one more each
	totalBurst   = 100             // from all addresses
	totalEvery   = time.Second
	maxAddresses = 1024 // remembered for having failed, and for having shown a right key
	knownFor     = time.Hour
	noteBurst    = 20 // notes of one person, and of all unknown, at once
	noteEvery    = 10 * time.Second
	maxNoted     = 1024 // people whose notes are counted
	longAddress  = 64
)

// bucket holds tokens that come back with time.
type bucket struct {
	tokens float64
	at     time.Time
}

func (b *bucket) fill(now time.Time, burst float64, every time.Duration) {
	if b.at.IsZero() {
		b.tokens = burst
	} else if d := now.Sub(b.at); d > 0 {
		b.tokens = min(burst, b.tokens+float64(d)/float64(every))
	}
	b.at = now
}

// failures counts wrong keys, by address and in all. An address from which a right
// key has come within the hour is not shut out: otherwise whoever can send wrong
// keys through the same proxy could keep the operator out.
type failures struct {
	mu        sync.Mutex
	addresses map[string]*bucket
	known     map[string]time.Time // when a right key came from there
	total     bucket
}

// shut reports that keys from an address are not looked at, and for how long.
func (f *failures) shut(now time.Time, addr string) (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := f.known[addr]; ok && now.Sub(at) < knownFor {
		return 0, false
	}
	return f.empty(now, addr)
}

// empty reports that an address has no wrong key left, and when it has one again.
func (f *failures) empty(now time.Time, addr string) (time.Duration, bool) {
	if b := f.addresses[addr]; b != nil {
		if b.fill(now, addressBurst, addressEvery); b.tokens < 1 {
			return time.Duration((1 - b.tokens) * float64(addressEvery)), true
		}
	}
	if f.total.fill(now, totalBurst, totalEvery); f.total.tokens < 1 && !loopback(addr) {
		return time.Duration((1 - f.total.tokens) * float64(totalEvery)), true
	}
	return 0, false
}

// failed counts a wrong key, and reports as empty does whether that was one too
// many.
func (f *failures) failed(now time.Time, addr string) (wait time.Duration, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if wait, over = f.empty(now, addr); over {
		return wait, true
	}
	b := f.addresses[addr]
	if b == nil {
		if f.addresses == nil {
			f.addresses = map[string]*bucket{}
		}
		if len(f.addresses) >= maxAddresses {
			f.forget(now)
		}
		b = &bucket{}
		b.fill(now, addressBurst, addressEvery)
		f.addresses[addr] = b
	}
	b.tokens--
	f.total.tokens = max(0, f.total.tokens-1)
	return 0, false
}

// forget drops the addresses that are as if they had never failed, or the one that
// failed longest ago.
func (f *failures) forget(now time.Time) {
	oldest := ""
	for addr, b := range f.addresses {
		if now.Sub(b.at) > addressBurst*addressEvery {
			delete(f.addresses, addr)
		} else if oldest == "" || b.at.Before(f.addresses[oldest].at) {
			oldest = addr
		}
	}
	if len(f.addresses) >= maxAddresses {
		delete(f.addresses, oldest)
	}
}

// good takes note that a right key came from an address.
func (f *failures) good(now time.Time, addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = map[string]time.Time{}
	}
	if _, ok := f.known[addr]; !ok && len(f.known) >= maxAddresses {
		oldest := ""
		for a, at := range f.known {
			if oldest == "" || at.Before(f.known[oldest]) {
				oldest = a
			}
		}
		delete(f.known, oldest)
	}
	f.known[addr] = now
}

// notes bounds what goes into the record: neither a guesser nor somebody with a key
// fills it, nor keeps out what others do.
type notes struct {
	mu sync.Mutex
	of map[string]*share // by name, "" for all that are unknown
}

// share is the room of one of them.
type share struct {
	bucket
	missed int // since the last note
}

// take reports whether something goes into the record, and how much before it did
// not.
func (n *notes) take(now time.Time, who string) (missed int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.of[who]
	if s == nil {
		if n.of == nil {
			n.of = map[string]*share{}
		}
		if len(n.of) >= maxNoted {
			n.forget()
		}
		s = &share{}
		n.of[who] = s
	}
	if s.fill(now, noteBurst, noteEvery); s.tokens < 1 {
		s.missed++
		return 0, false
	}
	s.tokens--
	missed, s.missed = s.missed, 0
	return missed, true
}

// forget drops whoever was noted longest ago.
func (n *notes) forget() {
	oldest, found := "", false
	for who, s := range n.of {
		if !found || s.at.Before(n.of[oldest].at) {
			oldest, found = who, true
		}
	}
	delete(n.of, oldest)
}

// AddressOf is where a request comes from, as failures are counted: without the
// port, and of IPv6 the network, of which one machine has all addresses.
func AddressOf(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote[:min(len(remote), longAddress)]
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

func loopback(addr string) bool {
	ip, err := netip.ParseAddr(addr)
	return err == nil && ip.IsLoopback()
}
