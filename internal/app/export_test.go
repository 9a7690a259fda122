package app

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/otlp"
	"github.com/hourthree/hourthree/internal/testnet"
)

const (
	collectorToken = "token-of-the-collector"
	parentTrace    = "0af7651916cd43dd8448eb211c80319c"
	parentSpan     = "b7ad6b7169203331"
)

// exporting is a setup whose router exports to the collector.
func exporting(c http.Handler, more string, upstreams ...*fake) setup {
	return setup{
		upstreams: upstreams, hosts: map[string]http.Handler{"collector.test": c},
		more: "telemetry: {otlp: {endpoint: 'http://collector.test:4318', insecure: true, headers: {Authorization: Bearer " + collectorToken + "}" + more + "}}\n",
	}
}

// attribute asserts a span's attributes, given as pairs; "" is one that it
// must not have.
func attributes(t *testing.T, s testnet.Span, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := s.Attributes[pairs[i]]; got != pairs[i+1] {
			t.Errorf("span %q: %s is %q, want %q", s.Name, pairs[i], got, pairs[i+1])
		}
	}
}

// tree asserts that the first span has the others as its children, and that
// each lies within it.
func tree(t *testing.T, spans []testnet.Span, want int) {
	t.Helper()
	if len(spans) != want {
		t.Fatalf("%d spans, want %d: %+v", len(spans), want, spans)
	}
	root := spans[0]
	if root.Name != "hourthree.request" || root.Kind != "SPAN_KIND_SERVER" || root.Resource["service.name"] != "hourthree" {
		t.Errorf("the first span is %+v", root)
	}
	seen := map[string]bool{root.ID: true}
	for _, s := range spans[1:] {
		if s.Trace != root.Trace || s.Parent != root.ID || s.Kind != "SPAN_KIND_CLIENT" || seen[s.ID] || s.Start.Before(root.Start) || s.End.After(root.End) {
			t.Errorf("%+v\nis no child of\n%+v", s, root)
		}
		seen[s.ID] = true
	}
}

// whole asserts that the collector understood everything.
func whole(t *testing.T, c *testnet.Collector) {
	t.Helper()
	if p := c.Problems(); len(p) > 0 {
		t.Errorf("exports were not understood: %v", p)
	}
}

func TestExportPlainAnswer(t *testing.T) {
	c, u := new(testnet.Collector), upstream("u1", after(300*time.Millisecond, answers("hello")))
	var begun time.Time
	run(t, exporting(c, "", u), func(r *rig) {
		begun = time.Now()
		r.good(r.do(ask{headers: []string{"X-Request-Id", "req-1"}}), "hello")
		r.app.export.Close() // spans are sent by now
		if n := strings.Count(r.logs.String(), `"trace_id":"`+c.Spans()[0].Trace+`"`); n != 2 {
			t.Errorf("%d log lines have the trace's id", n)
		}
	})
	whole(t, c)
	spans := c.Spans()
	tree(t, spans, 2)
	root, call := spans[0], spans[1]
	if d := call.End.Sub(call.Start); !root.Start.Equal(begun) || d < 300*time.Millisecond || d > 400*time.Millisecond || root.Parent != "" {
		t.Errorf("times: request at %s, want %s; the attempt took %s", root.Start, begun, d)
	}
	attributes(t, root, "http.request.method", "POST", "http.route", "/v1/chat/completions", "http.response.status_code", "200",
		"gen_ai.operation.name", "chat", "gen_ai.request.model", "m", "hourthree.workload", "team", "hourthree.target", "u1/real",
		"hourthree.class", "ok", "hourthree.attempts", "1", "hourthree.request_id", "req-1", "error.type", "")
	if call.Name != "chat real" || call.Status != "STATUS_CODE_UNSET" {
		t.Errorf("the attempt is %q with status %s", call.Name, call.Status)
	}
	attributes(t, call, "gen_ai.provider.name", "openai", "gen_ai.system", "", "gen_ai.request.model", "real", "server.address", "u1.test",
		"server.port", "80", "http.response.status_code", "200", "hourthree.attempt.number", "1", "hourthree.attempt.why", "first", "hourthree.workload", "team",
		"hourthree.model", "m", "hourthree.request_id", "req-1", "gen_ai.request.stream", "", "gen_ai.response.time_to_first_chunk", "")
	if call.Attributes["gen_ai.usage.input_tokens"] == "" || call.Attributes["gen_ai.usage.input_tokens"] != root.Attributes["gen_ai.usage.input_tokens"] {
		t.Errorf("tokens of the attempt %q, of the request %q", call.Attributes["gen_ai.usage.input_tokens"], root.Attributes["gen_ai.usage.input_tokens"])
	}
	for path, h := range c.Headers() {
		if got := h.Get("Authorization"); got != "Bearer "+collectorToken {
			t.Errorf("%s: Authorization %q", path, got)
		}
	}
}

