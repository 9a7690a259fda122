// Package limit decides how much one target, provider account or workload may
// be asked for: a rate (GCRA), what an upstream says is left of one (Hint), a
// number of calls at once (Concurrency), shared between those who call (Slots)
// and learned from what the target bears (Adaptive), after a refusal, for how
// long nothing at all (CoolDown), and whether another call would only join a
// queue (Room).
//
// Every type here is a small state machine. It takes the time and random
// numbers as arguments, reads no clock, starts no goroutine and does no I/O.
// None of them is safe for concurrent use: the owner holds a lock. A change of
// the wall clock has no effect as long as the times passed in carry Go's
// monotonic reading.
package limit
