package simulate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hourthree/hourthree/internal/simulate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func send(ctx context.Context, tr http.RoundTripper, stream string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://simulated.invalid/v1/chat/completions", strings.NewReader(`{"model":"m","stream":`+stream+`}`))
	if err != nil {
		return nil, err
	}
	return tr.RoundTrip(r)
}

func read(resp *http.Response, err error) (status int, body string, _ error) {
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), errors.Join(err, resp.Body.Close())
}

// TestFailures: each mode is what its name says, whole and streamed.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		mode, stream string
		status       int
		has, hasNot  string
		err          error
		took         time.Duration
	}{
		{"", "false", 200, "chat.completion", "error", nil, 1400 * time.Millisecond},
		{"none", "true", 200, "[DONE]", "error", nil, 1400 * time.Millisecond},
		{"hang", "false", 0, "", "", context.DeadlineExceeded, time.Hour},
		{"hang", "true", 0, "", "", context.DeadlineExceeded, time.Hour},
		{"reset", "false", 0, "", "", syscall.ECONNRESET, 0},
		{"500", "true", 500, "server_error", "choices", nil, 0},
		{"503", "false", 503, "server_error", "choices", nil, 0},
		{"429", "false", 429, "rate_limit_exceeded", "choices", nil, 0},
		{"error-in-200", "false", 200, `{"error":`, "choices", nil, 1400 * time.Millisecond},
		{"error-in-200", "true", 200, `data: {"error":`, "choices", nil, time.Second},
		{"truncate", "false", 200, "choices", "usage", io.ErrUnexpectedEOF, 1400 * time.Millisecond},
		{"truncate", "true", 200, "answer", "[DONE]", io.ErrUnexpectedEOF, 1100 * time.Millisecond},
		{"slow", "true", 200, "[DONE]", "error", nil, 100400 * time.Millisecond},
	} {
		t.Run(c.mode+" "+c.stream, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := simulate.New(simulate.Options{FirstContent: time.Second, PerToken: 100 * time.Millisecond, Tokens: 5, Mode: c.mode, Share: 1, RetryAfter: 7 * time.Second}, half)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start := time.Now()
				resp, err := send(ctx, tr, c.stream)
				if err == nil && (resp.Header.Get("Retry-After") == "7") != (c.mode == "429") {
					t.Error(resp.Header)
				}
				status, body, err := read(resp, err)
				if status != c.status || !errors.Is(err, c.err) || !strings.Contains(body, c.has) || c.hasNot != "" && strings.Contains(body, c.hasNot) {
					t.Errorf("%d %q %v", status, body, err)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// TestShareAndJitter: the random numbers decide who fails and how long it takes.
func TestShareAndJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draws := []float64{0, 0.29, 0.999999, 0.31, 0.5, 0.3}
		tr := simulate.New(simulate.Options{FirstContent: time.Second, Jitter: 0.5, Mode: "500", Share: 0.3}, func() float64 {
			d := draws[0]
			draws = draws[1:]
			return d
		})
		for _, want := range []struct {
			status int
			wait   time.Duration
		}{{500, 0}, {200, 1500 * time.Millisecond}, {200, time.Second}} {
			start := time.Now()
			status, _, err := read(send(t.Context(), tr, "false"))
			if took := time.Since(start); status != want.status || err != nil || (took-want.wait).Abs() > time.Millisecond {
				t.Error(status, err, took, want)
			}
		}
	})
}

// TestConcurrency: calls beyond the places get 429; a place is free again
// when its answer is closed, read or not, and when its caller gives up.
func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := simulate.New(simulate.Options{FirstContent: time.Minute, PerToken: time.Second, Tokens: 9, Concurrency: 2}, half)
		streaming, err := send(t.Context(), tr, "true")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := send(ctx, tr, "false"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		resp, err := send(t.Context(), tr, "true")
		if status, _, err := read(resp, err); status != 429 || err != nil || resp.Header.Get("Retry-After") != "1" {
			t.Fatal(status, err)
		}
		streaming.Body.Close()
		streaming.Body.Close() // frees one place only
		cancel()
		wg.Wait()
		if _, err := streaming.Body.Read(make([]byte, 1)); err == nil {
			t.Error("a closed body can be read")
		}
		var held []*http.Response
		for range 2 {
			resp, err := send(t.Context(), tr, "true")
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			held = append(held, resp)
		}
		if status, _, _ := read(send(t.Context(), tr, "true")); status != 429 {
			t.Error(status)
		}
		for _, resp := range held {
			if _, _, err := read(resp, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestRate: calls beyond the minute's number get 429 and the minute's rest.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := simulate.New(simulate.Options{RPM: 3}, half)
		statuses := func() (out []int) {
			for range 4 {
				status, _, _ := read(send(t.Context(), tr, "false"))
				out = append(out, status)
			}
			return out
		}
		if got := statuses(); got[2] != 200 || got[3] != 429 {
			t.Error(got)
		}
		time.Sleep(19500 * time.Millisecond) // virtual
		if resp, err := send(t.Context(), tr, "false"); err != nil || resp.Header.Get("Retry-After") != "41" {
			t.Error(resp, err)
		}
		time.Sleep(41 * time.Second)
		if got := statuses(); got[2] != 200 || got[3] != 429 {
			t.Error(got)
		}
	})
}

// TestLeaving: a caller that gives up in the middle of a stream is not kept.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := simulate.New(simulate.Options{FirstContent: time.Second, PerToken: time.Hour, Tokens: 100}, half)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, body, err := read(send(ctx, tr, "true"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute || !strings.Contains(body, "This") {
			t.Error(body, err, time.Since(start))
		}
	})
}
