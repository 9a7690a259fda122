package app

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/steer"
)

const (
	// maxChanges is how many changes the state shows; the audit log has all of them.
	maxChanges = 200
	// maxUnwritten bounds what waits to be written down.
	maxUnwritten = 4096
	// writeWait is how long an operator's request waits for that.
	writeWait = 5 * time.Second
)

var (
	// errUnwritten says that what was done may be missing from the store.
	errUnwritten = errors.New("the store has not taken it")
	// errUnread says that the store does not answer.
	errUnread = errors.New("the store does not answer")
)

// journal is what was changed while the router runs, and by whom. One goroutine
// writes it to the store, so that neither a request nor the poller waits for a disk.
type journal struct {
	mu     sync.Mutex
	recent []steer.Entry // the newest last
	queue  chan job      // closed by stop
	states []state       // to be written, one of a name, the newest last
	closed bool

	reading chan struct{} // held by whoever reads: readers must not fill the queue
	wg      sync.WaitGroup
}

// job is something to be written, in its turn.
type job struct {
	write func() error
	done  chan error // nil where nobody waits
}

// state is something of which the newest alone is written.
type state struct {
	name  string
	write func() error
}

func newJournal() *journal {
	return &journal{queue: make(chan job, maxUnwritten), reading: make(chan struct{}, 1)}
}

// start writes what comes, until stop. failed hears of what could not be written.
func (j *journal) start(failed func(error)) {
	j.wg.Go(func() {
		for next := range j.queue {
			err := next.write()
			if err != nil {
				failed(err)
			}
			if next.done != nil {
				next.done <- err
			}
			if err := j.flush(); err != nil {
				failed(err)
			}
		}
	})
}

// stop writes what is left.
func (j *journal) stop() {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.queue)
	}
	j.mu.Unlock()
	j.wg.Wait()
}

// add puts a job in the queue, and reports whether it has a place there.
func (j *journal) add(next job) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	select {
	case j.queue <- next:
		return true
	default:
		return false
	}
}

// keep has the newest state of something written. It is not lost where the queue is
// full or the store fails: the next job that is done brings it along.
func (j *journal) keep(name string, write func() error) {
	j.mu.Lock()
	j.states = slices.DeleteFunc(j.states, func(s state) bool { return s.name == name })
	j.states = append(j.states, state{name, write})
	j.mu.Unlock()
	j.add(job{write: func() error { return nil }})
}

// flush writes the states that are not written yet, up to one that fails.
func (j *journal) flush() error {
	for {
		j.mu.Lock()
		if len(j.states) == 0 {
			j.mu.Unlock()
			return nil
		}
		next := j.states[0]
		j.states = slices.Clone(j.states[1:])
		j.mu.Unlock()
		err := next.write()
		if err == nil {
			continue
		}
		j.mu.Lock()
		if !slices.ContainsFunc(j.states, func(s state) bool { return s.name == next.name }) {
			j.states = slices.Insert(j.states, 0, next)
		}
		j.mu.Unlock()
		return err
	}
}

// wait waits for everything that was added before.
func (j *journal) wait(write func() error) error {
	next := job{write: write, done: make(chan error, 1)}
	if !j.add(next) {
		return errUnwritten
	}
	late := time.NewTimer(writeWait)
	defer late.Stop()
	select {
	case err := <-next.done:
		return err
	case <-late.C:
		return errUnwritten
	}
}

// read runs f after everything that was added before, one reader at a time. Where the
// disk hangs it is given up: readers may come for as long as that lasts.
func (j *journal) read(f func()) error {
	late := time.NewTimer(writeWait)
	defer late.Stop()
	select {
	case j.reading <- struct{}{}:
	case <-late.C:
		return errUnread
	}
	done := make(chan error, 1)
	if !j.add(job{write: func() error { defer func() { <-j.reading }(); f(); return nil }, done: done}) {
		<-j.reading
		return errUnread
	}
	select {
	case <-done:
		return nil
	case <-late.C:
		return errUnread
	}
}

// changed notes a change that was made while the router runs: in the log, among the
// changes of the state, in the audit log, and with the detectors where told says
// what.
func (a *App) changed(e steer.Entry, told detect.Change) {
	a.log.Warn("changed", "component", "admin", "who", e.Who, "what", e.What, "subject", e.Subject, "why", e.Why, "action", e.Action)
	if told.What != "" {
		told.At, told.By = e.At, e.Who
		a.watch.Tell(told)
	}
	a.journal.mu.Lock()
	a.journal.recent = append(a.journal.recent, e)
	if extra := len(a.journal.recent) - maxChanges; extra > 0 {
		a.journal.recent = slices.Delete(a.journal.recent, 0, extra)
	}
	a.journal.mu.Unlock()
	a.announce(e, "")
	a.audit(e)
}

// changedElsewhere notes a change that was made elsewhere and told here. It moves what
// is suspected, so who told it is written down.
func (a *App) changedElsewhere(c detect.Change, by admin.By) {
	a.log.Warn("changed elsewhere", "component", "admin", "who", by.Name, "what", c.What, "scope", c.Scope, "reverts", c.Reverts)
	a.watch.Tell(c)
	why := c.What
	if c.Reverts != "" {
		why += ", which takes back " + c.Reverts
	}
	a.audit(steer.Entry{At: time.Now(), Who: by.Name, Role: by.Role, Via: by.Via, What: "elsewhere", Subject: c.Scope, Why: why})
}

// audit adds a line to the audit log.
func (a *App) audit(e steer.Entry) {
	if !a.journal.add(job{write: func() error { _, err := a.store.Append(e); return err }}) {
		a.unwritten(errUnwritten)
	}
}

// unwritten says that something is missing from the store.
func (a *App) unwritten(err error) {
	a.log.Error("what was done is not written down: the log lines have it", "component", "store", "reason", err.Error())
}

// changes lists the last changes, newest first.
func (a *App) changes() []admin.Change {
	a.journal.mu.Lock()
	defer a.journal.mu.Unlock()
	list := make([]admin.Change, 0, len(a.journal.recent))
	for _, e := range slices.Backward(a.journal.recent) {
		list = append(list, admin.Change{At: e.At, Who: e.Who, What: e.What, Subject: e.Subject, Why: e.Why})
	}
	return list
}

// entries are lines of the audit log below an ID, newest first; those that were
// written before this was asked are among them.
func (a *App) entries(before int64, most int) ([]steer.Entry, error) {
	type page struct {
		list []steer.Entry
		err  error
	}
	got := make(chan page, 1)
	if err := a.journal.read(func() {
		list, err := a.store.Entries(before, most)
		got <- page{list, err}
	}); err != nil {
		return nil, err
	}
	p := <-got
	return p.list, p.err
}

// bounded is a reason as it is written down: of a configuration it may be long.
func bounded(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), 2000)], "")
}
