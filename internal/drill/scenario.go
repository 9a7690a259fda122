package drill

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/config"
)

// Scenario is an outage as data: who calls, what is called, what goes wrong
// when, and what must hold. Times are virtual, from its beginning; rates are a
// second.
type Scenario struct {
	// Name is the scenario's own: lower case, with hyphens.
	Name string `yaml:"name"`
	// Title is one line for a list.
	Title string `yaml:"title"`
	// Incident is its id in the library; nothing for none.
	Incident string `yaml:"incident"`
	// Start is the incident's own clock at 0.
	Start time.Time `yaml:"start"`
	// Compression is how many of the incident's seconds one virtual second stands for. Default 1.
	Compression float64 `yaml:"compression"`
	// Length is when arrivals end.
	Length time.Duration `yaml:"length"`
	// Thin is the share of the rates, and of what bears them, at which the short form is played. Default 1.
	Thin float64 `yaml:"thin"`
	// Facts come from the sources.
	Facts []string `yaml:"facts"`
	// Assumptions are ours: what the sources do not say and the scenario needs.
	Assumptions []string `yaml:"assumptions"`
	// Gateway is what the contenders run on. Without it the place in the middle costs nothing and cannot fail.
	Gateway *Gateway `yaml:"gateway"`
	// Workloads are the callers.
	Workloads []Workload `yaml:"workloads"`
	// Targets are model deployments, in order of preference.
	Targets []Target `yaml:"targets"`
	// Faults are what goes wrong.
	Faults []Fault `yaml:"faults"`
	// Actions are what operators do to the contenders.
	Actions []Action `yaml:"actions"`
	// Rollout is how the router takes a configuration that has changed, with the action configure; without it, at once, as the other contenders do.
	Rollout *Rollout `yaml:"rollout"`
	// Marks are the incident's own moments.
	Marks []Moment `yaml:"marks"`
	// Criteria are what must hold for the router.
	Criteria []Criterion `yaml:"criteria"`
}

// Rollout is how the router takes a configuration that has changed.
type Rollout struct {
	// Stages are the shares of the traffic, 0 to 1, rising to 1. Default 0.01, 0.05, 0.25, 0.5, 1.
	Stages []float64 `yaml:"stages"`
	// Bake is how long a stage is watched at least. Default 10m.
	Bake time.Duration `yaml:"bake"`
	// Requests that a stage must have served at least. Default 1000.
	Requests int `yaml:"requests"`
	// Patience is after how long a stage that has not served as many fails. Default 2h.
	Patience time.Duration `yaml:"patience"`
}

// Gateway is the place in the middle, where the contenders run.
type Gateway struct {
	// Instances share the capacity; calls go round. Default 1.
	Instances int `yaml:"instances"`
	// Capacity is the full calls a second of all instances together; 0 is no bound.
	Capacity float64 `yaml:"capacity"`
	// Refusal is the cost of a call that is refused after its body was read, as a share of a full one.
	Refusal float64 `yaml:"refusal"`
	// Early is the cost of a call that is refused before its body is read.
	Early float64 `yaml:"early"`
	// Queue is the work that may wait before connections are turned away. Default 1s.
	Queue time.Duration `yaml:"queue"`
	// Memory of one instance; past it the instance is killed with everything on it. 0 is no bound.
	Memory Size `yaml:"memory"`
	// PerCall is the memory of a call in flight besides its body. Default 64KiB.
	PerCall Size `yaml:"per_call"`
	// Waiting is the share of per_call that a connection holds while it waits for its turn, unread. Default 0.25.
	Waiting float64 `yaml:"waiting"`
	// Down is the time from a kill to service. Default 30s.
	Down time.Duration `yaml:"down"`
}

// Workload is a kind of caller: arrivals and the retry layers of its own stack.
type Workload struct {
	// Name is the workload's, at the router too.
	Name string `yaml:"name"`
	// Callers are so many workloads alike, each with its own key and limit, shown as one. Default 1.
	Callers int `yaml:"callers"`
	// Model is what it asks for: the targets of this model serve it. Default m.
	Model string `yaml:"model"`
	// Rate is that of each caller, over time.
	Rate []Rate `yaml:"rate"`
	// Once makes one request at this time, besides the rate.
	Once time.Duration `yaml:"once"`
	// Stream asks for streams.
	Stream bool `yaml:"stream"`
	// Timeout of one call; a stream's is until its end. Default 30s.
	Timeout time.Duration `yaml:"timeout"`
	// Body is the size of its requests.
	Body Body `yaml:"body"`
	// Retries are the layers of its own stack, outermost first; they multiply.
	Retries []Layer `yaml:"retries"`
	// RPM is the limit of each caller at the router; 0 is none.
	RPM int `yaml:"rpm"`
	// Concurrency is the limit of each caller at the router; 0 is none.
	Concurrency int `yaml:"concurrency"`
	// Priority at the router: critical, interactive or batch.
	Priority string `yaml:"priority"`
	// Agent is the User-Agent it sends. Default: that of the official Python client.
	Agent string `yaml:"agent"`
	// Malformed requests are broken in a way that only a target can tell: it answers 400.
	Malformed bool `yaml:"malformed"`
	// Garbled requests end in the middle of their body: a gateway that looks can tell. For the modelled contenders they are malformed ones.
	Garbled bool `yaml:"garbled"`
	// Keys is how many keys its users have, each used by Zipf's law; for targets with a key store.
	Keys int `yaml:"keys"`

	tpm int64 // of each caller, in a user's configuration
}

