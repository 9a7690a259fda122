package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestEndpointOf(t *testing.T) {
	for path, want := range map[string]Endpoint{
		"/chat/completions": Chat, "/chat/completions/": Chat, "/completions": Completions, "/embeddings": Embeddings,
		"/responses": Responses, "/responses/resp_1": Other, "/models": Models, "/models/a/b": Models, "/files": Other, "": Other,
		"/Chat/completions": Other,
	} {
		if got := EndpointOf(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if !Chat.EndsWithDone() || Responses.EndsWithDone() || !Completions.HasStreamOptions() || Responses.HasStreamOptions() {
		t.Error("wrong traits")
	}
	if Chat.String() != "chat" || Endpoint(99).String() != "unknown" {
		t.Error("wrong names")
	}
}

func TestUsageOf(t *testing.T) {
	for _, c := range []struct {
		ep   Endpoint
		data string
		want Usage
	}{
		{Chat, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}}`,
			Usage{10, 20, 4, 5, true}},
		{Chat, `{"choices":[{"delta":{}}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, Usage{Present: true}},
		{Chat, `{"usage":{"prompt_tokens":1},"usage":{"prompt_tokens":2}}`, Usage{Input: 2, Present: true}},
		{Chat, `{"usage":null}`, Usage{}}, {Chat, `{"usage":{}}`, Usage{}}, {Chat, `{}`, Usage{}}, {Chat, ``, Usage{}}, {Chat, `[DONE]`, Usage{}},
		{Chat, `{"usage":{"prompt_tokens":null,"completion_tokens":"7"}}`, Usage{}},
		{Chat, `{"usage":{"prompt_tokens":-5,"completion_tokens":1e300,"x":{"prompt_tokens":9}}}`, Usage{Output: maxCount, Present: true}},
		{Chat, `{"usage":{"prompt_tokens":12.0,"prompt_cache_hit_tokens":3,"prompt_tokens_details":null}}`, Usage{Input: 12, Cached: 3, Present: true}},
		{Chat, `{"note":"\"usage\":{\"prompt_tokens\":1}","response":{"usage":{"prompt_tokens":1}}}`, Usage{}},
		{Embeddings, `{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`, Usage{Input: 8, Present: true}},
		{Responses, `{"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":4,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":2}}}}`,
			Usage{3, 4, 1, 2, true}},
		{Responses, `{"output":[],"usage":{"input_tokens":3,"output_tokens":4}}`, Usage{Input: 3, Output: 4, Present: true}},
		{Models, `{"usage":{"prompt_tokens":1}}`, Usage{}},
	} {
		if got := UsageOf(c.ep, []byte(c.data)); got != c.want {
			t.Errorf("%s %s: got %+v, want %+v", c.ep, c.data, got, c.want)
		}
	}
}

func TestInspectBody(t *testing.T) {
	const js = "application/json"
	chat := func(choice string) string { return `{"id":"c","choices":[` + choice + `]}` }
	for _, c := range []struct {
		ep       Endpoint
		ct, body string
		want     BodyVerdict
	}{
		{Chat, js, ``, BodyEmpty}, {Chat, js, " \n\n", BodyEmpty}, {Chat, js, `null`, BodyNotObject}, {Chat, js, `[]`, BodyNotObject},
		{Chat, js, `"x"`, BodyNotObject}, {Chat, js, `0`, BodyNotObject}, {Chat, js, `[{"error":{}}]`, BodyNotObject},
		{Chat, "text/html; charset=utf-8", `{}`, BodyHTML}, {Chat, " Text/HTML", ``, BodyHTML}, {Chat, js, `<html></html>`, BodyHTML},
		{Chat, "text/plain", `upstream connect error`, BodyNotJSON}, {Chat, js, `{"choices":[{"message":{"content":"cut`, BodyNotJSON},
		{Chat, js, `{} {}`, BodyNotJSON}, {Chat, js, strings.Repeat("[", 1<<20), BodyNotJSON},
		{Chat, js, `{}`, BodyEmpty}, {Chat, js, `{"choices":[]}`, BodyEmpty}, {Chat, js, `{"choices":null}`, BodyEmpty},
		{Chat, js, chat(`{"message":{"content":""}}`), BodyEmpty},
		{Chat, js, chat(`{"message":{"role":"assistant","content":null},"finish_reason":"stop"}`), BodyEmpty},
		{Chat, js, `{"choices":[{"message":{"content":""},"finish_reason":"stop"}],"usage":{"completion_tokens":0}}`, BodyEmpty},
		{Chat, js, `{"choices":[{"message":{"content":""},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}`, BodyGood},
		{Chat, js, chat(`{"message":{"content":""},"finish_reason":"length"}`), BodyGood},
		{Chat, js, chat(`{"message":{"content":null},"finish_reason":"content_filter"}`), BodyGood},
		{Chat, js, chat(`{"message":{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}`), BodyGood},
		{Chat, js, chat(`{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}`), BodyGood},
		{Chat, js, chat(`{"message":{"content":"","reasoning_content":"hm"},"finish_reason":"stop"}`), BodyGood},
		{Chat, js, "\n\n" + chat(`{"message":{"content":"ok"}}`) + "\n", BodyGood},
		{Chat, js, chat("{\"message\":{\"content\":\"cut \xed\x95\"}}"), BodyGood},
		{Chat, js, chat(`{"index":0,"finish_reason":"stop","message":{"content":"ok"},"content_filter_results":{"error":{"code":"content_filter_error"}}}`), BodyGood},
		{Chat, js, chat(`{"finish_reason":"error","message":{"content":""},"error":{"code":502}}`), BodyErrorInside},
		{Chat, js, chat(`{"message":{"content":"part"},"error":{"code":502}}`), BodyErrorInside},
		{Chat, js, `{"error":{"code":"server_is_overloaded"}}`, BodyErrorInside}, {Chat, js, `{"error":"busy"}`, BodyErrorInside},
		{Chat, js, `{"object":"error","message":"m","code":503}`, BodyErrorInside}, {Chat, js, `{"detail":"Not Found"}`, BodyErrorInside},
		{Chat, js, `{"statusCode":429,"message":"m"}`, BodyErrorInside},
		{Chat, js, `{"error":null,"choices":[{"message":{"content":"x"}}]}`, BodyGood},
		{Completions, js, chat(`{"text":"x"}`), BodyGood}, {Completions, js, chat(`{"text":""}`), BodyEmpty},
		{Completions, js, chat(`{"text":"","finish_reason":"length"}`), BodyGood},
		{Embeddings, js, `{"data":[{"embedding":[1]}]}`, BodyGood}, {Embeddings, js, `{"data":[{"embedding":"AAAA"}]}`, BodyGood},
		{Embeddings, js, `{"data":[]}`, BodyEmpty}, {Embeddings, js, `{}`, BodyEmpty}, {Embeddings, js, `{"error":{"x":1}}`, BodyErrorInside},
		{Models, js, `{"object":"list","data":[]}`, BodyGood}, {Models, js, `{"object":"error"}`, BodyErrorInside}, {Models, js, `[]`, BodyNotObject},
		{Responses, js, `{"status":"completed","output":[{"type":"message"}]}`, BodyGood},
		{Responses, js, `{"status":"completed","output":[]}`, BodyEmpty}, {Responses, js, `{"output":[]}`, BodyEmpty},
		{Responses, js, `{"status":"completed","output":[],"usage":{"output_tokens":9}}`, BodyGood},
		{Responses, js, `{"id":"resp_1","object":"response","status":"completed"}`, BodyGood},
		{Responses, js, `{"status":"queued","output":[],"error":null}`, BodyGood}, {Responses, js, `{"status":"incomplete","output":[]}`, BodyGood},
		{Responses, js, `{"status":"failed","output":[]}`, BodyErrorInside}, {Responses, js, `{"error":{"code":"x"},"status":"failed"}`, BodyErrorInside},
		{Other, "audio/mpeg", "\xff\xfb", BodyGood}, {Other, "", ``, BodyGood}, {Other, "application/xml", `<a/>`, BodyGood},
		{Other, js, `null`, BodyGood}, {Other, "text/html", `<html>`, BodyGood},
	} {
		if got := InspectBody(c.ep, c.ct, []byte(c.body)); got != c.want {
			t.Errorf("%s %s %.80q: got %v, want %v", c.ep, c.ct, c.body, got, c.want)
		}
	}
	if BodyGood.String() != "good" || BodyVerdict(99).String() != "unknown" {
		t.Error("wrong names")
	}
}

func TestErrorBody(t *testing.T) {
	e := ErrorBody{Message: "a \"b\"", Type: "server_error", Code: "outage", Class: "outage", RequestID: "r1",
		Attempts: []AttemptNote{{"p/m", "outage", 12}, {"q/m", "capacity", 3}}}
	want := `{"error":{"message":"a \"b\"","type":"server_error","param":null,"code":"outage"},` +
		`"hourthree":{"class":"outage","request_id":"r1","attempts":[{"target":"p/m","class":"outage","ms":12},{"target":"q/m","class":"capacity","ms":3}]}}`
	if got := string(e.JSON()); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := string(e.Event(Chat)); got != "data: "+want+"\n\n" {
		t.Errorf("chat event %s", got)
	}
	e.Sequence = 7
	got := string(e.Event(Responses))
	if !strings.HasPrefix(got, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":7,\"code\":\"outage\",\"message\":\"a \\\"b\\\"\",\"param\":null,\"error\":{") {
		t.Errorf("responses event %s", got)
	}
	for _, ep := range []Endpoint{Chat, Completions, Responses} {
		if sig := signalsOf(t, ep, string(e.Event(ep))); len(sig) != 1 || sig[0] != "error" {
			t.Errorf("%s: our own event reads as %v", ep, sig)
		}
	}
	if v := InspectBody(Chat, "application/json", e.JSON()); v != BodyErrorInside {
		t.Errorf("our own body reads as %v", v)
	}
}

func TestErrorBodyIsAlwaysValid(t *testing.T) {
	cut := ErrorBody{Message: strings.Repeat("x", maxMessage-1) + "한국"}
	var v struct{ Error struct{ Message string } }
	if err := json.Unmarshal(cut.JSON(), &v); err != nil || v.Error.Message != strings.Repeat("x", maxMessage-1) {
		t.Errorf("cut inside a character: %d bytes, %v", len(v.Error.Message), err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, label)) }
		e := ErrorBody{Message: strings.Repeat(text("message"), rapid.IntRange(0, 200).Draw(t, "times")), Type: text("type"), Code: text("code"),
			Param: text("param"), Class: text("class"), RequestID: text("id"), Attempts: []AttemptNote{{text("target"), text("class"), -1}}}
		for _, b := range [][]byte{e.JSON(), e.Event(Chat), e.Event(Responses)} {
			if !utf8.Valid(b) {
				t.Fatalf("not UTF-8: %q", b)
			}
		}
		if !json.Valid(e.JSON()) {
			t.Fatalf("not JSON: %q", e.JSON())
		}
		for _, ep := range []Endpoint{Chat, Responses} {
			var s Splitter
			s.Write(e.Event(ep))
			ev, ok, _ := s.Next()
			if !ok || !json.Valid(ev.Data) || Inspect(ep, ev)&Error == 0 {
				t.Fatalf("bad event %q", e.Event(ep))
			}
		}
	})
}