func TestExportStream(t *testing.T) {
	c, u := new(testnet.Collector), upstream("u1", script{head(), wait(time.Second), sse(chunk("a")), wait(time.Second), sse(chunk("b"), finishChunk, "[DONE]")})
	run(t, exporting(c, "", u), func(r *rig) { r.good(r.do(ask{stream: true}), "b") })
	whole(t, c)
	spans := c.Spans()
	tree(t, spans, 2)
	if d := spans[0].End.Sub(spans[0].Start); d < 2*time.Second || d > 2500*time.Millisecond {
		t.Errorf("the request took %s", d)
	}
	for _, s := range spans {
		attributes(t, s, "gen_ai.request.stream", "true", "gen_ai.response.time_to_first_chunk", "1")
	}
}

func TestExportRetry(t *testing.T) {
	c, u1, u2 := new(testnet.Collector), upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
	run(t, exporting(c, "", u1, u2), func(r *rig) { r.good(r.do(ask{}), "from two") })
	whole(t, c)
	spans := c.Spans()
	tree(t, spans, 3)
	attributes(t, spans[0], "hourthree.attempts", "2", "hourthree.target", "u2/real", "hourthree.class", "ok")
	attributes(t, spans[1], "hourthree.attempt.number", "1", "hourthree.target", "u1/real", "error.type", "outage", "hourthree.class", "outage", "http.response.status_code", "500")
	attributes(t, spans[2], "hourthree.attempt.number", "2", "hourthree.target", "u2/real", "error.type", "", "server.address", "u2.test")
	if why := spans[2].Attributes["hourthree.attempt.why"]; why != "divert" && why != "retry" {
		t.Errorf("the second attempt was made for %q", why)
	}
	if spans[1].Status != "STATUS_CODE_ERROR" || spans[0].Status != "STATUS_CODE_UNSET" || spans[2].Start.Before(spans[1].End) {
		t.Errorf("%+v", spans)
	}
}

func TestExportRefusals(t *testing.T) {
	c, u := new(testnet.Collector), upstream("u1", answers("hello"))
	run(t, exporting(c, "", u), func(r *rig) {
		r.do(ask{key: "nobody-knows-this-key"})
		r.do(ask{body: `{"model":"made-up-by-the-caller"}`})
		r.do(ask{path: "/v1/files?secret=in-the-query", method: "BREW", bare: true})
	})
	whole(t, c)
	spans := c.Spans()
	if len(spans) != 3 {
		t.Fatalf("%d spans, want the three requests alone: %+v", len(spans), spans)
	}
	for _, s := range spans {
		if s.Name != "hourthree.request" || s.Status != "STATUS_CODE_UNSET" {
			t.Errorf("%+v", s)
		}
		attributes(t, s, "hourthree.attempts", "0", "error.type", "client", "gen_ai.request.model", "")
	}
	attributes(t, spans[0], "hourthree.workload", "", "http.response.status_code", "401")
	attributes(t, spans[1], "http.response.status_code", "404", "hourthree.reason", "model_not_found")
	attributes(t, spans[2], "http.request.method", "_OTHER", "url.path", "/v1/files")
	if len(c.Points("gen_ai.client.inference.duration")) != 0 {
		t.Error("a request without an attempt was measured as one")
	}
}

