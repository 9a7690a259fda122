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
)

// Scenario is an outage as data: who calls, what is called, what goes wrong
// when, and what must hold. Times are virtual, from its beginning; rates are a
// second.
type Scenario struct {
	Name     string `yaml:"name"`
	Title    string `yaml:"title"`
	Incident string `yaml:"incident"` // id in the library, "" for none
	// Start is the incident's own clock at 0, Compression how many of its
	// seconds one virtual second stands for.
	Start       time.Time     `yaml:"start"`
	Compression float64       `yaml:"compression"`
	Length      time.Duration `yaml:"length"`
	Facts       []string      `yaml:"facts"`       // from the sources
	Assumptions []string      `yaml:"assumptions"` // ours
	Workloads   []Workload    `yaml:"workloads"`
	Targets     []Target      `yaml:"targets"` // in order of preference
	Faults      []Fault       `yaml:"faults"`
	Marks       []Moment      `yaml:"marks"`
	Criteria    []Criterion   `yaml:"criteria"`
}

// Workload is a caller: its arrivals and the retry layers of its own stack.
type Workload struct {
	Name    string        `yaml:"name"`
	Rate    []Rate        `yaml:"rate"`
	Stream  bool          `yaml:"stream"`
	Timeout time.Duration `yaml:"timeout"` // of one call; a stream's is until its end
	Retries []Layer       `yaml:"retries"` // outermost first
	RPM     int           `yaml:"rpm"`     // limit at the router, 0 for none
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
	On       []string      `yaml:"on"`       // 5xx, 429, timeout, reset
	Obeys    bool          `yaml:"obeys"`    // stops at x-should-retry: false, as official clients do
}

// Target is a model deployment at a provider.
type Target struct {
	Name     string        `yaml:"name"`
	Domain   string        `yaml:"domain"`   // failure domain; default the name
	Capacity float64       `yaml:"capacity"` // calls a second
	Refusal  float64       `yaml:"refusal"`  // cost of a refused call, as a share of a served one
	Queue    time.Duration `yaml:"queue"`    // work it takes on before it refuses
	Latency  time.Duration `yaml:"latency"`  // to the whole answer, or to the first content of a stream
	Stream   time.Duration `yaml:"stream"`   // from there to the end of a stream
	Degraded bool          `yaml:"degraded"` // a last resort, not a target of the model
}

// The modes of a Fault besides a status of three digits.
const (
	ModeHang    = "hang"         // no answer at all
	ModeReset   = "reset"        // the connection breaks before the headers
	ModeConnect = "connect"      // no connection
	ModeCut     = "cut"          // the answer breaks off in the middle
	ModeInside  = "error-in-200" // a success with an error in it
	ModeSlow    = "slow"         // Factor times the latency
	ModeLess    = "capacity"     // Factor of the capacity
)

// Fault is what goes wrong with a target for a while. Faults of the same target
// are looked at in order; the shares of one moment add up.
type Fault struct {
	Target     string        `yaml:"target"`
	At         time.Duration `yaml:"at"`
	Until      time.Duration `yaml:"until"`
	Mode       string        `yaml:"mode"`
	Share      float64       `yaml:"share"`  // of calls, default all
	To         float64       `yaml:"to"`     // the share rises or falls to this until Until; 0 is constant
	After      time.Duration `yaml:"after"`  // of a failing answer
	Factor     float64       `yaml:"factor"` // of slow and capacity
	RetryAfter time.Duration `yaml:"retry_after"`
}

// Moment is what happened in the incident, at a virtual time.
type Moment struct {
	At   time.Duration `yaml:"at"`
	Text string        `yaml:"text"`
}

