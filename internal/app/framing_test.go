package app

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestE01LongEventsAreByteIdentical(t *testing.T) {
	for _, size := range []int{64<<10 + 1, 1<<20 + 1, 8 << 20} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprint(size, later), func(t *testing.T) {
				long := "data: " + chunk(strings.Repeat("z", size)) + "\n\n"
				text := long
				if later {
					text = "data: " + chunk("a") + "\n\n" + long
				}
				text += "data: " + finishChunk + "\n\ndata: [DONE]\n\n"
				u1 := upstream("u1", script{head(), raw(text)})
				run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
					a := r.do(ask{stream: true})
					if a.err != nil || a.body != text {
						t.Errorf("error %v, %d bytes of %d", a.err, len(a.body), len(text))
					}
					r.counts(map[*fake]int{u1: 1})
				})
			})
		}
	}
}

func TestE01EventsWithoutEndAreRefused(t *testing.T) {
	endless := strings.Repeat("z", 1<<20)
	s := script{head(), sse(chunk("a")), raw("data: ")}
	for range 18 {
		s = append(s, raw(endless))
	}
	s = append(s, hold())
	u1 := upstream("u1", s)
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.brokenOff(a, `"content":"a"`)
		if len(a.body) > 1<<20 {
			t.Errorf("%d bytes reached the client", len(a.body))
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestE03EndingsOfLinesAndTheirTiming(t *testing.T) {
	for name, end := range map[string]string{"LF": "\n\n", "CRLF": "\r\n\r\n", "CR": "\r\r"} {
		t.Run(name, func(t *testing.T) {
			s := script{head()}
			for i := range 10 {
				s = append(s, raw("data: "+chunk(fmt.Sprint("n", i))+end), wait(100*time.Millisecond))
			}
			s = append(s, raw("data: "+finishChunk+end+"data: [DONE]"+end))
			u1 := upstream("u1", s)
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				start := time.Now()
				resp, err := r.client.Do(r.request(ask{stream: true}))
				if err != nil {
					r.t.Fatal(err)
				}
				defer resp.Body.Close()
				var got []byte
				p := make([]byte, 4096)
				for i := range 10 { // E14: each event when it comes, not at the end
					want := fmt.Sprintf(`"n%d"`, i)
					for !bytes.Contains(got, []byte(want)) {
						n, err := resp.Body.Read(p)
						if got = append(got, p[:n]...); err != nil {
							t.Errorf("event %d: %v", i, err)
							return
						}
					}
					if at, due := time.Since(start), time.Duration(i)*100*time.Millisecond; at < due || at > due+100*time.Millisecond {
						t.Errorf("event %d after %s", i, at)
					}
				}
			})
			r1 := u1.count()
			if r1 != 1 {
				t.Errorf("%d requests", r1)
			}
		})
	}
}

func TestE05CommentsStayComments(t *testing.T) {
	u1 := upstream("u1", script{head(), raw(": hi\n\n", ": hi\n\n", ": hi\n\n"), sse(chunk("x"), finishChunk, done)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.good(a, "x")
		if strings.Contains(a.body, "data: :") || strings.Contains(a.body, "data: hi") {
			t.Errorf("body %q", a.body)
		}
	})
}

func TestE06OneByteAtATime(t *testing.T) {
	for name, text := range map[string]string{
		"chat":      "data: " + chunk("안녕하세요 👩‍👩‍👧 naïve") + "\n\ndata: " + toolChunk(`{"städte":"東京"}`) + "\n\ndata: " + finishChunk + "\n\ndata: " + usageChunk + "\n\ndata: [DONE]\n\n",
		"CRLF":      "data: " + chunk("é") + "\r\n\r\ndata: " + finishChunk + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"multiline": "event: x\nid: 7\ndata: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"two lines\"}}]}\n\ndata:" + finishChunk + "\n\ndata:[DONE]\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := script{head()}
			for i := range len(text) {
				s = append(s, raw(text[i:i+1]))
			}
			u1 := upstream("u1", s)
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{stream: true})
				if a.err != nil || a.body != text {
					t.Errorf("error %v, got %q", a.err, a.body)
				}
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}

