package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// recovery is how long after an outage the small workload's losses are still
// that outage's: the longest cool-down and the ramp of conf.
const recovery = 10 * time.Second

// traffic is everything that clients do. The schedule's goroutine alone calls
// begin and wellBehaved.
type traffic struct {
	ctx     context.Context // of the clients: its end ends them
	router  *router
	up      *upstreams
	client  *http.Client
	crowd   crowd
	names   atomic.Int64 // model names made up so far
	outages atomic.Int64 // begun so far
	phase   string
	well    time.Time // since when the upstreams are healthy, zero for not

	mu      sync.Mutex
	results map[string]map[string]int // by kind and outcome
	small   counts
	late    float64 // seconds into health of its last loss that is an outage's
	losses  []loss  // the first of the small workload
}

// loss is a request of the small workload that was not served.
type loss struct {
	Phase   string  `json:"phase"`
	Into    float64 `json:"seconds_into_health"`
	Took    float64 `json:"seconds"`
	Outcome string  `json:"outcome"`
	Answer  string  `json:"answer,omitempty"`
}

// counts are outcomes of the small workload while the upstreams were healthy.
type counts struct{ sent, good int }

func newTraffic(r *router, up *upstreams) *traffic {
	return &traffic{
		router: r, up: up, crowd: crowd{slots: make(chan struct{}, atOnce)}, results: map[string]map[string]int{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50, IdleConnTimeout: 2 * time.Second, DisableCompression: true}},
	}
}

func (t *traffic) count(kind, outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.results[kind] == nil {
		t.results[kind] = map[string]int{}
	}
	t.results[kind][outcome]++
}

// begin starts one client; seed decides the rest of what it does.
func (t *traffic) begin(k kind, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, uint64(k)))
	if !t.crowd.enter(func() { t.count(kindNames[k], t.play(k, rnd)) }) {
		t.count(kindNames[k], "not sent")
	}
}

// play is one client from beginning to end; it returns the outcome.
func (t *traffic) play(k kind, rnd *rand.Rand) string {
	ctx := t.ctx
	switch k {
	case unary, streamed:
		return t.exchange(ctx, keyGreedy, question{"m", k == streamed}, size(rnd, 64<<10), rnd)
	case large:
		return t.exchange(ctx, keyGreedy, question{"m", rnd.IntN(2) == 0}, size(rnd, 10<<20), rnd)
	case huge:
		ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
		defer cancel()
		key := []string{keyGreedy, keyBulk}[rnd.IntN(2)]
		return t.exchange(ctx, key, question{[]string{modelMute, modelQuiet}[rnd.IntN(2)], true}, 10<<20, rnd)
	case queued:
		return t.exchange(ctx, keyGreedy, question{"narrow", false}, size(rnd, 16<<10), rnd)
	case leaver:
		return t.leave(rnd)
	case slowReader:
		return t.readSlowly(rnd)
	case deaf:
		return t.raw(keyMute, modelFlood, 0, 20*time.Second)
	case unsent:
		return t.raw(keyGreedy, "m", 1000+rnd.IntN(9<<20), time.Duration(1+rnd.IntN(20))*time.Second)
	case muteStream, quietOne:
		model := modelMute
		if k == quietOne {
			model = modelQuiet
		}
		stay := 12 * time.Second
		if rnd.IntN(50) == 0 {
			stay *= 2 // until the router ends it
		}
		ctx, cancel := context.WithTimeout(ctx, stay)
		defer cancel()
		return t.exchange(ctx, keyMute, question{model, true}, 2<<10, rnd)
	case repeating, equalBody:
		return t.repeat(k == repeating, rnd)
	case wrongKey:
		return t.exchange(ctx, fmt.Sprint("no-key-", rnd.Uint64()), question{"m", false}, size(rnd, 1<<20), rnd)
	case wrongJSON:
		return t.send(t.ask(ctx, keyGreedy, text{head: `{"model":"m","messages":[`}, rnd.IntN(2) == 0))
	case wrongModel:
		return t.exchange(ctx, keyGreedy, question{fmt.Sprint(madeUp, t.names.Add(1)), false}, 2<<10, rnd)
	case upload, uploadHalf:
		return t.upload(k == uploadHalf, rnd)
	}
	return "unknown"
}

// madeUp begins every model name that nobody has configured.
const madeUp = "soak-made-up-"

