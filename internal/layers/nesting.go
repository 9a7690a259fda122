package layers

import (
	"fmt"
	"math"
	"time"
)

// Fault is a pair of time limits that do not nest: what is inside may take
// longer than what is outside waits.
type Fault struct {
	// Outer and Inner are indexes of layers; the same one where its own tries do
	// not fit its limit.
	Outer, Inner int
	Takes, Limit time.Duration
	// Tries is set where the tries of one layer do not fit.
	Tries int
	// Assumed says that one of the limits was not read.
	Assumed bool
}

// Nesting finds the time limits that do not nest, at most one of each kind for a
// layer: an inner one is held against the shortest that is outside of it.
func Nesting(path []Layer) []Fault {
	var list []Fault
	outer, limit := -1, time.Duration(0)
	for i, l := range path {
		if tries := l.Tries(); l.PerTry > 0 && l.Timeout > 0 && exceeds(span(l.PerTry, tries), l.Timeout) {
			list = append(list, Fault{
				Outer: i, Inner: i, Takes: span(l.PerTry, tries), Limit: l.Timeout, Tries: tries, Assumed: l.Assumed != "",
			})
		}
		if takes := l.takes(); outer >= 0 && exceeds(takes, limit) {
			list = append(list, Fault{
				Outer: outer, Inner: i, Takes: takes, Limit: limit, Assumed: l.Assumed != "" || path[outer].Assumed != "",
			})
		}
		if w := l.waits(); w > 0 && (outer < 0 || w < limit) {
			outer, limit = i, w
		}
	}
	return list
}

// takes is the longest that a call into the layer may last, 0 when unknown.
func (l Layer) takes() time.Duration {
	if l.PerTry <= 0 {
		return l.Timeout
	}
	all := span(l.PerTry, times(l.Tries(), l.targets()))
	if l.Timeout > 0 {
		return min(all, l.Timeout)
	}
	return all
}

// waits is how long the layer waits for what is inside, 0 when unknown.
func (l Layer) waits() time.Duration {
	if l.PerTry > 0 && (l.Timeout <= 0 || l.PerTry < l.Timeout) {
		return l.PerTry
	}
	return l.Timeout
}

// exceeds allows a hundredth: limits are written in round numbers.
func exceeds(takes, limit time.Duration) bool { return takes-limit > limit/100 }

// span is n times d, without overflow.
func span(d time.Duration, n int) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

// Text says in a sentence what does not nest.
func (f Fault) Text(path []Layer) string {
	if f.Tries > 0 {
		l := path[f.Inner]
		return fmt.Sprintf("%s: %d tries of %s take %s, its limit is %s",
			l.Name, f.Tries, Short(l.PerTry), Short(f.Takes), Short(f.Limit))
	}
	return fmt.Sprintf("%s may take %s, %s waits %s",
		path[f.Inner].Name, Short(f.Takes), path[f.Outer].Name, Short(f.Limit))
}

// Short writes a duration without its zeros: 1m, not 1m0s.
func Short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(s) - len(zero); n > 0 && s[n:] == zero {
			s = s[:n+1]
		}
	}
	return s
}
