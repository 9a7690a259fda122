package fault

import (
	"math"
	"net/http"
	"testing"
	"time"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// TestQuotaOf reads the known forms (known report G02): OpenAI's durations,
// Anthropic's dates, small whole seconds and epochs elsewhere.
func TestQuotaOf(t *testing.T) {
	now := time.Date(2026, 6, 8, 8, 30, 0, 0, time.UTC)
	for _, x := range []struct {
		name  string
		h     http.Header
		want  Quota
		known bool
	}{
		{"nothing", header("Content-Type", "application/json"), Quota{}, false},
		{"openai", header("x-ratelimit-limit-requests", "60", "x-ratelimit-remaining-requests", "59", "x-ratelimit-reset-requests", "1s",
			"x-ratelimit-limit-tokens", "150000", "x-ratelimit-remaining-tokens", "149984", "x-ratelimit-reset-tokens", "6m0s"),
			Quota{Left{true, 59, 60, time.Second}, Left{true, 149984, 150000, 6 * time.Minute}}, true},
		{"milliseconds", header("x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "500ms"), Quota{Requests: Left{true, 0, 0, 500 * time.Millisecond}}, true},
		{"seconds", header("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "55"), Quota{Tokens: Left{true, 0, 0, 55 * time.Second}}, true},
		{"epoch", header("x-ratelimit-remaining-tokens", "1", "x-ratelimit-reset-tokens", "1780907405"), Quota{Tokens: Left{true, 1, 0, 5 * time.Second}}, true},
		{"anthropic", header("anthropic-ratelimit-requests-remaining", "3", "anthropic-ratelimit-requests-limit", "50", "anthropic-ratelimit-requests-reset", "2026-06-08T08:30:20Z",
			"anthropic-ratelimit-input-tokens-remaining", "9000", "anthropic-ratelimit-output-tokens-remaining", "800", "anthropic-ratelimit-output-tokens-reset", "2026-06-08T08:30:02Z"),
			Quota{Left{true, 3, 50, 20 * time.Second}, Left{true, 800, 0, 2 * time.Second}}, true},
		{"garbage", header("x-ratelimit-remaining-requests", "NaN", "x-ratelimit-remaining-tokens", "lots", "anthropic-ratelimit-tokens-remaining", "-1"), Quota{}, false},
		{"of no limit", header("x-ratelimit-limit-requests", "0", "x-ratelimit-remaining-requests", "0"), Quota{}, false},
		{"reset unreadable", header("x-ratelimit-remaining-requests", "7", "x-ratelimit-reset-requests", "soon"), Quota{Requests: Left{true, 7, 0, 0}}, true},
	} {
		if got, ok := QuotaOf(x.h, now); got != x.want || ok != x.known {
			t.Errorf("%s: %+v %v, want %+v", x.name, got, ok, x.want)
		}
	}
}

// TestQuotaCostsNothing: most answers have none of these headers.
func TestQuotaCostsNothing(t *testing.T) {
	h, now := header("Content-Type", "application/json", "X-Request-Id", "a"), time.Now()
	if n := testing.AllocsPerRun(100, func() { QuotaOf(h, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzQuotaOf(f *testing.F) {
	f.Add("0", "1s")
	f.Add("1e400", "2026-13-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, left, reset string) {
		h := http.Header{"X-Ratelimit-Remaining-Requests": {left}, "X-Ratelimit-Reset-Requests": {reset}, "Anthropic-Ratelimit-Tokens-Remaining": {reset}}
		q, _ := QuotaOf(h, time.Unix(1_700_000_000, 0))
		for _, l := range []Left{q.Requests, q.Tokens} {
			if l.Left < 0 || l.Most < 0 || l.Reset < 0 || l.Reset > MaxWait || l.Left == math.MaxInt64 {
				t.Errorf("%+v of %q, %q", l, left, reset)
			}
		}
	})
}
