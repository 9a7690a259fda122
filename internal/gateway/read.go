package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
)

const (
	// bodyPause is how long a body may stand still, bodyTotal how long it may
	// take in all.
	bodyPause = 15 * time.Second
	bodyTotal = 5 * time.Minute
	// linger is how long the rest of a body that nobody wants is taken.
	linger = time.Second
	// holdUpload is the size up to which a passed-through body is held; a
	// larger one streams.
	holdUpload = 1 << 20
)

// slowBody is a request body that must keep moving: the connection's read
// deadline follows each read.
type slowBody struct {
	io.ReadCloser
	ctl  *http.ResponseController
	end  time.Time
	next time.Time // when the deadline is to be moved on
}

// begin starts at the request's own start, where the deadline was set first.
func (b *slowBody) begin(ctl *http.ResponseController, body io.ReadCloser, start time.Time) {
	*b = slowBody{ReadCloser: body, ctl: ctl, end: start.Add(bodyTotal), next: start.Add(time.Second)}
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.advance()
	return b.ReadCloser.Read(p)
}

// advance moves the deadline on.
func (b *slowBody) advance() {
	now := time.Now()
	if !now.After(b.next) {
		return
	}
	limit := now.Add(bodyPause)
	if limit.After(b.end) {
		limit = b.end
	}
	_ = b.ctl.SetReadDeadline(limit) // writers without deadlines have none to miss
	b.next = now.Add(time.Second)
}

// interrupt ends a read that waits.
func (b *slowBody) interrupt() {
	_ = b.ctl.SetReadDeadline(time.Unix(1, 0)) // writers without deadlines read on
}

// done lifts the deadline: from now on the server itself watches the
// connection for the client's leaving.
func (b *slowBody) done() { _ = b.ctl.SetReadDeadline(time.Time{}) }

// bodies are those that are arriving just now. A read waits for the network
// alone, so who stops the router has to wake it.
type bodies struct {
	mu  sync.Mutex
	all map[*slowBody]struct{}
}

func (b *bodies) add(ctx context.Context, one *slowBody) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[*slowBody]struct{}{}
	}
	b.all[one] = struct{}{}
	if ctx.Err() != nil { // too late for interrupt
		one.interrupt()
	}
}

func (b *bodies) remove(one *slowBody) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, one)
}

func (b *bodies) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for one := range b.all {
		one.interrupt()
	}
}

// upload is a body that streams to the upstream. It is read by the client
// transport, which may go on doing so while the answer is written and after
// the call has failed.
type upload struct {
	body    *slowBody
	max     int64
	reading chan struct{} // holds a token during a read of body; a mutex's wait would stop virtual time

	mu    sync.Mutex
	left  int64
	err   error // what ended it before its end
	whole bool
	wait  func() // before a read, nil for nobody
	moved func() // behind it
	given bool   // up: nobody is to read on
}

func newUpload(body *slowBody, limit int64) *upload {
	return &upload{body: body, max: limit, left: limit, reading: make(chan struct{}, 1)}
}

// errGivenUp ends the reading of a body whose request is over.
var errGivenUp = errors.New("the request is over")

// Read passes on the body and notes how it ends.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	if u.given {
		u.mu.Unlock()
		return 0, errGivenUp
	}
	u.body.advance()
	wait, moved := u.wait, u.moved
	u.mu.Unlock()
	if wait != nil {
		wait()
		defer moved()
	}
	u.reading <- struct{}{}
	n, err := u.body.ReadCloser.Read(p)
	<-u.reading
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left -= int64(n); u.left < 0 {
		n, err = 0, admit.ErrTooLarge{Limit: u.max}
	}
	switch {
	case err == io.EOF:
		u.whole = true
		u.body.done()
	case err != nil && !u.given && u.err == nil:
		u.err = err
	}
	return n, err
}

// Whole reports that the body was read to its end.
func (u *upload) Whole() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.whole
}

// Watch has wait called before each read of the client's connection, and moved
// behind it.
func (u *upload) Watch(wait, moved func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wait, u.moved = wait, moved
}

// Err is what ended the reading before the body's end: the client was too
// slow, sent too much or left. It is nil while all is well.
func (u *upload) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// giveUp ends the reading, when the answer is out. A read under way gets a
// moment to end by itself, for one that is broken off spoils the body; what is
// left of it net/http then takes for a moment, so that a client that is still
// sending reads its answer before the connection ends.
func (u *upload) giveUp() {
	linger := func() { _ = u.body.ctl.SetReadDeadline(time.Now().Add(linger)) } // writers without deadlines read on
	u.mu.Lock()
	u.given = true
	whole := u.whole
	if !whole {
		linger()
	}
	u.mu.Unlock()
	if whole {
		return
	}
	u.reading <- struct{}{}
	linger()
	<-u.reading
}