// size draws from 2 KB to most, small ones more often.
func size(rnd *rand.Rand, most int) int {
	f := rnd.Float64()
	return 2<<10 + int(f*f*f*float64(most-2<<10))
}

// filling is what bodies are made of.
var filling = bytes.Repeat([]byte("soak "), 10<<20/5+1)

// text is a request's body. What fills it is not copied.
type text struct {
	head string
	fill int // bytes of filling
	tail string
}

func (x text) reader() io.Reader {
	return io.MultiReader(strings.NewReader(x.head), bytes.NewReader(filling[:x.fill]), strings.NewReader(x.tail))
}

func (x text) len() int64 { return int64(len(x.head) + x.fill + len(x.tail)) }

// body is a question of about n bytes; mark tells it from others.
func body(q question, n int, mark uint64) text {
	head := fmt.Sprintf(`{"model":"%s","stream":%v,"messages":[{"role":"user","content":"%d `, q.model, q.stream, mark)
	return text{head, min(n, len(filling)), `"}]}`}
}

// exchange asks and reads the whole answer.
func (t *traffic) exchange(ctx context.Context, key string, q question, n int, rnd *rand.Rand) string {
	return t.send(t.ask(ctx, key, body(q, n, rnd.Uint64()), rnd.IntN(3) == 0))
}

// request is a call with its body; length -1 sends it in chunks.
func (t *traffic) request(ctx context.Context, key, path string, body io.Reader, length int64) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+t.router.listen+path, body)
	if err != nil {
		panic(err) // the address is the soak's own
	}
	r.ContentLength = length
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	return r
}

// ask sends a question, announced or in chunks.
func (t *traffic) ask(ctx context.Context, key string, x text, chunked bool) *http.Request {
	length := x.len()
	if chunked {
		length = -1
	}
	return t.request(ctx, key, "/v1/chat/completions", x.reader(), length)
}

// send sends a request and reads the whole answer.
func (t *traffic) send(r *http.Request) string {
	ctx := r.Context()
	resp, err := t.client.Do(r)
	if err != nil {
		return failed(ctx)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Sprint(resp.StatusCode, " ", failed(ctx))
	}
	return said(resp)
}

// said is the status and, of a failure, the router's class.
func said(resp *http.Response) string {
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Hourthree-Class")))
}

// failed says whether the client left or was left.
func failed(ctx context.Context) string {
	if ctx.Err() != nil {
		return "left"
	}
	return "cut off"
}

// leave goes away at a moment that falls into any phase of a request.
func (t *traffic) leave(rnd *rand.Rand) string {
	most := []int{3, 30, 300, 1500}[rnd.IntN(4)]
	ctx, cancel := context.WithTimeout(t.ctx, time.Duration(1+rnd.IntN(most*1000))*time.Microsecond)
	defer cancel()
	q := question{[]string{"m", "narrow", modelQuiet}[rnd.IntN(3)], rnd.IntN(3) > 0}
	return t.exchange(ctx, keyGreedy, q, size(rnd, 1<<20), rnd)
}

// readSlowly takes a few kilobytes of a long answer every now and then.
func (t *traffic) readSlowly(rnd *rand.Rand) string {
	ctx, cancel := context.WithTimeout(t.ctx, time.Duration(2+rnd.IntN(8))*time.Second)
	defer cancel()
	resp, err := t.client.Do(t.ask(ctx, keyMute, body(question{modelFlood, true}, 2<<10, rnd.Uint64()), false))
	if err != nil {
		return failed(ctx)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return said(resp)
	}
	p := make([]byte, 4<<10)
	for {
		if _, err := io.ReadFull(resp.Body, p); err == io.EOF || err == io.ErrUnexpectedEOF {
			return said(resp)
		} else if err != nil {
			return fmt.Sprint(resp.StatusCode, " ", failed(ctx))
		}
		if !rest(ctx, 50*time.Millisecond) {
			return fmt.Sprint(resp.StatusCode, " left")
		}
	}
}

