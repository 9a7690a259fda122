// Package event holds the facts the request path states about itself: an
// attempt ended, a request ended, a breaker moved. It is the one seam between
// the flow and everything that watches it (metrics, logs, and later the
// detectors), so the flow imports neither.
//
// A Listener's functions are called on the request's own goroutine: they must
// return at once, must not block, and must not keep the pointer they are
// given.
package event

import (
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// Why an attempt was made.
const (
	First      = "first"       // the request's first attempt
	Probe      = "probe"       // first attempt that also probes an open target
	LastResort = "last_resort" // no closed target had room: admitted by measured success share
	Divert     = "divert"      // extra attempt at a proven healthy target, not charged
	Retry      = "retry"       // extra attempt, charged to both budgets
)

// Arm is which of two versions of the configuration served a request while a
// rollout runs.
type Arm uint8

// The arms.
const (
	NoArm     Arm = iota // there is one version
	Control              // the version before
	Candidate            // the new version
)

// Attempt is one finished upstream call.
type Attempt struct {
	RequestID string
	Model     string
	Workload  string
	Target    string
	Number    int    // 1 for the request's first
	Why       string // First, Probe, LastResort, Divert, Retry
	Class     fault.Class
	Reason    string // machine word, low cardinality
	Status    int    // upstream status, 0 when there was none
	Detail    string // what the upstream said of our credential or account, without the credential; "" otherwise
	Start     time.Time
	Headers   time.Duration // start to response headers, 0 when none came
	Content   time.Duration // start to first content, 0 when none came
	Total     time.Duration
	Operation string // chat, text_completion, embeddings; "" for what is passed through
	Stream    bool   // asked for
	Usage     Usage
	Trace     *Trace // nil when nobody traces
	Arm       Arm
}

// Request is one finished client request.
type Request struct {
	ID             string
	Method         string
	Path           string
	Model          string // configured model name, "" when unknown
	Workload       string
	Target         string // who answered, "" when nobody did
	Stream         bool
	Class          fault.Class
	Reason         string
	Status         int  // what the client was sent, 0 when nothing was
	Attempts       int  // upstream calls made
	InboundAttempt int  // the caller's own retry count, 0 for its first try
	Repeat         bool // of one that failed, by the caller's own retry loop, however that is known
	Over           bool // refused for a limit or a lane of the caller's own
	Degraded       string
	Start          time.Time
	Content        time.Duration // start to first content sent, 0 when none was
	Total          time.Duration
	BytesIn        int64
	BytesOut       int64
	InputTokens    int64
	OutputTokens   int64
	Partial        bool    // the answer reported no tokens: they are estimated from what was delivered
	CostUSD        float64 // where the target that answered has a price
	Operation      string  // as an Attempt's
	Trace          *Trace  // nil when nobody traces
	Arm            Arm
}

// Transition is a breaker changing phase.
type Transition struct {
	Target string
	From   string
	To     string
	Reason string
	At     time.Time
}

// Crash is a request whose handler panicked: a mistake of the router's own.
type Crash struct {
	RequestID string
	What      string // without anything of the request
	Stack     []byte
}

// Listener receives the facts. A nil function is skipped.
type Listener struct {
	Attempt    func(*Attempt)
	Request    func(*Request)
	Crash      func(*Crash)
	Transition func(Transition)
}

// Join returns a listener that passes every fact on to each of them, in order.
func Join(all ...*Listener) *Listener {
	return &Listener{
		Attempt: func(a *Attempt) {
			for _, l := range all {
				l.AttemptDone(a)
			}
		},
		Request: func(r *Request) {
			for _, l := range all {
				l.RequestDone(r)
			}
		},
		Crash: func(c *Crash) {
			for _, l := range all {
				l.Crashed(c)
			}
		},
		Transition: func(t Transition) {
			for _, l := range all {
				l.Moved(t)
			}
		},
	}
}

// AttemptDone states that an attempt ended.
func (l *Listener) AttemptDone(a *Attempt) {
	if l != nil && l.Attempt != nil {
		l.Attempt(a)
	}
}

// RequestDone states that a request ended.
func (l *Listener) RequestDone(r *Request) {
	if l != nil && l.Request != nil {
		l.Request(r)
	}
}

// Crashed states that a request's handler panicked.
func (l *Listener) Crashed(c *Crash) {
	if l != nil && l.Crash != nil {
		l.Crash(c)
	}
}

// Moved states that a breaker changed phase.
func (l *Listener) Moved(t Transition) {
	if l != nil && l.Transition != nil {
		l.Transition(t)
	}
}
