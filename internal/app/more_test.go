package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestA23TheFirstAnswerOfAllIsAThrottle(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			u1 := upstream("u1", script{wireText("HTTP/1.1 429 \r\n\r\n")}) // not one header
			u2 := upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				r.good(r.do(ask{stream: stream}), "from two")
				r.counts(map[*fake]int{u1: 1, u2: 1})
			})
		})
	}
}

func TestB12NoCreditIsTheAccounts(t *testing.T) {
	body := `{"error":{"message":"Insufficient credits","code":402}}`
	u1, u2 := upstream("u1", script{status(402, body)}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}, kind: "openai-compatible"}, func(r *rig) {
		for range 2 {
			r.good(r.do(ask{}), "from two")
		}
		r.counts(map[*fake]int{u1: 1, u2: 2})
		if !strings.Contains(r.logs.String(), `"class":"account"`) {
			t.Errorf("no class account in %s", r.logs.String())
		}
		if s := r.state("u1"); s.CoolUntil == nil || s.Phase != "closed" {
			t.Errorf("cool-down %v, breaker %s", s.CoolUntil, s.Phase)
		}
	})
}

// twoKeys is one service behind two providers, which differ in their keys.
func twoKeys() (setup, *fake) {
	u1, u2 := upstream("u1"), upstream("u2", answers("nobody"))
	u1.pick = func(_ int, s *seen) script {
		if s.header.Get("Authorization") == "Bearer secret-of-u1" {
			return script{status(429, "")}
		}
		return answers("from key two")
	}
	s := setup{upstreams: []*fake{u1, u2}}
	s.whole = strings.Replace(s.yaml(), "http://u2.test/v1", "http://u1.test/v1", 1)
	return s, u1
}

func TestB17AThrottledKeyBlocksNoOther(t *testing.T) {
	s, u1 := twoKeys()
	run(t, s, func(r *rig) {
		for range 20 {
			r.good(r.do(ask{}), "from key two")
			time.Sleep(20 * time.Second)
		}
		if u1.count() < 22 {
			t.Errorf("%d calls: the throttled key never came back", u1.count())
		}
		for _, name := range []string{"u1", "u2"} {
			if got := r.state(name); got.Phase != "closed" || got.Breaker.Failed != 0 {
				t.Errorf("%s: breaker %s with %d failures", name, got.Phase, got.Breaker.Failed)
			}
		}
	})
}

func TestC07AThrottledKeyIsAskedOnce(t *testing.T) {
	s, u1 := twoKeys()
	run(t, s, func(r *rig) {
		r.good(r.do(ask{}), "from key two")
		r.counts(map[*fake]int{u1: 2})
		for i, want := range []string{"Bearer secret-of-u1", "Bearer secret-of-u2"} {
			if got := u1.request(i).header.Get("Authorization"); got != want {
				t.Errorf("call %d with %q, want %q", i, got, want)
			}
		}
		r.good(r.do(ask{}), "from key two")
		r.counts(map[*fake]int{u1: 3})
	})
}

