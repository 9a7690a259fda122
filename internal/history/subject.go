package history

import (
	"math"
	"strings"
)

// kind is a sort of subject: what is kept of each, in columns. Sums come first; they
// are added up where steps are put together. Of the others the highest counts, and
// they are kept one higher than they are, so that 0 is unknown.
type kind struct {
	prefix string // of a subject
	sums   int
	width  int
	most   int // subjects that are kept by name
}

// Columns of the router, after which come those of the first content's times.
const (
	rOffered = iota
	rGoodput
	rAttempts
	rRefused
	rDegraded
	rFailed
	rContent
	rInFlight = rContent + buckets + iota - 7
	rQueued
	rMemory // in KiB
	rOutages
	rWidth
)

// Columns of a workload.
const (
	wOffered = iota
	wGoodput
	wRefused
	wDegraded
	wFailed
	wAttempts
	wExcess // requests that repeat one, or are beyond the workload's own limits
	wSeen
	wWidth
)

// Columns of a target.
const (
	tAttempts = iota
	tFailed
	tInFlight
	tBreaker
	tWidth
)

// Workloads and targets that are kept by name. The rest is kept together as Other.
const (
	mostWorkloads = 100
	mostTargets   = 100
)

// Other is the name of what is beyond those bounds. A workload of that name counts
// with it.
const Other = "other"

var (
	ofRouter    = &kind{sums: rInFlight, width: rWidth, most: 1}
	ofWorkloads = &kind{prefix: "workload:", sums: wSeen, width: wWidth, most: mostWorkloads}
	ofTargets   = &kind{prefix: "target:", sums: tInFlight, width: tWidth, most: mostTargets}
)

// merge puts what happened in one time to what happened in another.
func (k *kind) merge(into, more []uint32) {
	for i, v := range more[:k.sums] {
		into[i] = uint32(min(uint64(into[i])+uint64(v), math.MaxUint32))
	}
	for i, v := range more[k.sums:] {
		into[k.sums+i] = max(into[k.sums+i], v)
	}
}

// activity is how much happened: sums, without the times of the router's.
func (k *kind) activity(cells []uint32) (n float64) {
	for _, v := range cells[:min(k.sums, rContent)] {
		n += float64(v)
	}
	return n
}

// subject is one of them with its past.
type subject struct {
	cells  [len(levels)][]uint32 // a row of the kind's columns for each slot
	weight float64               // activity, half forgotten in forgetting
	seen   int64                 // Unix seconds at which it last was there
}

func newSubject(k *kind) *subject {
	s := new(subject)
	for l, level := range levels {
		s.cells[l] = make([]uint32, level.slots*int64(k.width))
	}
	return s
}

// row is a subject's cells in a slot.
func (s *subject) row(k *kind, level int, slot int64) []uint32 {
	return s.cells[level][slot*int64(k.width) : (slot+1)*int64(k.width)]
}

func empty(row []uint32) bool {
	for _, v := range row {
		if v != 0 {
			return false
		}
	}
	return true
}

// parse takes a subject of a query apart.
func parse(subject string) (k *kind, name string, ok bool) {
	if subject == "" {
		return ofRouter, "", true
	}
	for _, k := range []*kind{ofWorkloads, ofTargets} {
		if name, ok := strings.CutPrefix(subject, k.prefix); ok && name != "" {
			return k, name, true
		}
	}
	return nil, "", false
}
