// Package notify tells the outside what is noticed: outages, what operators and the
// rule do, how rollouts go, and configurations that are refused. It decides how often
// that is told to whom, in which shape, and how long delivery is tried. It changes
// nothing in the router, and nothing ever waits for it: a notice goes into a bounded
// queue of each webhook, and one goroutine of each sends.
//
// No prompt, answer or key is in a notice, so none is sent. What comes from outside
// (names, reasons, texts) is cleaned of control characters and bounded here, and
// escaped by each shape. An address may be a secret, as Slack's is: no error and no
// log line has one.
//
// The book (what is sent next, and when) and the shapes are pure: now and random
// numbers are arguments. Notifier is safe for concurrent use.
package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hourthree/hourthree/internal/detect"
)

// Kind is what a notice is about; webhooks choose by it.
type Kind string

// The kinds. Test is sent to whoever is asked for, whatever was chosen.
const (
	OfOutage        Kind = "outage"
	OfAction        Kind = "action"
	OfRollout       Kind = "rollout"
	OfConfiguration Kind = "configuration"
	OfTest          Kind = "test"
)

// Severity is how much a notice matters.
type Severity string

// The severities.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

const (
	maxName  = 200  // bytes of a name
	maxTitle = 200  // bytes of a title
	maxText  = 1500 // bytes of a text
	maxScope = 8    // subjects of a scope that are named
)

// Notice is something to be told.
type Notice struct {
	ID       string // the same for the same notice
	At       time.Time
	Kind     Kind
	Event    string // of its kind: opened, quarantine, reverted, refused
	Subject  string // what it is about, by which notices belong together: O-1, a workload
	Severity Severity
	Title    string // one line
	Text     string
	Who      string
	Outage   *Outage // of an outage, else nil
}

// Outage is how an outage stood when the notice was made.
type Outage struct {
	ID     string
	State  string // degraded, improving, unverified, verified
	Onset  time.Time
	Ended  *time.Time
	Scope  []detect.Subject
	More   int // subjects of the scope that are not named
	Source *detect.Subject
	Score  float64 // of the source, 0 to 1
}

// seal cleans and bounds what came from outside, and gives the notice its ID.
func (n *Notice) seal() {
	n.Subject, n.Event, n.Who = clean(n.Subject, maxName), clean(n.Event, maxName), clean(n.Who, maxName)
	n.Title, n.Text = clean(n.Title, maxTitle), clean(n.Text, maxText)
	state := ""
	if o := n.Outage; o != nil {
		state = o.State
		for i := range o.Scope {
			o.Scope[i].Name = clean(o.Scope[i].Name, maxName)
		}
		if o.Source != nil {
			o.Source.Name = clean(o.Source.Name, maxName)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(n.Kind), n.Event, n.Subject, state, n.Title, n.Text, n.Who, n.At.UTC().Format(time.RFC3339Nano)}, "\x00")))
	n.ID = hex.EncodeToString(sum[:8])
}

// group is what belongs together: of a group the newest notice covers the others.
func (n *Notice) group() string { return string(n.Kind) + "\x00" + n.Subject }

// limited is what is told at most once in a while.
func (n *Notice) limited() string {
	state := ""
	if n.Outage != nil {
		state = n.Outage.State
	}
	return n.group() + "\x00" + n.Event + "\x00" + state
}

// clean is a text of one line, without what changes how others read it, bounded in
// bytes.
func clean(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return cut(strings.TrimSpace(s), most)
}

// cut bounds a text in bytes and shows that it did.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// Change is something that an operator, the rule or a rollout did.
type Change struct {
	At      time.Time
	Who     string
	What    string // quarantine, release, rollout, configuration, the kind of an action
	Subject string
	Why     string
	Became  string // of a rollout that has ended: reverted, halted, promoted, replaced
}

// ends of a rollout that are told; one that is replaced ends in another's.
var ends = map[string]Severity{"reverted": Warning, "halted": Warning, "promoted": Info}

// Notice is a change as it is told; false for one that is nobody's business outside.
func (c Change) Notice() (Notice, bool) {
	n := Notice{At: c.At, Kind: OfAction, Event: c.What, Subject: c.Subject, Severity: Warning, Text: c.Why, Who: c.Who}
	switch c.What {
	case "", "note":
		return Notice{}, false
	case "configuration":
		n.Kind, n.Event, n.Severity, n.Title = OfConfiguration, "taken", Info, "Configuration "+c.Subject+" is in force"
	case "rollout":
		severity, told := ends[c.Became]
		if !told {
			return Notice{}, false
		}
		n.Kind, n.Event, n.Severity, n.Title = OfRollout, c.Became, severity, "Rollout of "+c.Subject+" "+c.Became
	default:
		n.Title = fmt.Sprintf("%s of %s", capital(c.What), c.Subject)
	}
	if n.Who != "" && n.Kind == OfAction {
		n.Title += " by " + n.Who
	}
	n.seal()
	return n, true
}

func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

// Refused tells that a configuration was refused.
func Refused(at time.Time, source string, reason error) Notice {
	n := Notice{At: at, Kind: OfConfiguration, Event: "refused", Subject: source, Severity: Warning, Title: "Configuration refused, the old one stays", Text: reason.Error()}
	n.seal()
	return n
}

// Test is a notice that shows that a webhook works.
func Test(at time.Time) Notice {
	n := Notice{At: at, Kind: OfTest, Event: "test", Subject: "test", Severity: Info, Title: "Hourthree can reach this webhook", Text: "This is a test. Nothing is wrong."}
	n.seal()
	return n
}