func TestD06HeadersAreNoContent(t *testing.T) {
	u1 := upstream("u1", script{wait(100 * time.Millisecond), head(), sse(roleChunk), wait(1900 * time.Millisecond), sse(chunk("x"), finishChunk, done)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		r.good(r.do(ask{stream: true}), done)
		synctest.Wait()
		requests, attempts := 0, 0
		for line := range strings.Lines(r.logs.String()) {
			var e struct {
				Msg     string
				Headers float64 `json:"headers_ms"`
				Content float64 `json:"content_ms"`
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				continue
			}
			switch e.Msg {
			case "request":
				requests++
			case "attempt":
				attempts++
				if e.Headers < 100 || e.Headers > 110 {
					t.Errorf("headers after %v ms", e.Headers)
				}
			default:
				continue
			}
			if e.Content < 2000 || e.Content > 2010 {
				t.Errorf("%s: content after %v ms", e.Msg, e.Content)
			}
		}
		if requests != 1 || attempts != 1 {
			t.Errorf("%d requests and %d attempts in %s", requests, attempts, r.logs.String())
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestE02AnImageInOneEvent(t *testing.T) {
	image := `{"type":"response.output_item.done","item":{"type":"image_generation_call","result":"` + strings.Repeat("iVBORw0K", 6<<20/8) + `"}}`
	text := strings.Replace(responseEvents("x"), "event: response.completed", "event: response.output_item.done\ndata: "+image+"\n\nevent: response.completed", 1)
	u1 := upstream("u1", script{head(), raw(text)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		a := r.do(ask{path: "/v1/responses", body: `{"model":"m","stream":true,"input":"hi"}`})
		if a.err != nil || a.body != text {
			t.Errorf("error %v, %d bytes of %d", a.err, len(a.body), len(text))
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestE15EventsInsteadOfJSON(t *testing.T) {
	u1, u2 := upstream("u1", script{head(), raw(chatEvents("no"))}), upstream("u2", answers("from two"))
	run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
		a := r.do(ask{body: `{"model":"m","messages":[]}`})
		r.good(a, "from two")
		if !json.Valid([]byte(a.body)) {
			t.Errorf("body %q", a.body)
		}
		r.counts(map[*fake]int{u1: 1, u2: 1})
	})
}

func TestF07ZeroIsANumber(t *testing.T) {
	body := strings.Replace(chatBody("many words for nothing"), `"prompt_tokens":3,"completion_tokens":2,"total_tokens":5`, `"prompt_tokens":0,"completion_tokens":0,"total_tokens":0`, 1)
	u1 := upstream("u1", script{status(200, body)})
	run(t, setup{upstreams: []*fake{u1}}, func(r *rig) {
		if a := r.do(ask{}); a.err != nil || a.body != body {
			t.Errorf("error %v, body %q", a.err, a.body)
		}
		synctest.Wait()
		// Tokens are logged when there are any: an estimate would show.
		if logs := r.logs.String(); strings.Contains(logs, "put_tokens") || !strings.Contains(logs, `"msg":"request"`) {
			t.Errorf("logged %s", logs)
		}
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestF12AVanishedClientIsDropped(t *testing.T) {
	flood := script{head()}
	for range 1000 {
		flood = append(flood, sse(chunk(strings.Repeat("y", 4000))))
	}
	u1 := upstream("u1", flood)
	run(t, setup{upstreams: []*fake{u1}, http: "write_timeout: 3s"}, func(r *rig) {
		c := r.dialRaw()
		body := chatAsk(true)
		_, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callerKey, len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n := r.app.gateway.InFlight(); n != 1 {
			t.Errorf("%d requests in flight while the client may still read", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n, held := r.app.gateway.InFlight(), r.app.gateway.Ledger.Reserved(); n != 0 || held != 0 {
			t.Errorf("a vanished client holds %d requests, %d bytes", n, held)
		}
		if _, err := io.Copy(io.Discard, c); err != nil { // the connection has an end
			t.Errorf("connection: %v", err)
		}
		_ = c.Close()
		r.counts(map[*fake]int{u1: 1})
	})
}

func TestG10AdviceOfAnUpstreamStaysInside(t *testing.T) {
	for _, advice := range []string{"false", "true"} {
		t.Run(advice, func(t *testing.T) {
			u1, u2 := upstream("u1", script{status(500, "", "X-Should-Retry", advice)}), upstream("u2", answers("from two"))
			run(t, setup{upstreams: []*fake{u1, u2}}, func(r *rig) {
				a := r.do(ask{})
				r.good(a, "from two")
				if got := a.header.Get("X-Should-Retry"); got != "" {
					t.Errorf("x-should-retry %q reached the client", got)
				}
				r.counts(map[*fake]int{u1: 1, u2: 1})
				u2.use(script{status(500, "", "X-Should-Retry", advice)})
				r.failed(r.do(ask{}), http.StatusServiceUnavailable, "outage") // with the router's own advice
			})
		})
	}
}

func TestI06ChunksOfTheLastResort(t *testing.T) {
	u1 := upstream("u1", script{status(500, "")})
	run(t, setup{upstreams: []*fake{u1}, model: `degraded: {message: "come back later"}`}, func(r *rig) {
		a := r.do(ask{stream: true})
		r.good(a, "come back later")
		events := strings.Split(strings.TrimSuffix(a.body, "\n\n"), "\n\n")
		if last := events[len(events)-1]; last != "data: "+done {
			t.Errorf("ends with %q", last)
		}
		for _, e := range events[:len(events)-1] {
			var c struct {
				ID, Object, Model string
				Created           int64
				Choices           []struct {
					Index *int
					Delta map[string]any
				}
			}
			err := json.Unmarshal([]byte(strings.TrimPrefix(e, "data: ")), &c)
			if err != nil || c.ID == "" || c.Object != "chat.completion.chunk" || c.Model == "" || c.Created == 0 || c.Choices == nil {
				t.Errorf("chunk %q: %v", e, err)
			}
			for _, choice := range c.Choices {
				if choice.Index == nil || choice.Delta == nil {
					t.Errorf("choice of %q", e)
				}
			}
		}
	})
}
