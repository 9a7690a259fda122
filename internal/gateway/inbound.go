package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"hash/maphash"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/learn"
	"github.com/hourthree/hourthree/internal/wire"
	"github.com/hourthree/hourthree/internal/workload"
)

const (
	// BaseLease is what every request takes of the memory budget besides its
	// body: goroutines, buffers of both connections, headers, one read block of
	// the answer. An open stream was measured at 60 to 70 KB (bench/speed, memory):
	// with less, a ledger full of small requests would be more than the machine has.
	BaseLease = 64 << 10
	// bytesPerToken estimates prompt tokens from bytes until the answer tells
	// the real number (algorithm notes, section 7).
	bytesPerToken = 4
)

// requestID echoes a sane caller's id or makes one.
func requestID(h http.Header) string {
	if id := first(h, "X-Request-Id"); id != "" && len(id) <= 128 && printable(id) {
		return id
	}
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req_" + hex.EncodeToString(b[:])
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// apiKey finds the key in whichever of the three places the client uses.
func apiKey(h http.Header) string {
	if v := first(h, "Authorization"); v != "" {
		if scheme, key, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "bearer") {
			return strings.TrimSpace(key)
		}
	}
	if v := first(h, "X-Api-Key"); v != "" {
		return v
	}
	return first(h, "Api-Key")
}

// inboundAttempt is the caller's own retry count: 0 for a first try.
// x-envoy-attempt-count counts from one.
func inboundAttempt(h http.Header) int {
	if n := count(first(h, "X-Stainless-Retry-Count")); n > 0 {
		return min(n, 1000)
	}
	return min(max(0, count(first(h, "X-Envoy-Attempt-Count"))-1), 1000)
}

// first is h.Get for a name that is written as net/http writes it.
func first(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// count reads a number; what is none counts as 0.
func count(v string) int {
	if v == "" { // nearly always
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 0
	}
	return n
}

// deadlineHeaders tell a caller's patience, each in its own unit.
var deadlineHeaders = []struct {
	name string
	unit time.Duration
}{
	{"Hourthree-Deadline-Ms", time.Millisecond},
	{"X-Stainless-Timeout", time.Second},
	{"X-Stainless-Read-Timeout", time.Second},
	{"X-Server-Timeout", time.Second},
	{"X-Envoy-Expected-Rq-Timeout-Ms", time.Millisecond},
}

// callerDeadline is the shortest patience the caller states. Values that are
// not positive finite numbers are ignored.
func callerDeadline(h http.Header) (shortest time.Duration, ok bool) {
	note := func(d time.Duration) {
		if d > 0 && (!ok || d < shortest) {
			shortest, ok = d, true
		}
	}
	for _, k := range deadlineHeaders {
		v := first(h, k.name)
		if v == "" {
			continue
		}
		f, err := strconv.ParseFloat(v, 64)
		if err == nil && f > 0 && f < math.MaxInt64/float64(k.unit) {
			note(time.Duration(f * float64(k.unit)))
		}
	}
	if d, good := grpcTimeout(first(h, "Grpc-Timeout")); good {
		note(d)
	}
	return shortest, ok
}

// grpcTimeout reads gRPC's form: at most eight digits and a unit.
func grpcTimeout(v string) (time.Duration, bool) {
	if len(v) < 2 || len(v) > 9 {
		return 0, false
	}
	units := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}
	unit, known := units[v[len(v)-1]]
	n, err := strconv.ParseUint(v[:len(v)-1], 10, 32)
	if !known || err != nil {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

func isJSON(h http.Header) bool {
	mt := wire.MediaType(first(h, "Content-Type"))
	return mt == "application/json" || strings.HasSuffix(mt, "+json")
}

// estimateTokens guesses the prompt's tokens from its size.
func estimateTokens(bytes int64) int64 { return max(0, bytes) / bytesPerToken }

// classOf is the latency class: whether first content or the whole answer is
// waited for, and the size of the prompt.
func classOf(env wire.Envelope, bytes int) learn.Class {
	mode := learn.Unary
	if env.Stream {
		mode = learn.Stream
	}
	return learn.ClassOf(mode, int(estimateTokens(int64(bytes))))
}

// quote shows a caller's own string in an error, bounded and escaped.
func quote(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	return strconv.QuoteToASCII(s)
}

// callerSeed makes hashes of callers unguessable: nobody can choose a key that
// shares its place in line with another caller's.
var callerSeed = maphash.MakeSeed()

// caller tells apart those who share the open workload: by their key, or by
// their address where they show none. It is 0 for a workload of its own.
func (x *inbound) caller() uint64 {
	if x.workload.Name() != workload.Open {
		return 0
	}
	who := apiKey(x.r.Header)
	if who == "" {
		who = x.r.RemoteAddr
		if host, _, err := net.SplitHostPort(who); err == nil {
			who = host
		}
	}
	return max(1, maphash.String(callerSeed, who))
}
