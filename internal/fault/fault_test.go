package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var messages = regexp.MustCompile(`"(message|detail|msg|error)":\s*"([^"\\]|\\.)*"`)

// proseRows are the cases whose class, scope or wait stands in prose alone.
var proseRows = map[string]bool{
	"azure_apim-084": true, "azure_apim-085": true, "azure_openai-054": true, "azure_openai-055": true, "foundry_models-051": true,
	"github_models-052": true, "openai-025": true, "openai-036": true, "moonshot-270": true, "sglang-301": true, "tgi-319": true, "proxy_envoy-331": true,
}

// TestProseDoesNotDecide: with every message replaced by noise, verdicts stay
// what they were, except for the rows that say they read prose. Dropping the
// "code" condition of any row and matching its message instead fails here.
func TestProseDoesNotDecide(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := func(s string) string {
		return messages.ReplaceAllStringFunc(s, func(m string) string {
			key, _, _ := strings.Cut(m, ":")
			return key + ":" + strconv.Quote(fmt.Sprintf("xq%d zv", rnd.Uint64()))
		})
	}
	for _, c := range load(t) {
		if c.Status == 200 && len(c.Body) == 0 && decidedByRelay(c) || proseRows[c.ID] {
			continue
		}
		before, after := c.judge(t, same), c.judge(t, noise)
		if before != after {
			t.Errorf("%s: %+v became %+v", c.ID, before, after)
		}
	}
}

// TestOutward: whatever an upstream said, and whoever asks, a capacity
// failure never leaves as a server fault, no refusal invites an immediate
// return, and our own credential's failure never looks like the caller's.
func TestOutward(t *testing.T) {
	clients := DefaultClients()
	agents := []string{
		"OpenAI/JS 7.59.0", "AsyncOpenAI/Python 3.3.1", "OpenAI/Go 3.99.0", "Anthropic/JS 1.14.0", "langchainjs-openai/1.0.0 (node)",
		"ai/7.0.173 ai-sdk/provider-utils", "ai-sdk-openai/4.0.118", "Groq/JS 1.6.0", "Together/JS 0.52.0", "cohere-ai/8.1.0", "google-genai-sdk/3.3.0",
		"aws-sdk-go-v2/1.48.0", "azsdk-go-azopenai/v0.7.2 (go1.26)", "claude-cli/2.1.332 (external, sdk-cli)", "codex_exec/0.171.0", "curl/8", "",
	}
	for _, c := range load(t) {
		v := c.judge(t, same)
		for _, agent := range agents {
			for _, rnd := range []float64{0, 0.5, 0.999} {
				a := clients.Advise(Refusal{Class: v.Class, Wait: v.Wait, Status: c.Status}, agent, rnd)
				switch {
				case v.Class == Capacity && a.Status != 429:
					t.Fatalf("%s to %q: capacity left as %d", c.ID, agent, a.Status)
				case v.Class == Credential && a.Status == 401:
					t.Fatalf("%s to %q: our credential left as 401", c.ID, agent)
				case a.RetryAfter != 0 && a.RetryAfter < time.Second, a.RetryAfter%time.Second != 0, a.RetryAfter > 74*time.Second:
					t.Fatalf("%s to %q: Retry-After %v", c.ID, agent, a.RetryAfter)
				case a.Type == "" || a.Code == "" || a.Status < 400:
					t.Fatalf("%s to %q: %+v", c.ID, agent, a)
				}
			}
		}
	}
}

