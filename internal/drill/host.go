package drill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/memnet"
)

// host is a target on the network.
type host struct {
	*play
	server    *server
	workloads map[string]*Workload
}

// sent is what a target reads of a request. The user says whose it is.
type sent struct {
	Stream bool
	User   string
}

// bodyOf is a request of the call's size.
func bodyOf(c call) io.Reader {
	head := fmt.Sprintf(`{"model":%q,"stream":%v,"user":"%s %d %d %d %d","messages":[{"role":"user","content":"What does your code do in hour three?`, c.Model, c.Stream, c.Name, c.caller, c.key, c.id, c.attempt)
	tail := `"}]}`
	if c.Garbled {
		tail = ""
	}
	fill := int(c.bytes) - len(head) - len(tail)
	return io.MultiReader(strings.NewReader(head), io.LimitReader(spaces{}, int64(fill)), strings.NewReader(tail))
}

// spaces never end.
type spaces struct{}

var blank = bytes.Repeat([]byte(" "), 32<<10)

func (spaces) Read(p []byte) (int, error) { return copy(p, blank), nil }

// read reads what a call says of itself, to its end: net/http watches for the
// caller's leaving from there on.
func (h *host) read(r *http.Request) (q asked, stream, ok bool) {
	head := make([]byte, bodySize)
	n, err := io.ReadFull(r.Body, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // the router may have put in a shorter name of the model
		return q, false, false
	}
	more, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return q, false, false // cut off before it was whole
	}
	var s sent
	// What fills the body stands behind what is read.
	if end := bytes.Index(head[:n], []byte(`,"messages"`)); end > 0 {
		head = append(head[:end:end], '}')
	}
	if json.Unmarshal(head, &s) != nil {
		return q, false, false
	}
	var name string
	var id, attempt uint64
	if _, err := fmt.Sscanf(s.User, "%s %d %d %d %d", &name, &q.caller, &q.key, &id, &attempt); err != nil {
		return q, false, false
	}
	q.workload, q.bytes, q.call = h.workloads[name], int64(n)+more, h.server.number(id, attempt)
	return q, s.Stream, q.workload != nil
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, stream, ok := h.read(r)
	if !ok {
		return
	}
	h.books.upstream(q.workload.Name, h.since())
	a, d := h.server.take(time.Now(), h.since(), q)
	defer h.server.leave(&a, d)
	gone := r.Context().Done()
	if a.mode == ModeHang {
		a.wait = time.Hour * 1000
	}
	if !h.wait(w, a.wait, &a, gone) {
		return
	}
	switch {
	case a.mode == ModeReset || a.mode == ModeConnect:
		hangUp(w)
	case a.status != http.StatusOK:
		refuse(w, a)
	case stream:
		h.stream(w, &a, gone)
	default:
		h.whole(w, a)
	}
}

// wait passes the time of an answer. It returns false when there is none any
// more: the caller has left, or the target has died.
func (h *host) wait(w http.ResponseWriter, d time.Duration, a *answer, gone <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
	case <-a.life:
		hangUp(w)
	case <-a.drop:
		hangUp(w)
	}
	return false
}

func wait(d time.Duration, gone <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
		return false
	}
}

// hangUp resets the connection.
func hangUp(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if m, ok := c.(*memnet.Conn); ok {
		m.Reset()
	}
	_ = c.Close() // it is gone
}

// refusals are the bodies of the statuses that mean something by themselves.
var refusals = map[int]string{
	400: `{"error":{"message":"The drill says so.","type":"invalid_request_error","code":"invalid_value"}}`,
	401: `{"error":{"message":"The drill says so.","type":"invalid_request_error","code":"invalid_api_key"}}`,
	429: `{"error":{"message":"The drill says so.","type":"requests","code":"rate_limit_exceeded"}}`,
}

const refusal = `{"error":{"message":"The drill says so.","type":"server_error","code":null}}`

func refuse(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(a.retryAfter.Seconds())))
	}
	w.WriteHeader(a.status)
	text, ok := refusals[a.status]
	if !ok {
		text = refusal
	}
	_, _ = io.WriteString(w, text) // the router has left
}

// The text of an answer, and of one that is wrong.
const (
	rightText = "It answers."
	wrongText = "It was never asked."
)

func (h *host) whole(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	says := rightText
	if a.mode == ModeWrong {
		says = wrongText
	}
	text := fmt.Sprintf(`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3}}`, says)
	switch a.mode {
	case ModeInside:
		text = refusal
	case ModeCut:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		text = text[:len(text)/2]
	}
	_, _ = io.WriteString(w, text) // the router has left
}

const piece = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{%s},\"finish_reason\":%s}]}\n\n"

// longestPause is the longest silence of a stream: a longer one would be ended
// by the idle timer.
const longestPause = 10 * time.Second

// stream sends a first content, the end after the rest of its time.
func (h *host) stream(w http.ResponseWriter, a *answer, gone <-chan struct{}) {
	w.Header().Set("Content-Type", "text/event-stream")
	if a.mode == ModeInside {
		_, _ = io.WriteString(w, "data: "+refusal+"\n\n")
		return
	}
	first, second := `"content":"It "`, `"content":"answers."`
	if a.mode == ModeWrong {
		first, second = `"content":"`+wrongText+`"`, `"content":""`
	}
	fmt.Fprintf(w, piece, first, "null")
	_ = http.NewResponseController(w).Flush()
	h.server.content(a)
	if a.mode == ModeCut && a.rest == 0 {
		hangUp(w)
		return
	}
	for left := a.rest; left > 0; left -= longestPause {
		if !h.wait(w, min(left, longestPause), a, gone) {
			return
		}
		if a.mode == ModeCut {
			hangUp(w)
			return
		}
		fmt.Fprintf(w, piece, second, "null")
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintf(w, piece, "", `"stop"`)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
