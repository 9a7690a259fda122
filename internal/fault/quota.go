package fault

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Left is what an upstream says of one quota.
type Left struct {
	Stated bool
	Left   int64         // never negative
	Most   int64         // the whole quota, 0 when it was not said
	Reset  time.Duration // until it is whole again, at most MaxWait; 0 when it was not said
}

// Quota is what an upstream says is left of its quotas, in calls and in tokens.
type Quota struct{ Requests, Tokens Left }

// quotaNames are the headers of one quota: left, whole, reset.
type quotaNames struct{ left, most, reset string }

var (
	requestQuotas = []quotaNames{
		{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Limit-Requests", "X-Ratelimit-Reset-Requests"},
		{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Reset"},
	}
	tokenQuotas = []quotaNames{
		{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Limit-Tokens", "X-Ratelimit-Reset-Tokens"},
		{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Reset"},
		{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Reset"},
		{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Reset"},
	}
)

// QuotaOf reads what is left from an answer's header; false when it says
// nothing that can be read. Of several quotas of one kind the one with the least
// left counts. Without these headers it allocates nothing.
func QuotaOf(h http.Header, now time.Time) (q Quota, ok bool) {
	q = Quota{Requests: least(h, requestQuotas, now), Tokens: least(h, tokenQuotas, now)}
	return q, q.Requests.Stated || q.Tokens.Stated
}

func least(h http.Header, names []quotaNames, now time.Time) (l Left) {
	for _, n := range names {
		v := h[n.left]
		if len(v) != 1 {
			continue
		}
		left, ok := amount(v[0])
		if !ok || l.Stated && l.Left <= left {
			continue
		}
		most, said := amount(h.Get(n.most))
		if said && most == 0 { // nothing left of nothing: a proxy without a limit says so
			continue
		}
		reset, _ := reading(h.Get(n.reset), clock(h, now))
		l = Left{Stated: true, Left: left, Most: most, Reset: reset}
	}
	return l
}

// amount reads a count of calls or tokens.
func amount(s string) (int64, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxWaitText {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e15 {
		return 0, false
	}
	return int64(f), true
}