// TestStopShapes: the shape each client obeys, as measured.
func TestStopShapes(t *testing.T) {
	clients := DefaultClients()
	tests := []struct {
		agent  string
		class  Class
		status int
		least  time.Duration
		most   time.Duration
	}{
		{"OpenAI/JS 7.59.0", Outage, 503, time.Second, time.Minute},
		{"OpenAI/JS 7.59.0", Capacity, 429, time.Second, time.Minute},
		{"langchainjs-openai/1.0.0", Outage, 429, 61 * time.Second, 75 * time.Second},
		{"langchainjs-openai/1.0.0 OpenAI/JS 7", Deadline, 429, 61 * time.Second, 75 * time.Second},
		{"azsdk-go-azopenai/v0.7.2", Outage, 429, 61 * time.Second, 75 * time.Second},
		{"ai/7.0.173", Capacity, 429, time.Second, 59 * time.Second},
		{"codex_exec/0.171.0", Outage, 429, 0, 0},
		{"cohere-ai/8.1.0", Outage, 429, 50 * time.Second, time.Minute},
		{"ai/7.0.173", Account, 429, 38 * time.Second, 59 * time.Second},
		{"curl/8", Deadline, 504, 0, 0},
		{"curl/8", Credential, 502, 0, 0},
		{"curl/8", Account, 502, 0, 0},
	}
	for _, tt := range tests {
		for _, rnd := range []float64{0, 0.5, 0.999} {
			a := clients.Advise(Refusal{Class: tt.class, Wait: 45 * time.Second}, tt.agent, rnd)
			if a.Status != tt.status || a.RetryAfter < tt.least || a.RetryAfter > tt.most {
				t.Errorf("%s %v: %d, %v; want %d, %v to %v", tt.agent, tt.class, a.Status, a.RetryAfter, tt.status, tt.least, tt.most)
			}
		}
	}
}

// A credential that is accepted for other calls is asked again in moments: the
// caller is told when. Beyond that an operator must act, and it is not.
func TestDoubtedCredentialHasAWait(t *testing.T) {
	clients := DefaultClients()
	for wait, most := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: 2 * time.Second, 4 * time.Second: 5 * time.Second, 5 * time.Second: 6 * time.Second, 45 * time.Second: 0,
	} {
		a := clients.Advise(Refusal{Class: Credential, Wait: wait}, "OpenAI/Python 1.99.1", 0.5)
		if a.Status != 502 || a.RetryAfter > most || most > 0 && a.RetryAfter < time.Second {
			t.Errorf("wait %v: %d, Retry-After %v, want at most %v", wait, a.Status, a.RetryAfter, most)
		}
	}
	if a := clients.Advise(Refusal{Class: Account, Wait: time.Second}, "curl/8", 0.5); a.RetryAfter != 0 {
		t.Errorf("an empty account: Retry-After %v", a.RetryAfter)
	}
}

// parseWait reads a wait as judge does for a status that limits explain.
func parseWait(h http.Header, body []byte, now time.Time) (time.Duration, bool) {
	if d, ok := statedWait(h, parseError(body), now); ok {
		return d, true
	}
	return resetWait(h, now)
}