// Body is the size of requests: quantiles between which sizes are drawn,
// evenly in their logarithm.
type Body struct {
	P50 Size `yaml:"p50"` // default 1KiB
	P95 Size `yaml:"p95"` // default p50
	P99 Size `yaml:"p99"` // default p95
	Max Size `yaml:"max"` // default p99
}

// Rate holds from At until the next one.
type Rate struct {
	At  time.Duration `yaml:"at"`
	RPS float64       `yaml:"rps"`
}

// Layer is one layer of a client's retries.
type Layer struct {
	Attempts int           `yaml:"attempts"` // calls in all, the first included
	Backoff  time.Duration `yaml:"backoff"`  // before the first repeat, then doubled
	Jitter   bool          `yaml:"jitter"`   // between nothing and the backoff
	On       []string      `yaml:"on"`       // 5xx, 4xx, 429, timeout, reset
	Obeys    bool          `yaml:"obeys"`    // stops at x-should-retry: false and waits for Retry-After, as official clients do
}

// Target is a model deployment at a provider.
type Target struct {
	// Name is the target's, and its provider's.
	Name string `yaml:"name"`
	// Model it serves. Default m.
	Model string `yaml:"model"`
	// Domain is its failure domain. Default: its name.
	Domain string `yaml:"domain"`
	// Capacity in calls a second.
	Capacity float64 `yaml:"capacity"`
	// Refusal is what a refused call costs, as a share of a served one.
	Refusal float64 `yaml:"refusal"`
	// Queue is the work it takes on before it refuses.
	Queue time.Duration `yaml:"queue"`
	// Full is the status of a call that it refuses for lack of capacity. Default 429.
	Full int `yaml:"full"`
	// Latency to the whole answer, or to the first content of a stream.
	Latency time.Duration `yaml:"latency"`
	// Stream is the time from there to the end of a stream.
	Stream time.Duration `yaml:"stream"`
	// Tokens and PerToken are another way to say Stream: so many tokens after the first, each so long after the one before.
	Tokens int `yaml:"tokens"`
	// PerToken is the time from one token to the next.
	PerToken time.Duration `yaml:"per_token"`
	// Slows is how many times as long both take at full load. Default 1.
	Slows float64 `yaml:"slows"`
	// Memory of what serves it; past it the target is killed with everything on it. 0 is no bound.
	Memory Size `yaml:"memory"`
	// PerCall is the memory of a call in flight besides its body. Default 64KiB.
	PerCall Size `yaml:"per_call"`
	// Down is the time from a kill to service. Default 30s.
	Down time.Duration `yaml:"down"`
	// RPM is the limit that the operator has given the router for it; 0 is none.
	RPM int `yaml:"rpm"`
	// Concurrency is the same for calls at once.
	Concurrency int `yaml:"concurrency"`
	// Degraded makes it a last resort, not a target of the model.
	Degraded bool `yaml:"degraded"`
	// Replaces is the target in whose place it is called once the action configure has changed the configuration. At the router it is the same target at another address.
	Replaces string `yaml:"replaces"`
	// Keys is the store that it looks callers' keys up in, behind a cache.
	Keys *KeyStore `yaml:"keys"`
	// Verdict is a limiter of the provider's own.
	Verdict *Verdict `yaml:"verdict"`

	own own // what a user's configuration says of it besides
}

// KeyStore is where a target looks a caller's key up once; then it knows it.
// A lookup that fails is answered 401.
type KeyStore struct {
	Capacity float64       `yaml:"capacity"` // lookups a second
	Refusal  float64       `yaml:"refusal"`  // cost of a lookup that fails, as a share of one that does not
	Queue    time.Duration `yaml:"queue"`    // work that waits
}

// Verdict is a limiter that judges each caller and punishes all: when one asks
// for more than it may, every call is refused with 429 for a while.
type Verdict struct {
	RPS float64       `yaml:"rps"` // what one caller may ask for, over 10 s
	For time.Duration `yaml:"for"` // how long the verdict stands
}

// The modes of a Fault besides a status of three digits.
const (
	ModeHang    = "hang"         // no answer at all
	ModeReset   = "reset"        // the connection breaks before the headers
	ModeConnect = "connect"      // no connection
	ModeCut     = "cut"          // the answer breaks off in the middle
	ModeInside  = "error-in-200" // a success with an error in it
	ModeSlow    = "slow"         // Factor times the latency
	ModeFirst   = "slow-first"   // Factor times the latency to the first content alone
	ModeDrip    = "drip"         // Factor times the rest of a stream
	ModeWrong   = "wrong"        // a well-formed answer that is wrong
	ModeLess    = "capacity"     // Factor of the capacity
	ModeCold    = "cold"         // Factor of the capacity, which Warm served calls bring back
	ModeForget  = "forget"       // the key store's cache is lost at At
	ModeDrop    = "drop"         // at At, Share of the running calls break off
	ModeRelabel = "relabel"      // in a workload's own stack: a 429 becomes a 500, and what it said is lost
)

