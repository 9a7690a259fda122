package fault

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// MaxWait bounds every wait: what is longer is treated as this long.
const MaxWait = 24 * time.Hour

// ParseWait reads when an upstream wants to be asked again, in whichever of
// the known ways it says so, first match first: retry-after-ms,
// x-ms-retry-after-ms, retry-after (seconds or a date), x-amz-retry-after,
// RetryInfo.retryDelay, resets_at, the x-ratelimit-reset of an exhausted
// dimension, anthropic-ratelimit-*-reset. The result lies in [0, MaxWait];
// what cannot be read counts as absent.
func ParseWait(h http.Header, body []byte, now time.Time) (time.Duration, bool) {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d, ok := number(h.Get(name), time.Millisecond); ok {
			return d, true
		}
	}
	if v := h.Get("Retry-After"); v != "" {
		if d, ok := number(v, time.Second); ok {
			return d, true
		}
		if at, err := http.ParseTime(v); err == nil {
			return until(at, clock(h, now)), true
		}
	}
	if d, ok := number(h.Get("X-Amz-Retry-After"), time.Millisecond); ok {
		return d, true
	}
	if len(body) > 0 {
		if d, ok := bodyWait(parseError(body), now); ok {
			return d, true
		}
	}
	return resetWait(h, now)
}

// clock is the upstream's own idea of now, against which its dates are meant.
func clock(h http.Header, now time.Time) time.Time {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		return at
	}
	return now
}

func until(at, now time.Time) time.Duration { return clamp(at.Sub(now)) }

func clamp(d time.Duration) time.Duration { return min(max(d, 0), MaxWait) }

// number reads a count of units. Negative, infinite and unreadable counts are
// absent.
func number(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" || len(s) > 64 {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || f < 0 || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	if f > MaxWait.Seconds()*float64(time.Second/unit) {
		return MaxWait, true
	}
	return time.Duration(f * float64(unit)), true
}

func bodyWait(e errorBody, now time.Time) (time.Duration, bool) {
	if s, ok := strings.CutSuffix(e.retryDelay, "s"); ok {
		if d, ok := number(s, time.Second); ok {
			return d, true
		}
	}
	switch at := e.resetsAt.(type) {
	case string:
		if t, err := time.Parse(time.RFC3339, at); err == nil {
			return until(t, now), true
		}
	case float64:
		return epoch(at, now)
	}
	return 0, false
}

// epoch reads seconds or, above 10^11, milliseconds since 1970.
func epoch(f float64, now time.Time) (time.Duration, bool) {
	if math.IsNaN(f) || f < 0 || f > 1e15 {
		return 0, false
	}
	if f > 1e11 {
		f /= 1000
	}
	return until(time.UnixMilli(int64(f*1000)), now), true
}

// resetWait reads the reset of whichever dimension is used up; with none said
// to be, the longest stated.
func resetWait(h http.Header, now time.Time) (longest time.Duration, found bool) {
	exhausted := false
	for _, family := range []struct{ prefix, remaining, reset string }{
		{"X-Ratelimit-", "Remaining-", "Reset-"}, {"Anthropic-Ratelimit-", "", ""},
	} {
		for _, dim := range []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens", ""} {
			reset, remaining := family.prefix+family.reset+dim, family.prefix+family.remaining+dim
			if family.reset == "" {
				reset, remaining = family.prefix+dim+"-Reset", family.prefix+dim+"-Remaining"
			} else if dim == "" {
				reset, remaining = "X-Ratelimit-Reset", "X-Ratelimit-Remaining"
			}
			d, ok := reading(h.Get(reset), now)
			if !ok {
				continue
			}
			left, err := strconv.ParseFloat(h.Get(remaining), 64)
			used := err == nil && left <= 0
			if used && !exhausted {
				longest, exhausted = 0, true
			}
			if used == exhausted || !exhausted {
				longest, found = max(longest, d), true
			}
		}
	}
	return longest, found
}

// reading is a reset value: a Go duration, seconds, an epoch, or a date.
func reading(s string, now time.Time) (time.Duration, bool) {
	if s == "" || len(s) > 64 {
		return 0, false
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if f >= 1e7 {
			return epoch(f, now)
		}
		return number(s, time.Second)
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return clamp(d), true
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return until(t, now), true
	}
	return 0, false
}

var (
	inSeconds   = regexp.MustCompile(`(?i)(?:in|after|wait) (\d{1,9}(?:\.\d{1,6})?) ?s(?:econds?)?\b`)
	replenished = regexp.MustCompile(`(?i)in (?:(\d{1,3})\.)?(\d{1,2}):(\d{2}):(\d{2})`)
)

// proseWait reads a wait out of a message, for the few answers that name it
// nowhere else.
func proseWait(message string) (time.Duration, bool) {
	if m := replenished.FindStringSubmatch(message); m != nil {
		n := func(s string) time.Duration { v, _ := strconv.Atoi(s); return time.Duration(v) } // digits by the pattern
		return clamp(n(m[1])*24*time.Hour + n(m[2])*time.Hour + n(m[3])*time.Minute + n(m[4])*time.Second), true
	}
	if m := inSeconds.FindStringSubmatch(message); m != nil {
		return number(m[1], time.Second)
	}
	return 0, false
}