// TestExportContinuesTraces: a caller's traceparent is continued with its
// decision; one that is not valid is as none.
func TestExportContinuesTraces(t *testing.T) {
	for name, c := range map[string]struct {
		traceparent, state string
		continued, sampled bool
	}{
		"sampled":          {"00-" + parentTrace + "-" + parentSpan + "-01", "vendor=1", true, true},
		"not sampled":      {"00-" + parentTrace + "-" + parentSpan + "-00", "vendor=1", true, false},
		"later version":    {"01-" + parentTrace + "-" + parentSpan + "-01-more", "", true, true},
		"bad state":        {"00-" + parentTrace + "-" + parentSpan + "-01", "=;\x7f,,", true, true},
		"long state":       {"00-" + parentTrace + "-" + parentSpan + "-01", "a=" + strings.Repeat("b", 5000), true, true},
		"none":             {"", "vendor=1", false, true},
		"capitals":         {"00-" + strings.ToUpper(parentTrace) + "-" + parentSpan + "-01", "", false, true},
		"no trace":         {"00-" + strings.Repeat("0", 32) + "-" + parentSpan + "-01", "", false, true},
		"no span":          {"00-" + parentTrace + "-" + strings.Repeat("0", 16) + "-01", "", false, true},
		"bad version":      {"ff-" + parentTrace + "-" + parentSpan + "-01", "", false, true},
		"trailing":         {"00-" + parentTrace + "-" + parentSpan + "-01-more", "", false, true},
		"short":            {"00-" + parentTrace, "", false, true},
		"no hex":           {"00-" + strings.Repeat("x", 32) + "-" + parentSpan + "-01", "", false, true},
		"very long":        {"00-" + strings.Repeat("a", 20_000), "", false, true},
		"separators moved": {"00" + parentTrace + "--" + parentSpan + "-01-", "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			collector, u := new(testnet.Collector), upstream("u1", answers("hello"))
			run(t, exporting(collector, "", u), func(r *rig) {
				var h []string
				if c.traceparent != "" {
					h = append(h, "Traceparent", c.traceparent)
				}
				if c.state != "" && !strings.Contains(c.state, "\x7f") {
					h = append(h, "Tracestate", c.state)
				}
				r.good(r.do(ask{headers: h}), "hello")
			})
			whole(t, collector)
			spans := collector.Spans()
			if !c.sampled {
				if len(spans) != 0 {
					t.Errorf("%+v", spans)
				}
				return
			}
			tree(t, spans, 2)
			if got := spans[0].Trace == parentTrace && spans[0].Parent == parentSpan; got != c.continued {
				t.Errorf("trace %s below %q", spans[0].Trace, spans[0].Parent)
			}
			if want := map[bool]string{true: "vendor=1"}[c.continued && c.state == "vendor=1"]; spans[0].State != want {
				t.Errorf("state %q, want %q", spans[0].State, want)
			}
			if !c.continued && (spans[0].Parent != "" || spans[0].Trace == strings.Repeat("0", 32)) {
				t.Errorf("%+v", spans[0])
			}
		})
	}
}

// TestExportSample: of the traces that begin here the share that is set; what a
// caller has sampled is traced at 0 too.
func TestExportSample(t *testing.T) {
	for sample, want := range map[string][2]int{"0": {1, 1}, "0.5": {60, 140}} {
		c, u := new(testnet.Collector), upstream("u1", answers("hello"))
		run(t, exporting(c, ", sample: "+sample, u), func(r *rig) {
			for range 199 {
				r.good(r.do(ask{}), "hello")
			}
			r.good(r.do(ask{headers: []string{"Traceparent", "00-" + parentTrace + "-" + parentSpan + "-01"}}), "hello")
		})
		whole(t, c)
		if n := len(c.Spans()) / 2; n < want[0] || n > want[1] {
			t.Errorf("sample %s: %d of 200 requests were traced", sample, n)
		}
		if p := c.Points("gen_ai.client.inference.duration"); len(p) != 1 || p[0].Count != 200 {
			t.Errorf("sample %s: metrics are of every call: %+v", sample, p)
		}
	}
}

