package rollout

import (
	"math"
	"math/bits"

	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
)

const (
	classes = int(fault.Overload) + 1
	arms    = int(event.Candidate) + 1
	sizes   = 7
	// maxCells bounds how many pairs of a workload and a model are told apart, and so
	// what a Seen keeps: 4 MB. What is beyond is counted together.
	maxCells = 1024
	// kept is how many times to first content are kept of one pair and arm.
	kept = 128
	// mostExtra is up to how many calls beyond the first are counted of a request.
	mostExtra = 4
	// memories is how many samples of memory are kept of an arm.
	memories = 64
)

// cellKey is what is judged by itself: a model may be broken while others are well.
type cellKey struct{ workload, model string }

// String names it; what was refused before its model was known has none.
func (k cellKey) String() string {
	if k.model == "" {
		return "workload " + k.workload
	}
	return "workload " + k.workload + ", model " + k.model
}

// counts are what came in of one pair under one version.
type counts struct {
	class   [classes]uint32 // requests that repeat none and were within their caller's limits
	repeats uint32          // of a failed one, by its caller
	over    uint32          // refused for a limit or a lane of the caller's own
	extra   uint32          // calls beyond the first, at most mostExtra of a request
	first   [classes]uint32 // first calls at targets
}

func (c *counts) add(o *counts) {
	for i := range c.class {
		c.class[i] += o.class[i]
		c.first[i] += o.first[i]
	}
	c.repeats += o.repeats
	c.over += o.over
	c.extra += o.extra
}

// fade forgets a part of what was counted.
func (c *counts) fade(keep float64) {
	f := func(n *uint32) { *n = uint32(float64(*n) * keep) }
	for i := range c.class {
		f(&c.class[i])
		f(&c.first[i])
	}
	f(&c.repeats)
	f(&c.over)
	f(&c.extra)
}

// distinct is how many requests there were that repeat none.
func (c *counts) distinct() (n int64) {
	for _, k := range c.class {
		n += int64(k)
	}
	return n
}

// sample is a time to first content, as a logarithm of seconds.
type sample struct {
	log  float32
	size uint8
}

// times is a random sample of bounded size of the times that were seen (Vitter's
// algorithm R); which ones depends on nothing but their number.
type times struct {
	n    uint32
	kept [kept]sample
}

func (t *times) add(s sample) {
	if t.n < kept {
		t.kept[t.n] = s
	} else if i := mix(uint64(t.n)*0x9e3779b97f4a7c15) % uint64(t.n+1); i < kept {
		t.kept[i] = s
	}
	t.n++
}

// fade lets what comes in from now on take the place of what is older.
func (t *times) fade(keep float64) { t.n = max(min(t.n, kept), uint32(float64(t.n)*keep)) }

func (t *times) all() []sample { return t.kept[:min(t.n, kept)] }

// cell is one pair, by arm.
type cell struct {
	counts [arms]counts
	times  [arms]times
	busy   bool // something came in since the last tick
}

// Seen counts facts of the request path until they are judged. Without a rollout
// it counts what is usual, under NoArm. A fact costs one look-up in a map and no
// allocation once its names are known. It belongs to one goroutine at a time.
type Seen struct {
	cells  map[cellKey]*cell
	memory [arms]track
	flying [arms]int64
	last   *cell
	key    cellKey // of last
}

func (s *Seen) find(workload, model string) *cell {
	if s.last != nil && s.key.workload == workload && s.key.model == model {
		return s.last
	}
	k := cellKey{workload, model}
	c := s.cells[k]
	if c == nil {
		if s.cells == nil {
			s.cells = map[cellKey]*cell{}
		}
		if len(s.cells) >= maxCells {
			k = cellKey{}
			c = s.cells[k]
		}
		if c == nil {
			c = &cell{}
			s.cells[k] = c
		}
	}
	s.last, s.key = c, cellKey{workload, model}
	c.busy = true
	return c
}

// Request counts one finished client request. Those of no known workload are
// nobody's.
func (s *Seen) Request(r *event.Request) {
	if r.Workload == "" || int(r.Class) >= classes || int(r.Arm) >= arms {
		return
	}
	c := s.find(r.Workload, r.Model)
	n := &c.counts[r.Arm]
	switch {
	case r.Over:
		n.over++
		return
	case r.Repeat || r.InboundAttempt > 0:
		n.repeats++
		return
	}
	n.class[r.Class]++
	n.extra += uint32(min(max(0, r.Attempts-1), mostExtra))
	if r.Content > 0 && r.Class == fault.OK {
		c.times[r.Arm].add(sample{float32(math.Log(r.Content.Seconds())), sizeClass(r.BytesIn)})
	}
}

// Attempt counts one finished upstream call. Only first calls count: those that
// follow are made because of what the first came to.
func (s *Seen) Attempt(a *event.Attempt) {
	if a.Number > 1 || a.Workload == "" || int(a.Class) >= classes || int(a.Arm) >= arms {
		return
	}
	s.find(a.Workload, a.Model).counts[a.Arm].first[a.Class]++
}

// Memory takes a sample of the bytes that the requests of an arm hold, divided by
// the number of those in flight.
func (s *Seen) Memory(arm event.Arm, bytes int64) {
	if int(arm) < arms && bytes >= 0 {
		s.memory[arm].add(float64(bytes))
	}
}

// InFlight tells how many requests of an arm have not ended.
func (s *Seen) InFlight(arm event.Arm, n int64) {
	if int(arm) < arms {
		s.flying[arm] = n
	}
}

// Fade forgets a part of what was seen while there was no rollout, so that what is
// usual is that of the last hours: keep is what is left, 0 to 1.
func (s *Seen) Fade(keep float64) {
	for k, c := range s.cells {
		c.counts[event.NoArm].fade(keep)
		c.times[event.NoArm].fade(keep)
		if !c.busy && c.counts == ([arms]counts{}) {
			delete(s.cells, k)
		}
		c.busy = false
	}
	s.last = nil
}

// clear forgets everything but the names.
func (s *Seen) clear() {
	for k, c := range s.cells {
		if !c.busy {
			delete(s.cells, k)
			continue
		}
		*c = cell{}
	}
	s.memory, s.flying, s.last = [arms]track{}, [arms]int64{}, nil
}

// sizeClass groups requests whose prompts are alike in size: below 1 KiB, and by
// fours from there.
func sizeClass(n int64) uint8 {
	return uint8(min((bits.Len64(uint64(max(0, n))>>10)+1)/2, sizes-1))
}

// track is a series of samples at equal distances: when it is full every second
// one goes, and from then on only every second one is taken.
type track struct {
	every, skip uint32
	n           int
	kept        [memories]float64
}

func (t *track) add(x float64) {
	if t.every == 0 {
		t.every = 1
	}
	if t.skip++; t.skip < t.every {
		return
	}
	t.skip = 0
	if t.n == memories {
		for i := range memories / 2 {
			t.kept[i] = t.kept[2*i]
		}
		t.n, t.every = memories/2, t.every*2
	}
	t.kept[t.n] = x
	t.n++
}

func (t *track) all() []float64 { return t.kept[:t.n] }
