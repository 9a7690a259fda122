package detect

import (
	"math"
	"math/bits"
	"time"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

const classes = int(fault.Overload) + 1

// Counts are what came in of one series in some time.
type Counts struct {
	// Class counts requests that repeat none, or calls at targets, by outcome.
	Class   [classes]uint32
	Repeats uint32 // requests that repeat a failed one
	Over    uint32 // requests refused for a limit or a lane of their caller's own
	Calls   uint32 // made for the requests at targets
	Server  uint32 // calls answered 500 or above
	Broken  uint32 // calls whose success was cut short, empty, or held an error
}

func (c *Counts) add(o *Counts) {
	for i, n := range o.Class {
		c.Class[i] += n
	}
	c.Repeats += o.Repeats
	c.Over += o.Over
	c.Calls += o.Calls
	c.Server += o.Server
	c.Broken += o.Broken
}

// Distinct is how many requests repeat none and were within their caller's limits.
func (c *Counts) Distinct() (n int64) {
	for _, k := range c.Class {
		n += int64(k)
	}
	return n
}

// Excess is what comes in on top of them.
func (c *Counts) Excess() int64 { return int64(c.Repeats) + int64(c.Over) }

// Work is what a verdict on the service may go by: neither a caller's own mistake
// nor its leaving.
func (c *Counts) Work() int64 {
	return c.Distinct() - int64(c.Class[fault.Client]) - int64(c.Class[fault.ContentPolicy]) - int64(c.Class[fault.Canceled])
}

// Bad is how much of that failed.
func (c *Counts) Bad() int64 { return c.Work() - int64(c.Class[fault.OK]) }

// amplification is inbound for each distinct request.
func (c *Counts) amplification() float64 {
	return float64(c.Distinct()+c.Excess()) / float64(max(1, c.Distinct()))
}

// out is calls at targets for each request that came in.
func (c *Counts) out() float64 {
	return float64(c.Calls) / float64(max(1, c.Distinct()+int64(c.Repeats)))
}

func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

type (
	requestKey struct{ workload, model string }
	attemptKey struct{ workload, target string }
	contentKey struct {
		target string
		size   int // of the request, see sizeClass
	}
)

// Tally counts facts until they are looked at. A fact costs one look-up in a map
// and no allocation once its names are known. It belongs to one goroutine at a
// time.
type Tally struct {
	most     int
	requests map[requestKey]*Counts
	attempts map[attemptKey]*Counts
	content  map[contentKey]*moments
}

// NewTally returns one that holds up to so many names of each sort; what is beyond
// is not counted.
func NewTally(most int) *Tally {
	return &Tally{most: most, requests: map[requestKey]*Counts{}, attempts: map[attemptKey]*Counts{}, content: map[contentKey]*moments{}}
}

// find returns the entry of a name, nil when there is room for no more.
func find[K comparable, V comparable](m map[K]*V, k K, most int) *V {
	v := m[k]
	if v == nil {
		if len(m) >= most {
			var empty V
			for old, c := range m {
				if *c == empty { // of a name that may be gone
					delete(m, old)
				}
			}
			if len(m) >= most {
				return nil
			}
		}
		v = new(V)
		m[k] = v
	}
	return v
}

// Request counts one finished client request. Those of no known workload are
// nobody's. One that an operator has shed says nothing of the service: it shows as less
// traffic.
func (t *Tally) Request(r *event.Request) {
	if r.Workload == "" || r.Reason == fault.ReasonShed {
		return
	}
	c := find(t.requests, requestKey{r.Workload, r.Model}, t.most)
	if c == nil {
		return
	}
	switch {
	case r.Over:
		c.Over++
	case r.Repeat || r.InboundAttempt > 0:
		c.Repeats++
	case int(r.Class) < classes:
		c.Class[r.Class]++
	}
	c.Calls += uint32(r.Attempts)
	if r.Content > 0 && r.Target != "" {
		if m := find(t.content, contentKey{r.Target, sizeClass(r.BytesIn)}, t.most); m != nil {
			m.add(r.Content)
		}
	}
}

// Attempt counts one finished upstream call.
func (t *Tally) Attempt(a *event.Attempt) {
	c := find(t.attempts, attemptKey{a.Workload, a.Target}, t.most)
	if c == nil || int(a.Class) >= classes {
		return
	}
	c.Class[a.Class]++
	if a.Status >= 500 {
		c.Server++
	}
	switch a.Reason {
	case "truncated", "empty", "error_in_200":
		c.Broken++
	}
}

// sizeClass groups requests whose prompts are alike in size: below 1 KiB, and by
// fours from there.
func sizeClass(bytes int64) int { return min((bits.Len64(uint64(max(0, bytes))>>10)+1)/2, 6) }

// moments are of the logarithm of times.
type moments struct{ n, sum, square float64 }

func (m *moments) add(d time.Duration) {
	x := math.Log(d.Seconds())
	m.n++
	m.sum += x
	m.square += x * x
}

func (m *moments) mean() float64 { return m.sum / max(m.n, 1e-9) }

func (m *moments) deviation() float64 {
	return math.Sqrt(max(m.square/max(m.n, 1e-9)-m.mean()*m.mean(), 1e-4))
}

// fade forgets with time and takes in what is new.
func (m *moments) fade(keep float64, more moments) {
	m.n, m.sum, m.square = m.n*keep+more.n, m.sum*keep+more.sum, m.square*keep+more.square
}
