package fault

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Bounds of the Retry-After that the router sends by itself.
const (
	minAdvice    = time.Second
	maxAdvice    = 60 * time.Second
	adviceSpread = 0.2 // either way
)

// Refusal is what is to be told to a caller.
type Refusal struct {
	Class  Class
	Wait   time.Duration // until coming back makes sense, 0 when unknown
	Status int           // the upstream's own, for Client and ContentPolicy
}

// Advice is how it is told: always with x-should-retry: false.
type Advice struct {
	Status     int
	RetryAfter time.Duration // 0 sends none
	Type, Code string        // of the error body in the OpenAI dialect
}

// client is one row of the table of clients: how it must be told to stop.
type client struct {
	Name     string   `json:"name"`
	Contains []string `json:"contains"` // in the User-Agent; at its beginning with Prefix
	Prefix   bool     `json:"prefix"`
	Obeys    bool     `json:"obeys"`     // x-should-retry: false is enough
	Shape    string   `json:"shape"`     // "429": repeats on 5xx whatever else it is told
	OmitWait bool     `json:"omit_wait"` // comes back because of a Retry-After
	Floor    string   `json:"floor"`     // stops only above this wait
	Ceiling  string   `json:"ceiling"`   // ignores waits above this

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

// ParseClients reads a table of clients in the form of the built-in one.
func ParseClients(data []byte) (*Clients, error) {
	var c Clients
	if err := json.Unmarshal(data, &c.rows); err != nil {
		return nil, err
	}
	for i := range c.rows {
		r := &c.rows[i]
		for text, into := range map[*string]*time.Duration{&r.Floor: &r.floor, &r.Ceiling: &r.ceiling} {
			if *text == "" {
				continue
			}
			d, err := time.ParseDuration(*text)
			if err != nil {
				return nil, fmt.Errorf("client %s: %w", r.Name, err)
			}
			*into = d
		}
	}
	return &c, nil
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
	if row.Shape == "429" {
		a.Status = http.StatusTooManyRequests
	}
	if row.OmitWait {
		return a
	}
	if a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
		a.RetryAfter = row.wait(r.Wait, rnd)
	}
	return a
}

// wait is the Retry-After for this client.
func (r client) wait(d time.Duration, rnd float64) time.Duration {
	d = min(max(d, minAdvice), maxAdvice)
	d = time.Duration(float64(d) * (1 - adviceSpread + 2*adviceSpread*rnd))
	d = min(max(d, minAdvice), maxAdvice)
	if r.floor > 0 {
		d = max(d, r.floor+time.Duration(rnd*adviceSpread*float64(r.floor)))
	}
	if r.ceiling > 0 {
		d = min(d, r.ceiling)
	}
	return d.Round(time.Second)
}
