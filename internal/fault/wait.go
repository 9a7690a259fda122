package fault

import (
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxWait bounds every wait: what is longer is treated as this long.
const MaxWait = 24 * time.Hour

// maxWaitText bounds the text of a wait that is read at all.
const maxWaitText = 64

// statedWait reads what is said about this very refusal, in whichever of the
// known ways, first match first: retry-after-ms, x-ms-retry-after-ms,
// retry-after (seconds or a date), x-amz-retry-after, RetryInfo.retryDelay,
// resets_at. The result lies in [0, MaxWait]; what cannot be read counts as
// absent, and a message is never read.
func statedWait(h http.Header, e errorBody, now time.Time) (time.Duration, bool) {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d, ok := number(h.Get(name), time.Millisecond); ok {
			return d, true
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := number(v, time.Second); ok {
		return d, true
	}
	if at, ok := httpDate(v); ok {
		return until(at, clock(h, now)), true
	}
	if d, ok := number(h.Get("X-Amz-Retry-After"), time.Millisecond); ok {
		return d, true
	}
	if s, ok := strings.CutSuffix(e.retryDelay, "s"); ok {
		if d, ok := number(s, time.Second); ok {
			return d, true
		}
	}
	return reading(e.resetsAt, now)
}

func httpDate(s string) (time.Time, bool) {
	if s == "" || len(s) > maxWaitText {
		return time.Time{}, false
	}
	at, err := http.ParseTime(s)
	return at, err == nil
}

// clock is the upstream's own idea of now, against which its dates are meant.
func clock(h http.Header, now time.Time) time.Time {
	if at, ok := httpDate(h.Get("Date")); ok {
		return at
	}
	return now
}

func until(at, now time.Time) time.Duration { return clamp(at.Sub(now)) }

func clamp(d time.Duration) time.Duration { return min(max(d, 0), MaxWait) }

// number reads a count of units. Negative, infinite and unreadable counts are
// absent.
func number(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" || len(s) > maxWaitText {
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

// dimensions are the headers of every limit that has a reset, as the header
// of its reset and of what is left of it.
var dimensions = [][2]string{
	{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"},
	{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},
	{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"},
	{"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining"},
	{"Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Output-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Remaining"},
}

// resetWait reads the longest reset of the dimensions that are used up. With
// none said to be, the shortest stated: a reset is when a limit is whole
// again, and of limits not used up none needs to be.
func resetWait(h http.Header, now time.Time) (time.Duration, bool) {
	var used, stated []time.Duration
	for _, names := range dimensions {
		d, ok := reading(h.Get(names[0]), now)
		if !ok {
			continue
		}
		stated = append(stated, d)
		if left, err := strconv.ParseFloat(h.Get(names[1]), 64); err == nil && left <= 0 {
			used = append(used, d)
		}
	}
	switch {
	case len(used) > 0:
		return slices.Max(used), true
	case len(stated) > 0:
		return slices.Min(stated), true
	}
	return 0, false
}

// reading is a reset value: a Go duration, seconds when below 10^7, an epoch,
// or a date.
func reading(s string, now time.Time) (time.Duration, bool) {
	if s == "" || len(s) > maxWaitText {
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
	inWords     = regexp.MustCompile(`(?i)\b(?:in|after|wait) (\d{1,9}(?:\.\d{1,6})?) ?s(?:econds?)?\b`)
	inUnits     = regexp.MustCompile(`(?i)\b(?:in|after|wait) ((?:\d{1,9}(?:\.\d{1,6})?(?:h|ms|m|s)){1,4})\b`)
	replenished = regexp.MustCompile(`(?i)\bin (?:(\d{1,3})\.)?(\d{1,2}):(\d{2}):(\d{2})`)
)

// proseWait reads a wait out of a message, for the few answers that name it
// nowhere else: "in 1.5s", "in 6m0s", "after 43 seconds", "in 1.07:01:20".
func proseWait(message string) (time.Duration, bool) {
	if m := replenished.FindStringSubmatch(message); m != nil {
		n := func(s string) time.Duration { v, _ := strconv.Atoi(s); return time.Duration(v) } // digits by the pattern
		return clamp(n(m[1])*24*time.Hour + n(m[2])*time.Hour + n(m[3])*time.Minute + n(m[4])*time.Second), true
	}
	if m := inWords.FindStringSubmatch(message); m != nil {
		return number(m[1], time.Second)
	}
	if m := inUnits.FindStringSubmatch(message); m != nil {
		if d, err := time.ParseDuration(strings.ToLower(m[1])); err == nil {
			return clamp(d), true
		}
	}
	return 0, false
}
