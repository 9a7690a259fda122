package wire

import "strconv"

// Usage is the token count an upstream reported. Reasoning is part of Output
// and Cached part of Input. Present is false when nothing was reported; a
// reported zero is a zero with Present true.
type Usage struct {
	Input, Output     int64
	Cached, Reasoning int64
	Present           bool
}

// UsageOf reads the usage of a whole JSON answer or of one event's payload.
// In a stream the last event that has usage counts, not the sum.
func UsageOf(ep Endpoint, data []byte) Usage {
	c := skim{b: data}
	var u Usage
	if ep == Models || c.space() != '{' {
		return u
	}
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "usage":
			c.usage(&u)
		case "response":
			if ep != Responses || c.space() != '{' {
				c.skip()
				continue
			}
			for ok := c.begin('{'); ok; ok = c.sep('}') {
				if string(c.key()) == "usage" {
					c.usage(&u)
				} else {
					c.skip()
				}
			}
		default:
			c.skip()
		}
	}
	return u
}

// usage reads a usage object. Both families of names are taken everywhere:
// compatible servers mix them.
func (c *skim) usage(u *Usage) {
	if c.space() != '{' {
		c.skip()
		return
	}
	var got Usage
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "prompt_tokens", "input_tokens":
			c.count(&got.Input, &got.Present)
		case "completion_tokens", "output_tokens":
			c.count(&got.Output, &got.Present)
		case "prompt_cache_hit_tokens":
			c.count(&got.Cached, &got.Present)
		case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			c.usageDetails(&got)
		default:
			c.skip()
		}
	}
	if got.Present {
		*u = got
	}
}

func (c *skim) usageDetails(u *Usage) {
	if c.space() != '{' {
		c.skip()
		return
	}
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "cached_tokens":
			c.count(&u.Cached, &u.Present)
		case "reasoning_tokens":
			c.count(&u.Reasoning, &u.Present)
		default:
			c.skip()
		}
	}
}

// maxCount bounds a believable token count, so that sums cannot overflow.
const maxCount = 1 << 48

// count reads a number of tokens. Negative and absurd values are clamped; a
// value that is no number leaves n as it was.
func (c *skim) count(n *int64, present *bool) {
	c.space()
	from := c.i
	c.skip()
	if c.bad {
		return
	}
	f, err := strconv.ParseFloat(string(c.b[from:min(c.i, from+32)]), 64)
	if err != nil || f != f {
		return
	}
	*n, *present = int64(max(0, min(f, maxCount))), true
}
