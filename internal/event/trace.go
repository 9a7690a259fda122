package event

import (
	"encoding/binary"
	"encoding/hex"
)

// Upstream is what a call tells its provider of the trace.
type Upstream uint8

// The choices.
const (
	Pass Upstream = iota // the caller's own traceparent and tracestate, as they came
	Own                  // a traceparent of the attempt's span
	None                 // neither
)

// Trace is a request's place in a distributed trace (W3C Trace Context). It is
// made once, when the request arrives, and not changed: facts share it, and
// who hears them may keep it.
type Trace struct {
	ID       [16]byte
	Parent   [8]byte // the caller's span, zero for none
	Span     [8]byte // the request's
	Sampled  bool
	State    string // the caller's tracestate, unparsed, "" for none
	Upstream Upstream
}

// Attempt is the span of the request's attempt of that number, from 1: the same
// for whoever asks, so that it can be sent upstream before the attempt's end
// is known.
func (t *Trace) Attempt(number int) [8]byte {
	x := binary.BigEndian.Uint64(t.Span[:]) + uint64(number)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64: no two numbers give the same
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], max(x, 1)) // all zero means none
	return id
}

// Traceparent is the header that makes an attempt's span the parent of what the
// provider does.
func (t *Trace) Traceparent(number int) string {
	span := t.Attempt(number)
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, t.ID[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	if t.Sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

// Usage is the token use that an answer reported.
type Usage struct {
	Reported          bool
	Input, Output     int64
	Cached, Reasoning int64 // parts of Input and of Output
}
