package admit

// Reserve grants n bytes to nobody in particular, as to a request that has been
// admitted.
func (l *Ledger) Reserve(n int64) (*Lease, bool) {
	x := &Lease{ledger: l, admitted: true}
	if !l.take(n, &x.claim, true) {
		return nil, false
	}
	x.held = n
	return x, true
}