// TestExportUpstream: what a provider is told of the trace.
func TestExportUpstream(t *testing.T) {
	caller := "00-" + parentTrace + "-" + parentSpan + "-01"
	for _, how := range []string{"pass", "own", "none"} {
		c, u1, u2 := new(testnet.Collector), upstream("u1", script{status(500, "")}), upstream("u2", answers("from two"))
		run(t, exporting(c, ", traceparent: "+how, u1, u2), func(r *rig) {
			r.good(r.do(ask{headers: []string{"Traceparent", caller, "Tracestate", "vendor=1"}}), "from two")
			r.good(r.do(ask{}), "from two")
		})
		var of []testnet.Span
		for _, s := range c.Spans() {
			if s.Kind == "SPAN_KIND_CLIENT" && s.Trace == parentTrace {
				of = append(of, s)
			}
		}
		if len(of) != 2 {
			t.Fatalf("%d attempts", len(of))
		}
		want := map[string]string{"pass": caller, "own": "00-" + parentTrace + "-" + of[0].ID + "-01"}[how]
		second := map[string]string{"pass": caller, "own": "00-" + parentTrace + "-" + of[1].ID + "-01"}[how]
		state := map[string]string{"pass": "vendor=1", "own": "vendor=1"}[how]
		for u, want := range map[*fake]string{u1: want, u2: second} {
			if h := u.request(0).header; h.Get("Traceparent") != want || h.Get("Tracestate") != state {
				t.Errorf("%s: %s was told %q and %q, want %q", how, u.name, h.Get("Traceparent"), h.Get("Tracestate"), want)
			}
		}
		if h := u2.request(1).header; (h.Get("Traceparent") != "") != (how == "own") {
			t.Errorf("%s: without a caller's trace the provider was told %q", how, h.Get("Traceparent"))
		}
	}
}

// TestExportMetrics: each generation of names has its own instruments, and none
// of the other's.
func TestExportMetrics(t *testing.T) {
	current := []string{"gen_ai.client.inference.duration", "gen_ai.client.inference.time_to_first_chunk", "gen_ai.client.inference.usage.input_tokens",
		"gen_ai.client.inference.usage.output_tokens", "gen_ai.client.inference.operation.input_tokens", "gen_ai.client.inference.operation.output_tokens"}
	old := []string{"gen_ai.client.operation.duration", "gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.token.usage"}
	for how, want := range map[string][2]bool{"current": {true, false}, "old": {false, true}, "both": {true, true}} {
		c, u1, u2 := new(testnet.Collector), upstream("u1", script{status(500, "")}), upstream("u2", after(300*time.Millisecond, answers("from two")))
		run(t, exporting(c, ", semconv: "+how+", metrics_interval: 10s", u1, u2), func(r *rig) {
			r.good(r.do(ask{}), "from two")
			r.good(r.do(ask{stream: true}), "from two")
			time.Sleep(11 * time.Second)
			if len(c.Points()) == 0 {
				t.Error("nothing was sent at the interval")
			}
		})
		whole(t, c)
		for i, names := range [][]string{current, old} {
			for _, name := range names {
				if got := len(c.Points(name)) > 0; got != want[i] {
					t.Errorf("%s: %s sent: %v", how, name, got)
				}
			}
		}
		for _, p := range c.Points("gen_ai.client.inference.duration", "gen_ai.client.operation.duration") {
			if p.Count != 2 || p.Unit != "s" || len(p.Bounds) != 14 || p.Attributes["gen_ai.provider.name"] != "openai" || p.Attributes["gen_ai.operation.name"] != "chat" ||
				p.Attributes["server.address"] == "u1.test" && p.Attributes["error.type"] != "outage" {
				t.Errorf("%s: %+v", how, p)
			}
		}
		if p := c.Points("gen_ai.server.time_to_first_token"); len(p) != 1 || p[0].Count != 1 || p[0].Attributes["gen_ai.request.model"] != "m" {
			t.Errorf("%s: %+v", how, p)
		}
	}
}

