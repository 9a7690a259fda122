package telemetry

import (
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// logDelay is how long a line may wait for others to be written with it.
	logDelay = 50 * time.Millisecond
	// logBlock is how many bytes are written without further delay.
	logBlock = 64 << 10
	// maxLog bounds the lines that wait, in bytes. More are dropped: a log
	// that nobody reads must not stop the router.
	maxLog = 1 << 20
)

// Log collects whole lines and writes them together, a moment later, from a
// goroutine of its own: the request path never waits for a pipe or a disk.
// When lines come faster than they are taken, the newest are dropped, and how
// many is said as soon as there is room. It is safe for concurrent use.
type Log struct {
	out io.Writer

	mu      sync.Mutex
	pending []byte
	timer   *time.Timer
	armed   bool
	dropped int64 // since the last line that got through
	lost    int64 // in all

	writing sync.Mutex // held during a write, before mu
	spare   []byte     // guarded by writing
}

// NewLog returns a log that writes to out.
func NewLog(out io.Writer) *Log { return &Log{out: out} }

// Write takes one line with its line feed. It never fails and never waits.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending)+len(line) > maxLog {
		l.dropped++
		l.lost++
		return len(line), nil
	}
	if l.dropped > 0 {
		l.pending = appendDropped(l.pending, l.dropped)
		l.dropped = 0
	}
	l.pending = append(l.pending, line...)
	switch {
	case l.armed && len(l.pending) >= logBlock && len(l.pending)-len(line) < logBlock:
		l.timer.Reset(0)
	case l.armed:
	case l.timer == nil:
		l.timer, l.armed = time.AfterFunc(logDelay, l.Flush), true
	default:
		l.timer.Reset(logDelay)
		l.armed = true
	}
	return len(line), nil
}

func appendDropped(b []byte, n int64) []byte {
	b = append(b, `{"time":"`...)
	b = time.Now().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"WARN","msg":"log lines dropped","component":"log","lines":`...)
	return append(strconv.AppendInt(b, n, 10), '}', '\n')
}

// Flush writes what waits.
func (l *Log) Flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	lines := l.pending
	l.pending, l.armed = l.spare[:0], false
	l.mu.Unlock()
	_, _ = l.out.Write(lines) // there is nobody to tell
	l.spare = lines
	if cap(lines) > 4*logBlock {
		l.spare = nil // of a burst
	}
}

// Dropped is the number of lines that were dropped.
func (l *Log) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// Register makes that number a metric.
func (l *Log) Register(reg prometheus.Registerer) {
	reg.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "hourthree_log_lines_dropped_total", Help: "Log lines dropped because nobody took them."},
		func() float64 { return float64(l.Dropped()) },
	))
}