// Criterion is what must hold for the router.
type Criterion struct {
	Name  string `yaml:"name"`
	Expr  string `yaml:"expr"`  // see measure.go for its words
	Needs string `yaml:"needs"` // a capability that this version lacks: reported, not judged
	// Fails lists contenders for which it must not hold: the incident.
	Fails []string `yaml:"fails"`
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
	for i := range s.Targets {
		s.Targets[i].Domain = cmp.Or(s.Targets[i].Domain, s.Targets[i].Name)
	}
	for i := range s.Faults {
		s.Faults[i].Share = cmp.Or(s.Faults[i].Share, 1)
		s.Faults[i].Factor = cmp.Or(s.Faults[i].Factor, 1)
	}
	for i := range s.Workloads {
		s.Workloads[i].Timeout = cmp.Or(s.Workloads[i].Timeout, 30*time.Second)
	}
	return s, s.check()
}

// check collects everything that makes a scenario unplayable.
func (s *Scenario) check() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if s.Name == "" || s.Title == "" {
		bad("name and title are needed")
	}
	if s.Length <= 0 || s.Length > 48*time.Hour {
		bad("length: must be above 0 and at most 48h")
	}
	if s.Compression <= 0 {
		bad("compression: must be above 0")
	}
	if len(s.Workloads) == 0 || len(s.Targets) == 0 || len(s.Criteria) == 0 {
		bad("workloads, targets and criteria need at least one entry each")
	}
	for i, w := range s.Workloads {
		w.check(func(format string, args ...any) {
			bad("workloads[%d] %s: "+format, append([]any{i, w.Name}, args...)...)
		})
	}
	for i, t := range s.Targets {
		if t.Name == "" || t.Capacity <= 0 || t.Latency < 0 || t.Refusal < 0 {
			bad("targets[%d] %s: needs a name, a capacity above 0, latency and refusal not below 0", i, t.Name)
		}
	}
	for i, f := range s.Faults {
		f.check(s, func(format string, args ...any) { bad("faults[%d]: "+format, append([]any{i}, args...)...) })
	}
	for i, c := range s.Criteria {
		if err := compile(c.Expr); err != nil {
			bad("criteria[%d] %s: %w", i, c.Name, err)
		}
		for _, f := range c.Fails {
			if _, ok := find(f); !ok || f == "router" {
				bad("criteria[%d] %s: fails: %q is none of %v", i, c.Name, f, Names()[1:])
			}
		}
	}
	return errors.Join(all...)
}

func (w *Workload) check(bad func(string, ...any)) {
	if w.Name == "" || len(w.Rate) == 0 {
		bad("needs a name and a rate")
	}
	for i, r := range w.Rate {
		if r.RPS < 0 || r.RPS > 10_000 || i > 0 && r.At <= w.Rate[i-1].At {
			bad("rate[%d]: rps must be 0 to 10000, and at must rise", i)
		}
	}
	for i, l := range w.Retries {
		if l.Attempts < 1 || l.Attempts > 100 {
			bad("retries[%d]: attempts must be 1 to 100", i)
		}
		for _, on := range l.On {
			if !slices.Contains([]string{"5xx", "429", "timeout", "reset"}, on) {
				bad("retries[%d]: on: %q is none of 5xx, 429, timeout, reset", i, on)
			}
		}
	}
}

func (f *Fault) check(s *Scenario, bad func(string, ...any)) {
	if !slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Name == f.Target }) {
		bad("target %q does not exist", f.Target)
	}
	if f.Until <= f.At {
		bad("until must be later than at")
	}
	if f.Share < 0 || f.Share > 1 || f.To < 0 || f.To > 1 {
		bad("share and to must be 0 to 1")
	}
	modes := []string{ModeHang, ModeReset, ModeConnect, ModeCut, ModeInside, ModeSlow, ModeLess}
	if !slices.Contains(modes, f.Mode) && f.status() == 0 {
		bad("mode %q is none of %v and no status from 400 to 599", f.Mode, modes)
	}
}

// status is the mode as a status, 0 when it is none.
func (f *Fault) status() int {
	var n int
	if _, err := fmt.Sscanf(f.Mode, "%d", &n); err != nil || n < 400 || n > 599 || len(f.Mode) != 3 {
		return 0
	}
	return n
}
