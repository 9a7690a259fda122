package gateway

import (
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// bodyPause is how long a body may stand still, bodyTotal how long it may
	// take in all.
	bodyPause = 15 * time.Second
	bodyTotal = 5 * time.Minute
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

func slowly(w http.ResponseWriter, body io.ReadCloser) *slowBody {
	return &slowBody{ReadCloser: body, ctl: http.NewResponseController(w), end: time.Now().Add(bodyTotal)}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.After(b.next) {
		limit := now.Add(bodyPause)
		if limit.After(b.end) {
			limit = b.end
		}
		_ = b.ctl.SetReadDeadline(limit) // writers without deadlines have none to miss
		b.next = now.Add(time.Second)
	}
	return b.ReadCloser.Read(p)
}

// done lifts the deadline: from now on the server itself watches the
// connection for the client's leaving.
func (b *slowBody) done() { _ = b.ctl.SetReadDeadline(time.Time{}) }

// upload is a body that streams to the upstream. The answer must not begin
// before it has ended: handing a server's body to a client transport while
// the answer is written was measured to cut some answers short.
type upload struct {
	body *slowBody
	once sync.Once
	over chan struct{}
}

func newUpload(body *slowBody) *upload { return &upload{body: body, over: make(chan struct{})} }

// Read passes on the body and notes its end.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.body.Read(p)
	if err != nil {
		u.stop()
	}
	return n, err
}

// Over is closed once nothing reads the body any more.
func (u *upload) Over() <-chan struct{} { return u.over }

func (u *upload) stop() {
	u.once.Do(func() {
		u.body.done()
		close(u.over)
	})
}
