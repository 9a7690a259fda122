package telemetry

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a pipe that nobody reads until it is released.
type stuck struct {
	release chan struct{}
	mu      sync.Mutex
	text    bytes.Buffer
}

func (s *stuck) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// TestLogNeverWaits: a log that nobody reads costs lines, not requests. It
// fails when Write waits for the pipe, or when lines vanish without a word.
func TestLogNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{release: make(chan struct{})}
		l := NewLog(out)
		line := []byte(strings.Repeat("x", 1023) + "\n")
		_, _ = l.Write(line)
		time.Sleep(time.Second) // a flush is stuck now
		for range 2000 {
			_, _ = l.Write(line)
		}
		if n := l.Dropped(); n != 2000-1024 {
			t.Errorf("%d lines dropped, want all that do not fit %d bytes", n, maxLog)
		}
		close(out.release)
		time.Sleep(time.Second)
		_, _ = l.Write([]byte("after\n"))
		time.Sleep(time.Second)
		text := out.String()
		if n := strings.Count(text, string(line)); n != 1025 {
			t.Errorf("%d lines got through", n)
		}
		if !strings.Contains(text, `"msg":"log lines dropped","component":"log","lines":976}`) || !strings.HasSuffix(text, "after\n") {
			t.Errorf("ends with %q", text[max(0, len(text)-300):])
		}
	})
}

// TestLogKeepsLinesWhole: concurrent lines come out whole, each once.
func TestLogKeepsLinesWhole(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(&out)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 500 {
				_, _ = fmt.Fprintf(l, "%d %d\n", i, j)
			}
		})
	}
	wg.Wait()
	l.Flush()
	seen := map[string]int{}
	for line := range strings.Lines(out.String()) {
		seen[line]++
	}
	if len(seen) != 4000 {
		t.Errorf("%d distinct lines", len(seen))
	}
}
