package main

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNext(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name      string
		reply     reply
		stream    bool
		try       int
		again     bool
		from, end time.Duration
	}{
		{"whole", reply{status: 200, whole: true}, false, 0, false, 0, 0},
		{"late", reply{late: true}, true, 0, true, 375 * ms, 500 * ms},
		{"second", reply{status: 503}, false, 1, true, 750 * ms, 1000 * ms},
		{"third", reply{status: 503}, false, 2, false, 0, 0},
		{"told when", reply{status: 429, retryAfter: 2 * time.Second}, false, 0, true, 2 * time.Second, 2 * time.Second},
		{"told too much", reply{status: 429, retryAfter: time.Hour}, false, 0, true, 375 * ms, 500 * ms},
		{"told not to", reply{status: 429, should: "false"}, false, 0, false, 0, 0},
		{"told to", reply{status: 400, should: "true"}, false, 0, true, 375 * ms, 500 * ms},
		{"own mistake", reply{status: 400}, false, 0, false, 0, 0},
		{"stream cut", reply{status: 200}, true, 0, false, 0, 0},
		{"JSON cut", reply{status: 200}, false, 0, true, 375 * ms, 500 * ms},
	} {
		wait, again := next(c.reply, c.stream, c.try)
		if again != c.again || wait < c.from || wait > c.end {
			t.Errorf("%s: %v after %v, want %v after %v to %v", c.name, again, wait, c.again, c.from, c.end)
		}
	}
}

func TestOffer(t *testing.T) {
	for _, load := range []float64{1, 2, 5, 10} {
		if sum := offer(critical, 200, load) + offer(interactive, 200, load) + offer(noisy, 200, load); sum < 199.9*load || sum > 200.1*load {
			t.Errorf("%gx of 200/s offers %g/s", load, sum)
		}
	}
}

// gone is a caller that has left.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestProviderServesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := newProvider(1), time.Now()
		for range 5 {
			go p.answer(gone{}, "/v1/chat/completions", "")
		}
		time.Sleep(time.Millisecond)
		var b strings.Builder
		if err := p.answer(&b, "/v1/chat/completions", `"stream":true,`); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 6*service*3/4 || took > 6*service*5/4 {
			t.Errorf("the sixth call took %v", took)
		}
		if p.wasted.Load() != 5 || strings.Count(b.String(), contentMark) != chunks {
			t.Errorf("wasted %d, answer %q", p.wasted.Load(), b.String())
		}
	})
}

func TestProviderRefusalCosts(t *testing.T) {
	p := newProvider(1)
	p.waiting.Store(p.queue)
	var b strings.Builder
	if err := p.answer(&b, "/v1/chat/completions", ""); err != nil || !strings.HasPrefix(b.String(), "HTTP/1.1 503") {
		t.Errorf("%v, %q", err, b.String())
	}
	if owed := p.owed(); owed != refusalCost {
		t.Errorf("a refusal costs %v", owed)
	}
	if p.owed() != 0 {
		t.Error("a debt is paid twice")
	}
}