func TestE07UsageSplitAtEveryByte(t *testing.T) {
	frame := "data: " + usageChunk + "\n\n"
	u1 := upstream("u1")
	u1.pick = func(n int, _ *seen) script {
		return script{head(), sse(chunk("x"), finishChunk), raw(frame[:n+1]), wait(time.Millisecond), raw(frame[n+1:]), sse(done)}
	}
	s := setup{upstreams: []*fake{u1}, workload: "limits: {tpm: 1000000000}"}
	run(t, s, func(r *rig) {
		for i := range len(frame) - 1 {
			a := r.do(ask{body: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}`})
			if a.err != nil || strings.Count(a.body, `"total_tokens":5`) != 1 || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
				t.Errorf("split at %d: error %v, %q", i, a.err, a.body)
			}
		}
		r.counts(map[*fake]int{u1: len(frame) - 1})
	})
}

func TestE07LastEventWithoutABlankLine(t *testing.T) {
	for name, tail := range map[string]string{"none": "data: [DONE]", "one": "data: [DONE]\n"} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", script{head(), sse(chunk("x"), finishChunk), raw(tail)})
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{stream: true})
				r.good(a, "x")
				if strings.Count(a.body, done) != 1 {
					t.Errorf("body %q", a.body)
				}
				if s := r.state("u1"); s.Breaker.Failed != 0 {
					t.Errorf("%d failures counted", s.Breaker.Failed)
				}
			})
		})
	}
}

func TestE08OneTerminalMarker(t *testing.T) {
	for name, tail := range map[string]step{"given": sse(done), "given twice": sse(done, done), "missing": raw(""), "chatter behind": sse(done, chunk("more"))} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", script{head(), sse(chunk("x"), finishChunk), tail})
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{stream: true})
				r.good(a, "x")
				if strings.Count(a.body, done) != 1 || !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
					t.Errorf("body %q", a.body)
				}
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}

func TestE09TruncationIsToldAndCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		path, body, event string
		end               step
	}{
		"cut":           {"/v1/chat/completions", chatAsk(true), chunk("w"), cut()},
		"clean end":     {"/v1/chat/completions", chatAsk(true), chunk("w"), raw("")},
		"tool call":     {"/v1/chat/completions", chatAsk(true), toolChunk("w"), raw("")},
		"responses":     {"/v1/responses", `{"model":"m","stream":true,"input":"x"}`, `{"type":"response.output_text.delta","delta":"w"}`, raw("")},
		"responses cut": {"/v1/responses", `{"model":"m","stream":true,"input":"x"}`, `{"type":"response.output_text.delta","delta":"w"}`, cut()},
		"completions":   {"/v1/completions", `{"model":"m","stream":true,"prompt":"x"}`, `{"choices":[{"index":0,"text":"w","finish_reason":null}]}`, cut()},
	} {
		t.Run(name, func(t *testing.T) {
			s := script{head()}
			for range 40 {
				s = append(s, sse(tc.event))
			}
			u1, u2 := upstream("u1", append(s, wait(time.Millisecond), tc.end)), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				a := r.do(ask{path: tc.path, body: tc.body})
				r.brokenOff(a, tc.event)
				if n := strings.Count(a.body, tc.event); n != 40 {
					t.Errorf("%d of 40 events", n)
				}
				if s := r.state("u1"); s.Breaker.Failed != 1 || s.Breaker.OK != 0 {
					t.Errorf("counted as %d failures, %d successes", s.Breaker.Failed, s.Breaker.OK)
				}
				if !strings.Contains(r.logs.String(), "truncated") {
					t.Error("no record of the truncation")
				}
				r.counts(map[*fake]int{u1: 1, u2: 0})
			})
		})
	}
}

func TestE09CutJSON(t *testing.T) {
	body := chatBody("half")
	short := func(end step) script {
		return script{func(t *talk) bool {
			t.w.Header().Set("Content-Type", "application/json")
			t.w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			return t.send(body[:len(body)/2])
		}, end}
	}
	for name, end := range map[string]step{"cut": cut(), "reset": rst()} {
		t.Run(name, func(t *testing.T) {
			u1, u2 := upstream("u1", short(end)), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				r.good(r.do(ask{}), "from two")
				r.counts(map[*fake]int{u1: 1, u2: 1})
			})
		})
	}
}

func TestE10FinishedWithoutMarkerAndWithoutEnd(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(chunk("x"), finishChunk), hold()})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		start := time.Now()
		a := r.do(ask{stream: true})
		r.good(a, "x")
		if !strings.HasSuffix(a.body, "data: [DONE]\n\n") || a.took > 2100*time.Millisecond {
			t.Errorf("after %s: %q", a.took, a.body)
		}
		synctest.Wait()
		if closed := u1.request(0).closed.Sub(start); closed > 2100*time.Millisecond || closed <= 0 {
			t.Errorf("upstream call closed after %s", closed)
		}
		if s := r.state("u1"); s.Breaker.Failed != 0 || s.Breaker.OK != 1 {
			t.Errorf("counted as %d failures, %d successes", s.Breaker.Failed, s.Breaker.OK)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestE11MarkerEndsTheStream(t *testing.T) {
	u1 := upstream("u1", script{head(), sse(chunk("x"), finishChunk, done), hold()})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.good(a, "x")
		if a.took > 100*time.Millisecond {
			t.Errorf("took %s", a.took)
		}
		u1.use(answers("next"))
		r.good(r.do(ask{}), "next")
		if u1.request(0).remote == "" || r.net.Dials("u1.test") != 2 {
			t.Errorf("dialled %d times: a connection that was held open must not be used again", r.net.Dials("u1.test"))
		}
		r.counts(map[*fake]int{u1: 2})
	})
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s)) // to memory
	_ = z.Close()
	return b.String()
}

func TestE12CompressedAnswers(t *testing.T) {
	events := chatEvents("packed")
	for name, tc := range map[string]struct {
		stream bool
		script script
	}{
		"whole":  {false, script{status(200, zipped(chatBody("packed")), "Content-Encoding", "gzip")}},
		"stream": {true, script{status(200, zipped(events), "Content-Encoding", "gzip", "Content-Type", "text/event-stream")}},
	} {
		t.Run(name, func(t *testing.T) {
			u1 := upstream("u1", tc.script)
			run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
				a := r.do(ask{stream: tc.stream, headers: []string{"Accept-Encoding", "gzip, br"}})
				r.good(a, "packed")
				if got := a.header.Get("Content-Encoding"); got != "" {
					t.Errorf("Content-Encoding %q", got)
				}
				if got := u1.request(0).header.Get("Accept-Encoding"); got != "identity" {
					t.Errorf("asked upstream for %q", got)
				}
				r.counts(map[*fake]int{u1: 1})
			})
		})
	}
}
