package fault

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Bounds of the Retry-After that the router sends by itself. Some official clients
// sleep through waits of up to 60 s and mistreat longer ones; a wait that is known,
// for a limit of the caller's own, is told in full to all others.
const (
	minAdvice     = time.Second
	maxAdvice     = 60 * time.Second
	unknownAdvice = 5 * time.Second // when nothing tells how long it will take
	adviceSpread  = 0.2             // either way
	soonest       = 5 * time.Second // the longest wait for a credential that is not left
)

// Refusal is what is to be told to a caller.
type Refusal struct {
	Class  Class
	Reason string        // of the verdict; tells a full server from a used-up rate
	Wait   time.Duration // until coming back makes sense, 0 when unknown
	Status int           // the upstream's own, for Client and ContentPolicy
	// Exact says that Wait is known, not guessed: of a limit of the caller's own.
	Exact bool
	// Code is that of the error body in place of the class's, "" for none.
	Code string
}

// Advice is how it is told: always with x-should-retry: false.
type Advice struct {
	Status     int
	RetryAfter time.Duration // whole seconds; 0 sends none
	Type, Code string        // of the error body in the OpenAI dialect
}

// client is one row of the table of clients: how it must be told to stop.
type client struct {
	Name     string   `json:"name"`
	Contains []string `json:"contains"`  // in the User-Agent; at its beginning with Prefix
	Prefix   bool     `json:"prefix"`    //
	Only429  bool     `json:"only_429"`  // repeats a 5xx whatever else it is told
	OmitWait bool     `json:"omit_wait"` // comes back because of a Retry-After
	Floor    string   `json:"floor"`     // stops only at or above this wait
	Ceiling  string   `json:"ceiling"`   // ignores waits above this
	Capped   bool     `json:"capped"`    // is told no more than 60 s, whatever the wait

	floor, ceiling time.Duration
}

// Clients knows how callers behave, by User-Agent. It is immutable.
type Clients struct{ rows []client }

// DefaultClients is the measured table of official clients.
func DefaultClients() *Clients {
	data, err := ruleFiles.ReadFile("rules/clients.json")
	if err != nil {
		panic("fault: " + err.Error())
	}
	c, err := ParseClients(data)
	if err != nil {
		panic("fault: clients: " + err.Error())
	}
	return c
}

// ParseClients reads a table of clients in the form of the built-in one. The
// first row that fits a User-Agent decides. Its errors name the row.
func ParseClients(data []byte) (*Clients, error) {
	var c Clients
	if err := strict(data, &c.rows); err != nil {
		return nil, err
	}
	for i := range c.rows {
		if err := c.rows[i].prepare(); err != nil {
			return nil, fmt.Errorf("client %d %q: %w", i, c.rows[i].Name, err)
		}
	}
	return &c, nil
}

func (r *client) prepare() (err error) {
	if len(r.Contains) == 0 || slices.Contains(r.Contains, "") {
		return errors.New("contains must name a part of the User-Agent")
	}
	if r.floor, err = bound(r.Floor); err != nil {
		return err
	}
	if r.ceiling, err = bound(r.Ceiling); err != nil {
		return err
	}
	if r.ceiling > 0 && r.floor > r.ceiling {
		return errors.New("floor is above ceiling")
	}
	return nil
}

// bound reads a bound of Retry-After: a whole second or more, or "".
func bound(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err == nil && (d < time.Second || d > MaxWait) {
		err = fmt.Errorf("%s is not between 1s and %v", s, MaxWait)
	}
	return d, err
}

// find is the row of a User-Agent. Wrappers come first in the table: they
// send the name of the client inside them too.
func (c *Clients) find(agent string) client {
	for _, r := range c.rows {
		for _, w := range r.Contains {
			if r.Prefix && strings.HasPrefix(agent, w) || !r.Prefix && strings.Contains(agent, w) {
				return r
			}
		}
	}
	return client{}
}