// Fault is what goes wrong with a target, or in a workload's own stack, for a
// while. Faults of the same target are looked at in order; the shares of one
// moment add up.
type Fault struct {
	// Target that fails; nothing with mode relabel.
	Target string `yaml:"target"`
	// Workload that it fails for. Default: all.
	Workload string `yaml:"workload"`
	// At is when it begins.
	At time.Duration `yaml:"at"`
	// Until is when it ends.
	Until time.Duration `yaml:"until"`
	// Mode is a status of three digits, or one of the words.
	Mode string `yaml:"mode"`
	// Share of the calls. Default 1; with To, where it begins.
	Share float64 `yaml:"share"`
	// To is what the share rises or falls to by Until; 0 is constant.
	To float64 `yaml:"to"`
	// Sticky hits the same callers and keys each time: whom is drawn once, not at each call.
	Sticky bool `yaml:"sticky"`
	// After is when a failing answer comes.
	After time.Duration `yaml:"after"`
	// Factor of slow, slow-first, drip, capacity and cold, which need one: above 0.
	Factor float64 `yaml:"factor"`
	// Warm is how many served calls warm a cold target.
	Warm int `yaml:"warm"`
	// RetryAfter is what a failing answer says; 0 is nothing.
	RetryAfter time.Duration `yaml:"retry_after"`
}

// Action is what an operator does to every contender's gateway.
type Action struct {
	At time.Duration `yaml:"at"`
	// Do is reload, configure (put targets in the place of those that they replace, and reload), restart (drain, then start anew), kill (and start after Down), drain (and stay away) or quarantine.
	Do string `yaml:"do"`
	// Instance it is done to, from 1. Default: all, one after the other.
	Instance int `yaml:"instance"`
	// Every is the pause from one instance to the next.
	Every time.Duration `yaml:"every"`
	// Workload of quarantine.
	Workload string `yaml:"workload"`
	// Share of concurrency and memory that it keeps, 0 to 1. Default 0: nothing.
	Share float64 `yaml:"share"`
}

// Moment is what happened in the incident, at a virtual time.
type Moment struct {
	At   time.Duration `yaml:"at"`
	Text string        `yaml:"text"`
}

// Criterion is what must hold for the router.
type Criterion struct {
	Name  string   `yaml:"name"`
	Expr  string   `yaml:"expr"`  // see measure.go for its words
	Needs string   `yaml:"needs"` // a capability that this version lacks: reported, not judged
	Fails []string `yaml:"fails"` // contenders for which it must not hold: the incident
}

// Size is a number of bytes, written as 64MiB.
type Size int64

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	b, err := config.ParseBytes(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*s = Size(b)
	return nil
}

// Parse reads a scenario. Unknown keys and what cannot be played are errors
// that name the place.
func Parse(data []byte) (*Scenario, error) {
	s := &Scenario{Compression: 1}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(s); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return nil, err
	}
	s.fill()
	return s, s.check()
}

// Defaults of a scenario.
const (
	model       = "m"
	perCall     = 64 << 10
	defaultDown = 30 * time.Second
	bodySize    = 1 << 10
	// agent is a client that obeys.
	agent = "OpenAI/Python 2.8.0"
)

// fill puts the defaults in.
func (s *Scenario) fill() {
	if g := s.Gateway; g != nil {
		g.Instances, g.Queue = cmp.Or(g.Instances, 1), cmp.Or(g.Queue, time.Second)
		g.Waiting = cmp.Or(g.Waiting, 0.25)
		g.PerCall, g.Down = cmp.Or(g.PerCall, perCall), cmp.Or(g.Down, defaultDown)
	}
	for i := range s.Targets {
		t := &s.Targets[i]
		if t.Stream == 0 {
			t.Stream = time.Duration(t.Tokens) * t.PerToken
		}
		t.Domain, t.Model, t.Slows = cmp.Or(t.Domain, t.Name), cmp.Or(t.Model, model), cmp.Or(t.Slows, 1)
		t.PerCall, t.Down = cmp.Or(t.PerCall, perCall), cmp.Or(t.Down, defaultDown)
		t.Full = cmp.Or(t.Full, 429)
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.To == 0 {
			f.Share = cmp.Or(f.Share, 1)
		}
		if !slices.Contains(factored, f.Mode) {
			f.Factor = cmp.Or(f.Factor, 1)
		}
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		w.Timeout, w.Model = cmp.Or(w.Timeout, 30*time.Second), cmp.Or(w.Model, model)
		w.Callers, w.Agent = cmp.Or(w.Callers, 1), cmp.Or(w.Agent, agent)
		b := &w.Body
		b.P50 = cmp.Or(b.P50, bodySize)
		b.P95 = cmp.Or(b.P95, b.P50)
		b.P99 = cmp.Or(b.P99, b.P95)
		b.Max = cmp.Or(b.Max, b.P99)
	}
}
