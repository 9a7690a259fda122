package learn

import (
	"math"
	"time"
)

// What a request is taken to cost as long as nothing is known.
const (
	bytesPerToken = 3.6 // of JSON with text in it (algorithm notes, section 7)
	DefaultOutput = 512
	enoughOutputs = 20   // answers seen before what was learned counts
	outputs       = 1024 // weight of the past
	factorStep    = 0.05 // of the factor towards what was seen last
	outputShare   = 0.9
)

// Bounds of the factor: bodies of pictures have few tokens for their bytes,
// some languages have two for each byte.
const (
	leastFactor = 0.001
	mostFactor  = 8
)

// Tokens learns what requests cost: tokens of the prompt for the bytes of the
// body, and the length of answers. The zero value knows nothing. It is not safe
// for concurrent use.
type Tokens struct {
	seen   bool
	factor float64
	output histogram // one token is a millisecond
}

// Input is about how many tokens a body has.
func (t *Tokens) Input(bytes int64) int64 {
	if bytes <= 0 {
		return 0
	}
	return int64(math.Ceil(float64(bytes) / bytesPerToken * t.Factor()))
}

// Factor corrects the tokens that bytes alone suggest.
func (t *Tokens) Factor() float64 {
	if !t.seen {
		return 1
	}
	return t.factor
}

// Output is what nine answers in ten stay below, of at most limit tokens; a
// limit of 0 is none.
func (t *Tokens) Output(limit int64) int64 {
	n := int64(DefaultOutput)
	if t.output.n >= enoughOutputs {
		n = int64(t.output.quantile(outputShare) / time.Millisecond)
	}
	if limit > 0 {
		n = min(n, limit)
	}
	return n
}

// Learn takes note of a request and what it really cost.
func (t *Tokens) Learn(bytes, input, output int64) {
	if bytes > 0 && input > 0 {
		now := min(mostFactor, max(leastFactor, float64(input)*bytesPerToken/float64(bytes)))
		if !t.seen {
			t.seen, t.factor = true, 1
		}
		t.factor += factorStep * (now - t.factor)
	}
	if output < 0 {
		return
	}
	if t.output.n >= outputs {
		t.output.halve()
	}
	t.output.add(time.Duration(min(output, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond)
}