// codes are the error types and codes of the OpenAI dialect.
var codes = [numClasses]struct {
	status     int
	kind, code string
}{
	Client:        {http.StatusBadRequest, "invalid_request_error", "invalid_request"},
	ContentPolicy: {http.StatusBadRequest, "invalid_request_error", "content_filter"},
	Credential:    {http.StatusBadGateway, "server_error", "upstream_credentials_rejected"},
	Capacity:      {http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded"},
	Account:       {http.StatusBadGateway, "server_error", "upstream_account_exhausted"},
	Outage:        {http.StatusServiceUnavailable, "server_error", "upstream_unavailable"},
	Deadline:      {http.StatusGatewayTimeout, "timeout", "deadline_exceeded"},
	Overload:      {http.StatusServiceUnavailable, "server_error", "router_overloaded"},
}

// full are the reasons of a capacity refusal for which a rate is not to blame:
// a caller told of a rate limit would look for it in its own quota.
var full = []string{"overloaded", "no_capacity", "starting"}

// Advise says how a refusal is to leave. rnd in [0,1) spreads the wait, so
// that callers refused together do not return together.
func (c *Clients) Advise(r Refusal, userAgent string, rnd float64) Advice {
	if r.Class == OK || r.Class == Canceled || r.Class >= numClasses {
		r.Class = Outage
	}
	row, as := c.find(userAgent), codes[r.Class]
	a := Advice{Status: as.status, Type: as.kind, Code: as.code}
	if r.Class == Client || r.Class == ContentPolicy {
		if r.Status >= 400 && r.Status < 500 {
			a.Status = r.Status
		}
		return a
	}
	if r.Class == Capacity && slices.Contains(full, r.Reason) {
		a.Code = "server_is_overloaded"
	}
	if r.Code != "" {
		a.Code = r.Code
	}
	if row.Only429 {
		a.Status = http.StatusTooManyRequests
	}
	if !row.OmitWait && (a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable || r.soon()) {
		a.RetryAfter = row.wait(wish(r), rnd)
		if r.Exact && r.Wait > 0 {
			a.RetryAfter = row.exact(r.Wait, rnd)
		}
	}
	return a
}

// soon reports a refused credential that is accepted for other calls: it is
// known to be asked again within moments, and nobody need act.
func (r Refusal) soon() bool { return r.Class == Credential && r.Wait > 0 && r.Wait <= soonest }

// wish is when the caller would best come back. A human must act first on our
// own credential or account.
func wish(r Refusal) time.Duration {
	switch {
	case (r.Class == Credential || r.Class == Account) && !r.soon():
		return maxAdvice
	case r.Wait <= 0:
		return unknownAdvice
	}
	return r.Wait
}

// wait is the Retry-After for this client, spread around d. Where that passes
// a bound the whole spread moves inside it: nobody is to share one integer
// with everybody.
func (r client) wait(d time.Duration, rnd float64) time.Duration {
	least, most := max(minAdvice, r.floor), maxAdvice
	if r.ceiling > 0 {
		most = min(most, r.ceiling)
	}
	most = max(most, scale(r.floor, 1+adviceSpread))
	d = min(max(d, 0), MaxWait)
	low, high := scale(d, 1-adviceSpread), scale(d, 1+adviceSpread)
	if high > most {
		low, high = scale(most, (1-adviceSpread)/(1+adviceSpread)), most
	}
	if low < least {
		low, high = least, min(max(high, scale(least, 1+adviceSpread)), most)
	}
	return (low + scale(high-low, rnd)).Round(time.Second)
}

// exact is the Retry-After for a wait that is known: never sooner, in full for
// clients that do not mistreat it. Short waits are spread upwards.
func (r client) exact(d time.Duration, rnd float64) time.Duration {
	if r.ceiling > 0 || r.Capped || d < r.floor {
		return r.wait(d, rnd)
	}
	d = min(d, MaxWait)
	if d <= maxAdvice {
		d = min(maxAdvice, d+scale(d, adviceSpread*rnd))
	}
	return max(minAdvice, (d + time.Second - 1).Truncate(time.Second))
}

func scale(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