// TestExportHoldsNoSecret: nothing that is exported or logged has a key, a
// prompt, an answer, or a header or query of a caller in it.
func TestExportHoldsNoSecret(t *testing.T) {
	c := new(testnet.Collector)
	u1, u2 := upstream("u1", script{status(401, `{"error":{"message":"bad key secret-of-u1"}}`, "Content-Type", "application/json")}), upstream("u2", answers("text-of-the-answer"))
	var logs string
	run(t, exporting(c, ", semconv: both", u1, u2), func(r *rig) {
		r.do(ask{path: "/v1/chat/completions?key=in-the-query", body: `{"model":"m","user":"name-of-the-user","messages":[{"role":"user","content":"text-of-the-prompt"}]}`,
			headers: []string{"Cookie", "cookie-of-the-caller", "X-Api-Key", callerKey, "User-Agent", "agent-of-the-caller"}})
		r.do(ask{key: "a-wrong-key-of-a-caller"})
		c.Answer(func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "not good: %s", req.Header.Get("Authorization"))
		})
		time.Sleep(70 * time.Second)
		r.do(ask{})
		time.Sleep(70 * time.Second)
		logs = r.logs.String()
		c.Answer(nil)
		r.do(ask{})
	})
	whole(t, c)
	if len(c.Spans()) == 0 || len(c.Points()) == 0 || !strings.Contains(logs, "export fails") {
		t.Fatalf("%d spans, %d points; log:\n%s", len(c.Spans()), len(c.Points()), logs)
	}
	for _, secret := range []string{"secret-of", callerKey, collectorToken, "text-of", "name-of-the-user", "in-the-query", "cookie-of", "a-wrong-key", "agent-of"} {
		if strings.Contains(c.Raw(), secret) {
			t.Errorf("%q is in an export", secret)
		}
		if secret != "secret-of" && strings.Contains(logs, secret) {
			t.Errorf("%q is in the log:\n%s", secret, logs)
		}
	}
}

// TestExportNeverHoldsUp: whatever a collector does, requests are answered in
// their time, what waits is bounded and what is lost is counted, and the
// router stops within the export's time.
func TestExportNeverHoldsUp(t *testing.T) {
	for name, bad := range map[string]http.HandlerFunc{
		"hangs": hang,
		"throttles": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
		},
		"says 429": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
		"fails":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"talks on": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
		},
		"garbage":    garbage,
		"never ends": unending,
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test/v1/traces", http.StatusTemporaryRedirect)
		},
		"is not there": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c, elsewhere := new(testnet.Collector), new(testnet.Collector)
			c.Answer(bad)
			u := upstream("u1", answers("hello"))
			s := exporting(c, ", timeout: 3s, queue: 64, metrics_interval: 5s", u)
			s.hosts["elsewhere.test"] = elsewhere
			if bad == nil {
				delete(s.hosts, "collector.test")
			}
			run(t, s, func(r *rig) {
				for range 400 {
					if a := r.do(ask{}); a.status != 200 || a.took > 50*time.Millisecond {
						t.Fatalf("status %d after %s", a.status, a.took)
					}
					time.Sleep(50 * time.Millisecond)
				}
				stats := r.app.export.Stats()
				if stats.FailedTraces == 0 || stats.FailedMetrics == 0 || stats.LostSpans+stats.LostFacts+stats.FailedSpans == 0 || stats.Sent != 0 {
					t.Errorf("%+v", stats)
				}
				if n := strings.Count(r.logs.String(), "export fails"); n != 2 {
					t.Errorf("%d log lines, want one for each signal", n)
				}
				r.client.CloseIdleConnections()
				begun := time.Now()
				if err := r.app.Stop(); err != nil || time.Since(begun) > 3500*time.Millisecond {
					t.Errorf("stopped after %s: %v", time.Since(begun), err)
				}
				if s := r.app.export.Stats(); s.Sent+s.LostSpans+s.FailedSpans+2*s.LostFacts < 800 {
					t.Errorf("of 800 spans some are not accounted for: %+v", s)
				}
			})
			if elsewhere.Requests() != 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

// hang reads and says nothing.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else the server does not see the client leave
	<-r.Context().Done()
}

// garbage says 200 and what is no answer of a collector.
func garbage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write([]byte("\xff\xff\xff this is no protobuf"))
}

// unending says 200 and goes on for ever.
func unending(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-protobuf")
	for r.Context().Err() == nil {
		if _, err := w.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
			return
		}
	}
}