func TestMessage(t *testing.T) {
	now := time.Unix(1_764_500_000, 0)
	text := "Unavailable \"now\".\n한국어"
	for _, ep := range []Endpoint{Chat, Completions, Responses} {
		body, ct, ok := Message(ep, Envelope{Model: "m"}, "id1", now, text)
		if !ok || ct != "application/json" || InspectBody(ep, ct, body) != BodyGood || !UsageOf(ep, body).Present {
			t.Errorf("%s: %s %s", ep, ct, body)
		}
		body, ct, ok = Message(ep, Envelope{Model: "m", Stream: true, IncludeUsage: true}, "id1", now, text)
		if !ok || ct != "text/event-stream" {
			t.Errorf("%s: stream is %s", ep, ct)
		}
		got := strings.Join(signalsOf(t, ep, string(body)), " ")
		want := "content finish|stop usage|usage_only done"
		if ep == Responses {
			want = "none none none content content content content content|finish|stop|done|usage"
		}
		if got != want {
			t.Errorf("%s: stream reads %q, want %q", ep, got, want)
		}
		for _, line := range strings.Split(string(body), "\n") {
			if data, is := strings.CutPrefix(line, "data: "); is && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("%s: %s", ep, data)
			}
		}
		if _, plain, _ := Message(ep, Envelope{Stream: true}, "x", now, text); plain != ct {
			t.Errorf("%s: %s", ep, plain)
		}
	}
	if _, _, ok := Message(Embeddings, Envelope{}, "x", now, text); ok {
		t.Error("embeddings of a message")
	}
}

func TestModelList(t *testing.T) {
	want := `{"object":"list","data":[{"id":"a","object":"model","created":0,"owned_by":"hourthree"},{"id":"b\"","object":"model","created":0,"owned_by":"hourthree"}]}`
	if got := string(ModelList([]string{"b\"", "a"})); got != want {
		t.Errorf("got %s", got)
	}
	if got := string(ModelList(nil)); got != `{"object":"list","data":[]}` {
		t.Errorf("got %s", got)
	}
}
