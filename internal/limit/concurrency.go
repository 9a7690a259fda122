package limit

// Concurrency counts calls in flight against a limit. The zero value has no
// limit.
type Concurrency struct {
	// Limit is the number of calls allowed at once; 0 or less is no limit. It
	// may be changed at any time: lowered below what is in flight, it admits
	// nothing until enough calls have ended.
	Limit int

	used int
}

// Free reports whether Acquire would succeed.
func (c *Concurrency) Free() bool { return c.Limit <= 0 || c.used < c.Limit }

// Acquire takes a slot and returns true, or returns false when all are taken.
func (c *Concurrency) Acquire() bool {
	if !c.Free() {
		return false
	}
	c.used++
	return true
}

// Release gives one slot back. With none taken it does nothing.
func (c *Concurrency) Release() {
	if c.used > 0 {
		c.used--
	}
}

// InFlight is the number of slots taken, never negative.
func (c *Concurrency) InFlight() int { return c.used }