// TestExportComesBack: exports that failed end nothing.
func TestExportComesBack(t *testing.T) {
	c, u := new(testnet.Collector), upstream("u1", answers("hello"))
	run(t, exporting(c, ", timeout: 1s", u), func(r *rig) {
		c.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
		r.good(r.do(ask{}), "hello")
		time.Sleep(10 * time.Second)
		c.Answer(nil)
		r.good(r.do(ask{}), "hello")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := r.app.export.Stats(); s.Sent != 2 || s.FailedSpans != 2 || s.LostSpans+s.LostFacts != 0 {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(r.logs.String(), "export works again") {
			t.Error("nobody said so")
		}
		page := r.operator("/metrics")
		for _, want := range []string{"hourthree_otlp_spans_sent_total 2", `hourthree_otlp_dropped_total{what="spans_export"} 2`, `hourthree_otlp_export_failures_total{signal="traces"} 1`} {
			if !strings.Contains(page, want) {
				t.Errorf("%s is not in the metrics", want)
			}
		}
	})
}

// TestExportStaysOverAReload: the export changes with a restart, and a reload
// that would change it says so. What is known of targets changes at once.
func TestExportStaysOverAReload(t *testing.T) {
	c, other := new(testnet.Collector), new(testnet.Collector)
	u := upstream("u1", answers("hello"))
	s := exporting(c, "", u)
	s.hosts["other.test"] = other
	run(t, s, func(r *rig) {
		s.more = strings.Replace(s.more, "collector.test", "other.test", 1)
		s.target = map[string]string{"u1": "weight: 2"}
		for range 2 {
			r.configure(s)
			if err := r.app.Reload(); err != nil {
				t.Error(err)
			}
		}
		r.good(r.do(ask{}), "hello")
		if n := strings.Count(r.logs.String(), `"setting":"telemetry.otlp"`); n != 2 {
			t.Errorf("said %d times", n)
		}
	})
	if other.Requests() != 0 || len(c.Spans()) != 2 {
		t.Errorf("%d exports to the new collector, %d spans at the old one", other.Requests(), len(c.Spans()))
	}
}

// TestExportNames: what the conventions call the upstreams.
func TestExportNames(t *testing.T) {
	c, ps := config.Parse("f", []byte(`
providers:
  o: {type: openai, api_key: k}
  a: {type: azure, api_key: k, base_url: 'https://x.openai.azure.com'}
  g: {type: openai-compatible, base_url: 'https://api.groq.com/openai/v1'}
  m: {type: openai-compatible, vendor: mistral, base_url: 'http://10.0.0.1:8000/v1'}
  b: {type: openai-compatible, base_url: 'https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1'}
  l: {type: openai-compatible, base_url: 'http://127.0.0.1:9000/v1'}
  s: {type: simulated}
models:
  x: {targets: [{provider: o}, {provider: a, model: dep}, {provider: g}, {provider: m}, {provider: b}, {provider: l}, {provider: s}]}
  "*": {targets: [{provider: o}]}
`), func(string) (string, bool) { return "", false })
	if ps.Fatal() {
		t.Fatal(ps)
	}
	want := map[string]otlp.Target{
		"o/x": {Provider: "openai", Model: "x", Address: "api.openai.com", Port: 443}, "o/*": {Provider: "openai", Address: "api.openai.com", Port: 443},
		"a/dep": {Provider: "azure.ai.openai", Model: "dep", Address: "x.openai.azure.com", Port: 443}, "g/x": {Provider: "groq", Model: "x", Address: "api.groq.com", Port: 443},
		"m/x": {Provider: "mistral_ai", Model: "x", Address: "10.0.0.1", Port: 8000}, "l/x": {Provider: "openai", Model: "x", Address: "127.0.0.1", Port: 9000},
		"b/x": {Provider: "aws.bedrock", Model: "x", Address: "bedrock-runtime.eu-west-1.amazonaws.com", Port: 443}, "s/x": {Provider: "hourthree.simulated", Model: "x"},
	}
	if got := upstreamsOf(c); !maps.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// TestNoExport: without the setting nothing is there to cost anything.
func TestNoExport(t *testing.T) {
	run(t, setup{upstreams: []*fake{upstream("u1", answers("hello"))}}, func(r *rig) {
		r.good(r.do(ask{}), "hello")
		if r.app.export != nil || r.app.gateway.Trace != nil || strings.Contains(r.operator("/metrics"), "otlp") {
			t.Error("an exporter without a setting")
		}
	})
}