// raw speaks to the router without a client on the connection. With missing
// bytes it announces that many and sends none; else it asks a whole question
// and reads nothing until it leaves.
func (t *traffic) raw(key, model string, missing int, stay time.Duration) string {
	c, err := net.DialTimeout("tcp", t.router.listen, 5*time.Second)
	if err != nil {
		return "no connection"
	}
	defer c.Close()
	stop := context.AfterFunc(t.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = c.SetDeadline(time.Now().Add(stay)) // as long as it is open
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	question := fmt.Sprintf(`{"model":"%s","stream":true,"messages":[]}`, model)
	length := len(question)
	if missing > 0 {
		question, length = `{"model":`, missing
	}
	if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: soak\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, length, question); err != nil {
		return "cut off"
	}
	if missing == 0 {
		rest(t.ctx, stay)
		return "left"
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		var slow net.Error
		if errors.As(err, &slow) && slow.Timeout() {
			return "left"
		}
		return "cut off"
	}
	resp.Body.Close()
	return said(resp)
}

// repeat is a client's retry loop without any patience.
func (t *traffic) repeat(numbered bool, rnd *rand.Rand) string {
	b, outcome := body(question{"m", rnd.IntN(2) == 0}, size(rnd, 32<<10), rnd.Uint64()), ""
	for i := range 6 {
		r := t.ask(t.ctx, keyGreedy, b, false)
		if numbered && i > 0 {
			r.Header.Set("X-Stainless-Retry-Count", fmt.Sprint(i))
		}
		outcome = t.send(r)
		if outcome == "200" || !rest(t.ctx, 100*time.Millisecond) {
			break
		}
	}
	return outcome
}

// upload sends a file through; half leaves while it is being sent.
func (t *traffic) upload(half bool, rnd *rand.Rand) string {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	n, length := 2<<20+rnd.IntN(6<<20), int64(-1)
	var file io.Reader = bytes.NewReader(filling[:n])
	if half {
		file = io.MultiReader(file, leaving(cancel))
	} else if rnd.IntN(2) == 0 {
		length = int64(n)
	}
	r := t.request(ctx, keyGreedy, "/v1/files", file, length)
	r.Header.Set("Content-Type", "application/octet-stream")
	return t.send(r)
}

// leaving is a reader at whose first read the client goes away.
type leaving func()

func (l leaving) Read([]byte) (int, error) {
	l()
	return 0, context.Canceled
}

// wellBehaved is one request of the small workload, which never repeats one.
func (t *traffic) wellBehaved(seed uint64) {
	rnd, start := rand.New(rand.NewPCG(seed, 0)), time.Now()
	l, well, outage := loss{Phase: t.phase}, !t.well.IsZero(), t.outages.Load()
	if well {
		l.Into = start.Sub(t.well).Seconds()
	}
	ok := t.crowd.enter(func() {
		ctx, cancel := context.WithTimeout(t.ctx, 30*time.Second)
		defer cancel()
		l.Outcome, l.Answer = t.whole(ctx, rnd)
		if t.ctx.Err() != nil { // the run is over
			return
		}
		l.Took = time.Since(start).Seconds()
		t.count("small, "+l.Phase, l.Outcome)
		if well && t.outages.Load() == outage { // else the next one may have met it
			t.note(l)
		}
	})
	if !ok {
		t.count("small, "+l.Phase, "not sent")
	}
}

// whole asks as the small workload does and looks at the answer: "200" is one
// that was whole.
func (t *traffic) whole(ctx context.Context, rnd *rand.Rand) (outcome, answer string) {
	streams := rnd.IntN(2) == 0
	resp, err := t.client.Do(t.ask(ctx, keySmall, body(question{"m", streams}, 2<<10, rnd.Uint64()), false))
	if err != nil {
		return failed(ctx), err.Error()
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Sprint(resp.StatusCode, " ", failed(ctx)), string(got[max(0, len(got)-300):])
	case resp.StatusCode != http.StatusOK:
		return said(resp), string(got)
	case streams && !bytes.Contains(got, []byte("data: [DONE]")), !streams && !bytes.Contains(got, []byte("soak answer")):
		return "200 not whole", string(got[max(0, len(got)-300):])
	}
	return "200", ""
}

// lossesKept bounds what is remembered of them.
const lossesKept = 200

func (t *traffic) note(l loss) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.Into < recovery.Seconds() {
		if l.Outcome != "200" {
			t.late = max(t.late, l.Into)
		}
		return
	}
	t.small.sent++
	if l.Outcome == "200" {
		t.small.good++
	} else if len(t.losses) < lossesKept {
		t.losses = append(t.losses, l)
	}
}
