package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/steer"
)

// Change is something that was changed while the router ran: who did it, what,
// and why. The audit log says more of it.
type Change struct {
	At   time.Time `json:"at"`
	Who  string    `json:"who"`
	What string    `json:"what"` // the kind of an action, replace, undo, resume, expire, end, release, note, configuration
	// Subject is what it concerns.
	Subject string `json:"subject"`
	Why     string `json:"why,omitempty"`
}

// Quarantine is what is asked of a workload's lane.
type Quarantine struct {
	// Share of concurrency and memory, 0 to 1; 0 lets nothing in.
	Share *float64 `json:"share"`
	Who   string   `json:"who"`
	Why   string   `json:"why"`
	By    By       `json:"-"`
}

// Steering is what an operator may change.
type Steering struct {
	// Quarantine moves a workload to the quarantine lane, Release back.
	Quarantine, Release func(workload string, q Quarantine) error

	// Order puts an action in force, Undo takes one back; the errors are of
	// steer.Problem. Actions lists them, Audit the lines of the audit log below an ID,
	// or from the newest for 0. What is nil is not served.
	Order   func(steer.Order, By) (steer.Taken, error)
	Undo    func(id string, by By, why string) (steer.Undone, error)
	Actions func(now time.Time) Actions
	Audit   func(before int64, most int) ([]steer.Entry, error)
}

// ErrUnknown says that there is no such workload.
var ErrUnknown = errors.New("no such workload")

// maxOrder bounds the body of an operator's request.
const maxOrder = 16 << 10

// order reads an operator's request. It is to be JSON by its media type, which no
// form of another site can send.
func order(w http.ResponseWriter, r *http.Request, into any) bool {
	mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mt != "application/json" {
		problem(w, http.StatusUnsupportedMediaType, "Send JSON, with Content-Type: application/json.")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) { // nothing said is all defaults
		problem(w, http.StatusBadRequest, "The body is not what is expected here: "+err.Error())
		return false
	}
	return true
}

// lane serves PUT and DELETE of a workload's quarantine.
func (s Steering) lane(w http.ResponseWriter, r *http.Request) {
	var q Quarantine
	if !operates(w, r) || !order(w, r, &q) {
		return
	}
	move := s.Quarantine
	if r.Method == http.MethodDelete {
		move = s.Release
	}
	if q.Share != nil && (*q.Share < 0 || *q.Share > 1) {
		problem(w, http.StatusBadRequest, fmt.Sprintf("share: %v is not between 0 and 1.", *q.Share))
		return
	}
	q.By, q.Why = byOf(r, q.Who), line(q.Why)
	name := r.PathValue("name")
	switch err := move(name, q); {
	case errors.Is(err, ErrUnknown):
		problem(w, http.StatusNotFound, fmt.Sprintf("There is no workload %q. GET /api/v1/state lists them.", name))
	case err != nil:
		problem(w, http.StatusConflict, err.Error())
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// asker is who asks for a change: the person that is known, and where everybody is
// let in who is on this machine, whoever that says to be.
func asker(r *http.Request, says string) string {
	p := access.From(r.Context())
	if says = line(says); says != "" && p.Via == access.Loopback {
		return says
	}
	return line(p.Name)
}

// line is a text as one line of bounded length, without what would steer a
// terminal or turn the text around it.
func line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	s = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), 200)], "")
}

func problem(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text}) // a reader that has left is told nothing
}
