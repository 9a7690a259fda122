// Package admit decides whether a request may come in: memory for its body
// (Ledger, ReadBody), the caller's own limits (Limiter) and a bounded, fair
// wait for a target's free slot (Line). It refuses before it spends: memory is reserved
// before a byte is read, and a refusal costs nothing that lasts.
//
// It never looks into a request and never chooses a target. Everything in it
// is safe for concurrent use. It starts no goroutine; only Line
// reads the clock, and only Line blocks, on the context of its caller.
package admit