func TestParseWait(t *testing.T) {
	at := now.Add(30 * time.Second)
	tests := []struct {
		name    string
		headers map[string]string
		body    string
		want    time.Duration
		ok      bool
	}{
		{"seconds", map[string]string{"Retry-After": "7"}, "", 7 * time.Second, true},
		{"fraction", map[string]string{"Retry-After": "1.5"}, "", 1500 * time.Millisecond, true},
		{"date", map[string]string{"Retry-After": at.Format(http.TimeFormat)}, "", 30 * time.Second, true},
		{"date by the upstream's clock", map[string]string{"Retry-After": at.Format(http.TimeFormat), "Date": now.Add(20 * time.Second).Format(http.TimeFormat)}, "", 10 * time.Second, true},
		{"past date", map[string]string{"Retry-After": now.Add(-time.Hour).Format(http.TimeFormat)}, "", 0, true},
		{"none", nil, "", 0, false},
		{"milliseconds first", map[string]string{"Retry-After-Ms": "250", "Retry-After": "1"}, "", 250 * time.Millisecond, true},
		{"azure milliseconds", map[string]string{"X-Ms-Retry-After-Ms": "40"}, "", 40 * time.Millisecond, true},
		{"aws", map[string]string{"X-Amz-Retry-After": "1500"}, "", 1500 * time.Millisecond, true},
		{"azure tokens reset", map[string]string{"X-Ratelimit-Reset-Tokens": "55"}, "", 55 * time.Second, true},
		{"go duration", map[string]string{"X-Ratelimit-Reset-Requests": "2m30.5s"}, "", 150500 * time.Millisecond, true},
		{"exhausted dimension", map[string]string{"X-Ratelimit-Reset-Requests": "120ms", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Remaining-Tokens": "29000"}, "", 120 * time.Millisecond, true},
		{"epoch milliseconds", map[string]string{"X-Ratelimit-Reset": strconv.FormatInt(now.Add(9*time.Second).UnixMilli(), 10)}, "", 9 * time.Second, true},
		{"anthropic", map[string]string{"Anthropic-Ratelimit-Tokens-Reset": now.Add(time.Minute).Format(time.RFC3339)}, "", time.Minute, true},
		{"google", nil, `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"46s"}]}}`, 46 * time.Second, true},
		{"resets_at", nil, `{"error":{"resets_at":"2026-09-21T00:10:00Z"}}`, 10 * time.Minute, true},
		{"negative", map[string]string{"Retry-After": "-5"}, "", 0, false},
		{"not a number", map[string]string{"Retry-After": "NaN"}, "", 0, false},
		{"infinite", map[string]string{"Retry-After": "Inf"}, "", 0, false},
		{"junk", map[string]string{"Retry-After": "0.5junk"}, "", 0, false},
		{"huge", map[string]string{"Retry-After": "1e40"}, "", MaxWait, true},
		{"a million digits", map[string]string{"Retry-After": strings.Repeat("9", 1000000)}, "", 0, false},
		{"year 9999", map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, "", MaxWait, true},
		{"resets_at as text", nil, `{"error":{"metadata":{"resets_at":"` + strconv.FormatInt(now.Add(time.Hour).Unix(), 10) + `"}}}`, time.Hour, true},
		{"nothing exhausted", map[string]string{"X-Ratelimit-Reset-Requests": "120ms", "X-Ratelimit-Remaining-Requests": "9", "X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Remaining-Tokens": "29000"}, "", 120 * time.Millisecond, true},
		{"both exhausted", map[string]string{"X-Ratelimit-Reset-Requests": "120ms", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Tokens": "6m0s", "X-Ratelimit-Remaining-Tokens": "0"}, "", 6 * time.Minute, true},
		{"two values", map[string]string{"Retry-After": "120, 60"}, "", 0, false},
		{"year 0000", map[string]string{"Retry-After": "Sat, 01 Jan 0000 00:00:00 GMT"}, "", 0, true},
		{"64 KiB", map[string]string{"X-Ratelimit-Reset-Tokens": strings.Repeat("1h", 32<<10)}, "", 0, false},
		{"prose is not read", nil, `{"error":{"message":"retry after 43 seconds"}}`, 0, false},
	}
	for _, tt := range tests {
		h := http.Header{}
		for k, v := range tt.headers {
			h.Set(k, v)
		}
		if got, ok := parseWait(h, []byte(tt.body), now); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// TestWaitInRange is I22: whatever an upstream sends, a wait lies in range.
// It fails when clamp is taken out of until, or number lets NaN through.
func TestWaitInRange(t *testing.T) {
	names := []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After", "X-Ratelimit-Reset", "X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens", "Anthropic-Ratelimit-Requests-Reset", "Date"}
	value := rapid.OneOf(
		rapid.String(), rapid.Map(rapid.Float64(), func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }),
		rapid.Map(rapid.Int64(), func(i int64) string { return strconv.FormatInt(i, 10) }),
		rapid.Map(rapid.Int64Range(-62135596800, 253402300799), func(s int64) string { return time.Unix(s, 0).UTC().Format(http.TimeFormat) }),
		rapid.Map(rapid.Int64Range(-62135596800, 253402300799), func(s int64) string { return time.Unix(s, 0).UTC().Format(time.RFC3339) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		h := http.Header{}
		for _, n := range names {
			if rapid.Bool().Draw(t, "has") {
				h.Set(n, value.Draw(t, n))
			}
		}
		body, _ := json.Marshal(map[string]any{"error": map[string]any{"resets_at": value.Draw(t, "resets"), "message": rapid.String().Draw(t, "m")}})
		if d, ok := parseWait(h, body, now); d < 0 || d > MaxWait || !ok && d != 0 {
			t.Fatalf("%v %v", d, ok)
		}
		a := DefaultClients().Advise(Refusal{Class: Capacity, Wait: time.Duration(rapid.Int64().Draw(t, "wait"))}, "x", rapid.Float64Range(0, 0.999).Draw(t, "rnd"))
		if a.RetryAfter < time.Second || a.RetryAfter > time.Minute {
			t.Fatalf("Retry-After %v", a.RetryAfter)
		}
	})
}

func FuzzParseWait(f *testing.F) {
	for _, s := range []string{"7", "1.5", "Fri, 31 Dec 9999 23:59:59 GMT", "", "6m0s", "-1", "NaN", "0x10", "1e309", "0.5junk", "2026-11-30T00:00:00Z", "1790000000000"} {
		f.Add(s, s, `{"error":{"metadata":{"resets_at":"`+s+`"}}}`)
	}
	f.Fuzz(func(t *testing.T, after, reset, body string) {
		h := http.Header{"Retry-After": {after}, "X-Ratelimit-Reset-Tokens": {reset}}
		d, ok := parseWait(h, []byte(body), now)
		if d < 0 || d > MaxWait || !ok && d != 0 || math.IsNaN(d.Seconds()) {
			t.Fatalf("%v %v", d, ok)
		}
		table, _ := TableFor("openai-compatible")
		if v := table.Classify(Answer{Status: 503, Header: h, Body: []byte(body), Now: now}); v.Class == OK {
			t.Fatal("a 503 became a success")
		}
	})
}

// TestGarbageBodies: no body decides a panic or a success.
func TestGarbageBodies(t *testing.T) {
	for kind := range tables {
		table, _ := TableFor(kind)
		for _, body := range []string{"", "null", "[]", `"x"`, "0", "<html>", "{", `{"error":null}`, `{"error":[]}`, `{"error":{"code":[1]}}`, `[{"error":{"code":429}}]`, strings.Repeat("[", 100000), "\xff\xfe"} {
			for status := 300; status < 600; status++ {
				v := table.Classify(Answer{Status: status, Body: []byte(body), Now: now})
				if v.Class == OK || v.Reason == "" {
					t.Fatalf("%s %d %.20q: %+v", kind, status, body, v)
				}
				if status >= 500 && status != 501 && status != 505 && status != 529 && status != 503 && v.Class != Outage {
					t.Fatalf("%s %d %.20q: %v, want outage", kind, status, body, v.Class)
				}
			}
		}
	}
}

func TestTransport(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: err} }
	tests := []struct {
		name   string
		err    error
		phase  Phase
		class  Class
		scope  Scope
		reason string
		breaks bool
		again  bool
	}{
		{"refused", dial(syscall.ECONNREFUSED), PhaseHeaders, Outage, ScopeTarget, "connect", true, true},
		{"dial timeout", dial(os.ErrDeadlineExceeded), PhaseHeaders, Outage, ScopeRegion, "connect", true, false},
		{"own dial timeout", ErrConnectTimeout, PhaseConnect, Outage, ScopeRegion, "connect", true, false},
		{"no such name", dial(&net.DNSError{Err: "no such host", IsNotFound: true}), PhaseHeaders, Outage, ScopeTarget, "connect", true, false},
		{"resolver", dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), PhaseHeaders, Outage, ScopeRegion, "connect", true, true},
		{"tls", errors.New("remote error: tls: handshake failure"), PhaseHeaders, Outage, ScopeTarget, "connect", true, false},
		{"tls timeout", errors.New("net/http: TLS handshake timeout"), PhaseHeaders, Outage, ScopeTarget, "connect", true, false},
		{"not tls", errors.New("http: server gave HTTP response to HTTPS client"), PhaseHeaders, Outage, ScopeTarget, "connect", true, false},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, PhaseHeaders, Outage, ScopeTarget, "reset", true, true},
		{"eof before headers", io.EOF, PhaseHeaders, Outage, ScopeTarget, "reset", true, true},
		{"reset in the answer", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, PhaseIdle, Outage, ScopeTarget, "reset", true, false},
		{"eof in the answer", io.ErrUnexpectedEOF, PhaseIdle, Outage, ScopeTarget, "truncated", true, false},
		{"goaway", errors.New("http2: server sent GOAWAY"), PhaseHeaders, Outage, ScopeTarget, "goaway", false, true},
		{"refused stream", errors.New("stream error: stream ID 3; REFUSED_STREAM"), PhaseHeaders, Outage, ScopeTarget, "goaway", false, true},
		{"not http", errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "x"`), PhaseHeaders, Outage, ScopeTarget, "protocol", true, false},
		{"read deadline", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, PhaseHeaders, Outage, ScopeTarget, "headers_timeout", true, false},
		{"headers", ErrHeadersTimeout, PhaseHeaders, Outage, ScopeTarget, "headers_timeout", true, false},
		{"first content", ErrFirstContentTimeout, PhaseContent, Outage, ScopeTarget, "first_content_timeout", true, false},
		{"idle", ErrIdleTimeout, PhaseIdle, Outage, ScopeTarget, "idle_timeout", true, false},
		{"empty", ErrEmpty, PhaseContent, Outage, ScopeTarget, "empty", true, true},
		{"wrapped", fmt.Errorf("read: %w", ErrTruncated), PhaseIdle, Outage, ScopeTarget, "truncated", true, false},
		{"nothing", nil, PhaseIdle, Outage, ScopeTarget, "protocol", true, false},
		{"total", ErrTotalTimeout, PhaseIdle, Deadline, ScopeRequest, "total_timeout", false, false},
		{"context deadline", context.DeadlineExceeded, PhaseIdle, Deadline, ScopeRequest, "total_timeout", false, false},
		{"left", ErrClientGone, PhaseIdle, Canceled, ScopeRequest, "client_gone", false, false},
		{"canceled", context.Canceled, PhaseHeaders, Canceled, ScopeRequest, "client_gone", false, false},
		{"full", ErrOverload, PhaseHeaders, Overload, ScopeRequest, "overload", false, false},
	}
	for _, tt := range tests {
		err := tt.err
		if err != nil {
			err = &url.Error{Op: "Post", URL: "https://u.example", Err: err}
		}
		v := Transport(err, tt.phase)
		if v.Class != tt.class || v.Scope != tt.scope || v.Reason != tt.reason || v.Breaker != tt.breaks || v.Again != tt.again {
			t.Errorf("%s: %+v", tt.name, v)
		}
	}
}

// TestInsideSuccess: an error in a 200 is an outage unless it says what it is.
func TestInsideSuccess(t *testing.T) {
	tests := []struct {
		kind, vendor, data string
		class              Class
	}{
		{"openai", "", `{"error":{"type":"server_error","code":null}}`, Outage},
		{"openai", "", `{"error":{"code":"insufficient_quota"}}`, Account},
		{"openai", "", `{"type":"error","code":"rate_limit_exceeded","message":"m"}`, Capacity},
		{"openai", "", `{"type":"error","error":{"type":"overloaded_error"}}`, Capacity},
		{"azure", "", `{"error":{"code":"InternalServerError"}}`, Outage},
		{"azure", "", `{"error":{"code":"429"}}`, Capacity},
		{"azure", "", `{"error":{"code":"content_filter","inner_error":{"code":"ResponsibleAIPolicyViolation"}}}`, ContentPolicy},
		{"openai-compatible", "openrouter", `{"choices":[{"error":{"code":429,"metadata":{"provider_name":"p"}}}]}`, Capacity},
		{"openai-compatible", "openrouter", `{"error":{"code":402}}`, Account},
		{"openai-compatible", "openrouter", `{"error":{"code":502}}`, Outage},
		{"openai-compatible", "vllm", `{"error":{"code":400,"type":"BadRequestError"}}`, Client},
		{"openai-compatible", "tgi", `{"error":{"message":"m","http_status_code":422}}`, Outage},
		{"openai-compatible", "", `{"error":"{\"error\":{\"code\":\"context_length_exceeded\"}}"}`, Client},
		{"openai-compatible", "", `{"error":{"message":"{\"error\":{\"code\":\"content_filter\"}}"}}`, ContentPolicy},
		{"openai-compatible", "", `null`, Outage},
		{"openai-compatible", "", `{"error":"it broke"}`, Outage},
	}
	for _, tt := range tests {
		table, _ := TableFor(tt.kind)
		if v := table.ClassifyEvent(tt.vendor, []byte(tt.data), now); v.Class != tt.class || v.Breaker != (tt.class == Outage) {
			t.Errorf("%s %s %s: %+v", tt.kind, tt.vendor, tt.data, v)
		}
	}
}

// TestFaultIsNotCapacity: a 503 that does not say that it is full is an
// outage, and the rate headers beside it are no hint of its end.
func TestFaultIsNotCapacity(t *testing.T) {
	h := http.Header{"X-Ratelimit-Reset-Tokens": {"6m0s"}, "X-Ratelimit-Remaining-Tokens": {"29000"}}
	for kind, table := range tables {
		for _, vendor := range []string{"", "groq", "mistral", "together", "xai", "deepseek", "openrouter", "ollama", "llamacpp", "nim"} {
			for _, body := range []string{"", "<html>503</html>", "Service Unavailable"} {
				v := table.Classify(Answer{Vendor: vendor, Status: 503, Header: h, Body: []byte(body), Now: now})
				if v.Class != Outage || !v.Breaker || v.HasWait {
					t.Errorf("%s %s %q: %+v", kind, vendor, body, v)
				}
			}
		}
	}
	table, _ := TableFor("openai")
	v := table.Classify(Answer{Status: 503, Header: http.Header{"Retry-After-Ms": {"250"}}, Body: []byte(`{"error":{"type":"server_error"}}`), Now: now})
	if v.Class != Outage || v.Wait != 250*time.Millisecond {
		t.Errorf("%+v", v)
	}
}

// TestEdges: what stands before a server speaks the same way whoever's it is.
func TestEdges(t *testing.T) {
	for kind, table := range tables {
		for _, tt := range []struct {
			status int
			header http.Header
			body   string
			class  Class
			scope  Scope
		}{
			{503, http.Header{"X-Envoy-Overloaded": {"true"}}, "overflow", Capacity, ScopeTarget},
			{403, http.Header{"Cf-Mitigated": {"challenge"}}, "<html>", Credential, ScopeProvider},
			{524, nil, "<html>", Outage, ScopeProvider},
			{429, http.Header{"Retry-After": {"5"}}, `{"statusCode":429,"message":"m"}`, Capacity, ScopeKey},
			{429, nil, `{"statusCode":429,"message":"m"}`, Client, ScopeRequest},
			{429, http.Header{"Retry-After": {"5"}}, `{"error":{"code":"credit_balance_exhausted"}}`, Account, ScopeKey},
			{302, nil, "", Outage, ScopeTarget},
			{418, nil, "", Client, ScopeRequest},
			{501, nil, "", Client, ScopeTarget},
		} {
			v := table.Classify(Answer{Status: tt.status, Header: tt.header, Body: []byte(tt.body), Now: now})
			if v.Class != tt.class || v.Scope != tt.scope {
				t.Errorf("%s %d %s: %+v", kind, tt.status, tt.body, v)
			}
		}
		if v := table.Classify(Answer{Status: 404, PassThrough: true, Now: now}); v.Class != Client {
			t.Errorf("%s: a missing object: %+v", kind, v)
		}
	}
}

// TestProseWait: the waits that only a message names.
func TestProseWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"try again in 1.5s.": 1500 * time.Millisecond, "try again in 6m0s": 6 * time.Minute, "try again in 120ms": 120 * time.Millisecond,
		"retry after 43 seconds": 43 * time.Second, "wait 33 seconds": 33 * time.Second, "replenished in 07:01:20": 7*time.Hour + 80*time.Second,
		"replenished in 1.07:01:20": MaxWait, "within 5s": 0, "in a moment": 0,
	} {
		if got, ok := proseWait(text); got != want || ok != (want > 0) {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
}

// TestParseClients: an override that would change nothing is an error.
func TestParseClients(t *testing.T) {
	for _, bad := range []string{
		`{`, `[{"name":"x"}]`, `[{"contains":[""]}]`, `[{"contains":["x"],"floor":"1"}]`, `[{"contains":["x"],"ceiling":"10ms"}]`,
		`[{"contains":["x"],"floor":"9s","ceiling":"8s"}]`, `[{"contains":["x"],"colour":1}]`,
	} {
		if _, err := ParseClients([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	c, err := ParseClients([]byte(`[{"contains":["mine/"],"prefix":true,"only_429":true,"omit_wait":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	if a := c.Advise(Refusal{Class: Outage}, "mine/1", 0); a.Status != 429 || a.RetryAfter != 0 {
		t.Errorf("%+v", a)
	}
	if a := c.Advise(Refusal{Class: Outage}, "not mine/1", 0); a.Status != 503 || a.RetryAfter < time.Second {
		t.Errorf("%+v", a)
	}
	if a := c.Advise(Refusal{Class: Capacity, Reason: "overloaded"}, "", 0); a.Code != "server_is_overloaded" {
		t.Errorf("%+v", a)
	}
}

// TestSpread: no bound makes all callers share one integer.
func TestSpread(t *testing.T) {
	for _, row := range DefaultClients().rows {
		if row.OmitWait {
			continue
		}
		for _, d := range []time.Duration{20 * time.Second, time.Minute, time.Hour} {
			least, most := row.wait(d, 0), row.wait(d, 0.999)
			if most-least < 5*time.Second || row.wait(d, 0.5) == most {
				t.Errorf("%s %v: %v to %v", row.Name, d, least, most)
			}
		}
	}
}

// TestVendors: meanings of the same code at different vendors.
func TestVendors(t *testing.T) {
	body := []byte(`{"error":{"code":"insufficient_quota","message":"m"}}`)
	for kind, want := range map[[2]string]Class{
		{"openai", ""}: Account, {"azure", ""}: Capacity, {"openai-compatible", "dashscope"}: Capacity, {"openai-compatible", ""}: Account,
	} {
		table, _ := TableFor(kind[0])
		if v := table.Classify(Answer{Vendor: kind[1], Status: 429, Header: http.Header{"Retry-After": {"10"}}, Body: body, Now: now}); v.Class != want {
			t.Errorf("%v: %v, want %v", kind, v.Class, want)
		}
	}
	if VendorOfHost("API.GROQ.COM") != "groq" || VendorOfHost("localhost") != "" {
		t.Error("hosts")
	}
}

// A wait that is known is told in full, and never sooner, to clients that do
// not mistreat it; the bounds of the others hold.
func TestExactWaits(t *testing.T) {
	clients := DefaultClients()
	long := 5*time.Hour + 1500*time.Millisecond
	for agent, want := range map[string]time.Duration{
		"OpenAI/Python 1.99.1": long, "AsyncOpenAI/Python 1": long, "Anthropic/JS 0.60": long, "curl/8": long, "": long,
		"langchainjs-openai/1.0": long, "azsdk-net-x": long, "ai-sdk/openai/2": 59 * time.Second, "cohere-ai/1": time.Minute, "google-genai-sdk/1": time.Minute,
	} {
		for _, rnd := range []float64{0, 0.5, 0.999} {
			a := clients.Advise(Refusal{Class: Capacity, Wait: long, Exact: true, Code: "key_rpm"}, agent, rnd)
			if want == long && a.RetryAfter != 5*time.Hour+2*time.Second || want != long && (a.RetryAfter > want || a.RetryAfter < want/2) {
				t.Errorf("%q: %s, want %s", agent, a.RetryAfter, want)
			}
			if a.Code != "key_rpm" || a.Status != 429 {
				t.Errorf("%+v", a)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		wait := time.Duration(rapid.Int64Range(1, int64(MaxWait)).Draw(t, "wait"))
		a := clients.Advise(Refusal{Class: Capacity, Wait: wait, Exact: true}, "OpenAI/Python 1.99.1", rapid.Float64Range(0, 0.999).Draw(t, "rnd"))
		if a.RetryAfter < wait || a.RetryAfter > max(wait+wait/5, time.Second)+time.Second || a.RetryAfter%time.Second != 0 {
			t.Fatalf("%s for %s", a.RetryAfter, wait)
		}
	})
	if a := clients.Advise(Refusal{Class: Capacity, Wait: time.Second, Exact: true}, "azsdk-net-x", 0.5); a.RetryAfter <= time.Minute {
		t.Errorf("%s is below the floor", a.RetryAfter)
	}
}
