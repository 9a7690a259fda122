// Package load makes requests at a fixed rate or from a fixed number of
// connections, over loopback only, and says what became of each.
package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Result is one request.
type Result struct {
	Start  time.Time
	Took   time.Duration // from when it was due, also behind a backlog
	First  time.Duration // to the first content
	OK     bool          // 200 with the whole answer
	Hidden bool          // a clean end without the whole answer
	Status int
	Gaps   []time.Duration // delays of chunks against the first one's pace
}

// Target is where requests go.
type Target struct {
	URL    string // base address, with /v1
	Key    string
	Chunks int // a whole stream's
	Limit  time.Duration
	client *http.Client
}

// New returns a target; it refuses any address but loopback.
func New(base, key string, chunks int, limit time.Duration) (*Target, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("load goes to a loopback address only, not to %s", u.Host)
	}
	tr := &http.Transport{MaxIdleConnsPerHost: 2000, MaxIdleConns: 2000, DisableCompression: true}
	return &Target{URL: base, Key: key, Chunks: chunks, Limit: limit, client: &http.Client{Transport: tr}}, nil
}

// Close drops idle connections.
func (t *Target) Close() { t.client.CloseIdleConnections() }

// Body is a chat request of about size bytes.
func Body(stream bool, size int) []byte {
	s := ""
	if stream {
		s = `"stream":true,`
	}
	return []byte(`{"model":"m",` + s + `"messages":[{"role":"user","content":"` + strings.Repeat("a", max(1, size-90)) + `"}]}`)
}

// Do makes one request that was due at due.
func (t *Target) Do(ctx context.Context, due time.Time, body []byte, stream bool) Result {
	ctx, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	r := Result{Start: due}
	defer func() { r.Took = time.Since(due) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return r
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+t.Key)
	resp, err := t.client.Do(req)
	if err != nil {
		r.Took = time.Since(due)
		return r
	}
	defer resp.Body.Close()
	r.Status = resp.StatusCode
	if !stream {
		data, err := io.ReadAll(resp.Body)
		r.First = time.Since(due)
		whole := bytes.Contains(data, []byte(`"finish_reason":"stop"`)) && bytes.Contains(data, []byte(`"completion_tokens"`))
		r.OK = err == nil && resp.StatusCode == 200 && whole
		r.Hidden = err == nil && resp.StatusCode == 200 && !whole && !bytes.Contains(data, []byte(`"error"`))
	} else {
		t.readStream(resp, due, &r)
	}
	r.Took = time.Since(due)
	return r
}

func (t *Target) readStream(resp *http.Response, due time.Time, r *Result) {
	in := bufio.NewReaderSize(resp.Body, 4096)
	chunks, done, failed := 0, false, false
	var err error
	for err == nil {
		var line []byte
		line, err = in.ReadSlice('\n')
		switch {
		case bytes.Contains(line, []byte(`"error":`)):
			failed = true
		case bytes.Contains(line, []byte(`"content":"`)):
			if chunks++; chunks == 1 {
				r.First = time.Since(due)
			}
			if r.Gaps != nil {
				r.Gaps = append(r.Gaps, time.Since(due))
			}
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			done = true
		}
	}
	clean := errors.Is(err, io.EOF)
	r.OK = resp.StatusCode == 200 && clean && done && chunks == t.Chunks && !failed
	r.Hidden = resp.StatusCode == 200 && clean && !failed && chunks < t.Chunks
}

// Open makes requests at rate a second for as long as d, due at fixed times
// whatever became of those before, every second one a stream if mixed.
func (t *Target) Open(ctx context.Context, rate int, d time.Duration, kind func(i int) (body []byte, stream bool)) []Result {
	n := int(d.Seconds() * float64(rate))
	out := make([]Result, n)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if wait := time.Until(due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				wg.Wait()
				return out[:i]
			}
		}
		body, stream := kind(i)
		wg.Go(func() { out[i] = t.Do(ctx, due, body, stream) })
	}
	wg.Wait()
	return out
}

// Closed keeps conns requests under way for as long as d.
func (t *Target) Closed(ctx context.Context, conns int, d time.Duration, body []byte) []Result {
	end := time.Now().Add(d)
	var mu sync.Mutex
	var out []Result
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			var own []Result
			for time.Now().Before(end) && ctx.Err() == nil {
				own = append(own, t.Do(ctx, time.Now(), body, false))
			}
			mu.Lock()
			out = append(out, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return out
}

// Quantile of a set of durations; 0 when there are none.
func Quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Clone(d)
	slices.Sort(s)
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

// Median of a set of numbers; 0 when there are none.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Clone(x)
	slices.Sort(s)
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
