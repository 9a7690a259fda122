package wire

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// recorded is a stream as a provider sends it, with what each event says.
type recorded struct {
	ID, Endpoint string
	Events       [][2]string // signals, bytes
}

func recordings(t testing.TB) []recorded {
	t.Helper()
	text, err := os.ReadFile("testdata/streams.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func endpointNamed(name string) Endpoint {
	if name == "responses" {
		return Responses
	}
	return Chat
}

// Every recorded stream says the same wherever the reads are cut.
func TestInspectRecordedStreams(t *testing.T) {
	for _, rec := range recordings(t) {
		var text string
		var want []string
		for _, ev := range rec.Events {
			want, text = append(want, ev[0]), text+ev[1]
		}
		for _, form := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
			for at := range len(form) + 1 {
				got := signalsOf(t, endpointNamed(rec.Endpoint), form[:at], form[at:])
				if strings.Join(got, " ") != strings.Join(want, " ") {
					t.Fatalf("%s cut at %d: got %v, want %v", rec.ID, at, got, want)
				}
			}
		}
	}
}

func signalsOf(t *testing.T, ep Endpoint, pieces ...string) (all []string) {
	var s Splitter
	for _, p := range pieces {
		s.Write([]byte(p))
		for {
			ev, ok, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			all = append(all, Inspect(ep, ev).String())
		}
	}
	if _, ok := s.Flush(); ok {
		t.Fatal("something is left")
	}
	return all
}

func TestInspectChat(t *testing.T) {
	delta := func(d string) string {
		return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + d + `,"logprobs":null,"finish_reason":null}],"usage":null}`
	}
	for _, c := range []struct {
		data string
		want Signal
	}{
		{"", 0}, {"  ", 0}, {"[DONE]", Done}, {" [DONE] ", Done}, {"[DONE]x", Malformed}, {"nonsense", Malformed}, {"null", Malformed},
		{`{"choices":[`, Malformed}, {`{"choices":[]}x`, Malformed}, {`{}`, 0}, {` {"choices":[]} `, 0},
		{delta(`{"role":"assistant"}`), 0},
		{delta(`{"role":"assistant","content":""}`), 0},
		{delta(`{"role":"assistant","content":null,"refusal":null,"tool_calls":null}`), 0},
		{delta(`{"content":"","tool_calls":[],"reasoning_details":[],"audio":{"id":"audio_1"}}`), 0},
		{delta(`{"content":"x"}`), Content},
		{delta(`{"content":" "}`), Content},
		{delta(`{"c\u006fntent":"x"}`), Content},
		{delta(`{"content":"\""}`), Content},
		{delta(`{"content":[{"type":"text","text":""}]}`), 0},
		{delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]}]}`), Content},
		{delta(`{"reasoning_content":"x"}`), Content},
		{delta(`{"reasoning":"x","reasoning_details":[{"type":"reasoning.text","text":"x","format":"f","index":0}]}`), Content},
		{delta(`{"reasoning_details":[{"type":"reasoning.text","text":"","format":"f","index":0}]}`), 0},
		{delta(`{"refusal":"no"}`), Content},
		{delta(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]}`), Content},
		{delta(`{"function_call":{"name":"f"}}`), Content},
		{delta(`{"audio":{"id":"audio_1","data":"AAAA"}}`), Content},
		{delta(`null`), 0},
		{`{"choices":null}`, 0}, {`{"choices":[null]}`, 0}, {`{"choices":[{"index":0}]}`, 0},
		{`{"choices":[{"index":0,"text":"x","finish_reason":null}]}`, Content},
		{`{"choices":[{"index":0,"text":"","finish_reason":""}]}`, 0},
		{`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`, Finish},
		{`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, Content | Finish | Stop | HasUsage},
		{`{"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`, Finish | Error},
		{`{"choices":[{"delta":{},"error":{"code":502}}]}`, Error},
		{`{"choices":[{"delta":{"content":"x"},"content_filter_results":{"error":{"code":"content_filter_error"}}}]}`, Content},
		{`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, HasUsage | UsageOnly},
		{`{"usage":{"prompt_tokens":1}}`, HasUsage | UsageOnly},
		{`{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}`, HasUsage},
		{`{"choices":[],"usage":null}`, 0}, {`{"choices":[],"usage":{}}`, 0},
		{`{"error":null,"choices":[]}`, 0}, {`{"error":false}`, 0}, {`{"error":""}`, 0}, {`{"error":0}`, 0},
		{`{"error":{}}`, Error}, {`{"error":"text"}`, Error}, {`{"err\u006fr":"text"}`, Error}, {` {"error":"text"}`, Error},
		{`{"object":"error","message":"m","code":503}`, Error}, {`{"type":"error","message":"m"}`, Error},
		{delta(`{"content":"\"error\":{\"message\":1},\"finish_reason\":\"error\" [DONE]"}`), Content},
		{delta(`{"content":"","note":"\"content\":\"x\""}`), 0},
	} {
		for _, ep := range []Endpoint{Chat, Completions} {
			if got := Inspect(ep, Event{Data: []byte(c.data)}); got != c.want {
				t.Errorf("%s %s: got %v, want %v", ep, c.data, got, c.want)
			}
		}
	}
	if got := Inspect(Chat, Event{Name: []byte("error"), Data: []byte(`{"code":"x"}`)}); got != Error {
		t.Errorf("event: error gives %v", got)
	}
	if got := Inspect(Chat, Event{Comment: true}); got != 0 {
		t.Errorf("a comment gives %v", got)
	}
}

func TestInspectResponses(t *testing.T) {
	for _, c := range []struct {
		data string
		want Signal
	}{
		{`{"type":"response.created","response":{"id":"r","status":"in_progress","output":[],"error":null,"usage":null}}`, 0},
		{`{"type":"response.in_progress","response":{"status":"in_progress","instructions":"x"}}`, 0},
		{`{"type":"response.in_progress","response":{"output":[{"content":[{"text":"of an earlier turn"}]}]}}`, 0},
		{`{"type":"response.queued","response":{"status":"queued"}}`, 0},
		{`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`, 0},
		{`{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":"","status":"in_progress"}}`, 0},
		{`{"type":"response.content_part.added","item_id":"msg_1","part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}`, 0},
		{`{"type":"response.web_search_call.searching","item_id":"ws_1","output_index":0}`, 0},
		{`{"type":"response.output_text.delta","item_id":"msg_1","delta":"","obfuscation":"abc"}`, 0},
		{`{"type":"response.output_text.delta","item_id":"msg_1","delta":"x","obfuscation":"abc"}`, Content},
		{`{"type":"response.refusal.delta","delta":"x"}`, Content},
		{`{"type":"response.reasoning_summary_text.delta","delta":"x"}`, Content},
		{`{"type":"response.function_call_arguments.delta","delta":"{"}`, Content},
		{`{"type":"response.function_call_arguments.done","arguments":"{}"}`, Content},
		{`{"type":"response.output_item.done","item":{"id":"m","type":"message","content":[{"type":"output_text","text":"x"}]}}`, Content},
		{`{"type":"response.image_generation_call.partial_image","partial_image_b64":"AAAA"}`, Content},
		{`{"type":"response.completed","response":{"status":"completed","error":null,"output":[],"usage":{"input_tokens":1,"output_tokens":0}}}`, Done | Finish | Stop | HasUsage},
		{`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}}`, Done | Finish | Stop | Content},
		{`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":1}}}`, Done | Finish | HasUsage},
		{`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"},"output":[]}}`, Error},
		{`{"type":"response.failed"}`, Error}, {`{"type":"error","code":"server_error"}`, Error}, {`{"error":{"message":"m"}}`, Error},
		{`{"type":"response.output_text.delta","delta":"response.failed \"error\":{}"}`, Content},
		{`{"type":"response.new_thing","x":1}`, 0}, {`{`, Malformed}, {`[DONE]`, Done},
	} {
		if got := Inspect(Responses, Event{Data: []byte(c.data)}); got != c.want {
			t.Errorf("%s: got %v, want %v", c.data, got, c.want)
		}
	}
	// A payload without its type is told by the event's name.
	if got := Inspect(Responses, Event{Name: []byte("response.completed"), Data: []byte(`{"response":{}}`)}); got != Done|Finish|Stop {
		t.Errorf("by name: %v", got)
	}
}

func TestInspectOther(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       Signal
	}{
		{"", `{"x":1}`, Content}, {"", `text`, Content}, {"ping", `{}`, 0}, {"", `[DONE]`, Done},
		{"", `{"error":{"x":1}}`, Error}, {"", `{"error":null}`, Content}, {"", `{"type":"error"}`, Error}, {"error", `{}`, Error},
	} {
		if got := Inspect(Other, Event{Name: []byte(c.name), Data: []byte(c.data)}); got != c.want {
			t.Errorf("%q %s: got %v, want %v", c.name, c.data, got, c.want)
		}
	}
}

// Whatever text the model writes, it is content and nothing else.
func TestInspectIsNotFooledByText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{`"error":{"code":1}`, `"finish_reason":"stop"`, `"usage":{"prompt_tokens":1}`, `\`, `"`, `}]}`, "[DONE]", "\n", `\"`, `{`, "data: "}),
			rapid.StringN(0, 12, -1),
		), 1, 8).Draw(t, "text"), "")
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		want := Content
		if text == "" {
			want = 0
		}
		chat := `{"id":"c","choices":[{"index":0,"delta":{"content":` + string(quoted) + `},"finish_reason":null}]}`
		if got := Inspect(Chat, Event{Data: []byte(chat)}); got != want {
			t.Fatalf("chat %q: %v", text, got)
		}
		other := `{"type":"response.output_text.delta","delta":` + string(quoted) + `}`
		if got := Inspect(Responses, Event{Data: []byte(other)}); got != want {
			t.Fatalf("responses %q: %v", text, got)
		}
	})
}

// FuzzAnswer feeds what an upstream could send to everything that reads it:
// it must end, and a mangled payload is never an answer.
func FuzzAnswer(f *testing.F) {
	for _, rec := range recordings(f) {
		for _, ev := range rec.Events {
			_, data, _ := strings.Cut(ev[1], "data: ")
			f.Add([]byte(strings.TrimSpace(data)))
		}
	}
	f.Add([]byte(`{"choices":[{"message":{"content":[[[[[[[[[["x"]]]]]]]]]]}}],"usage":{"prompt_tokens":-1e999}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for ep := Other; ep <= Models; ep++ {
			sig := Inspect(ep, Event{Data: data})
			u := UsageOf(ep, data)
			for _, n := range []int64{u.Input, u.Output, u.Cached, u.Reasoning} {
				if n < 0 || n > maxCount {
					t.Fatalf("usage %+v", u)
				}
			}
			verdict := InspectBody(ep, "application/json", data)
			if ep != Other && verdict == BodyGood && !json.Valid(data) {
				t.Fatalf("%s: not JSON but good", ep)
			}
			if sig&Malformed != 0 && len(data) > 0 && data[0] == '{' && json.Valid(data) {
				t.Fatalf("%s: valid JSON but malformed", ep)
			}
			if ep == Chat && verdict == BodyGood && sig&Error != 0 {
				t.Fatal("good with an error")
			}
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	chunk := []byte(`{"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-2026-08-01","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	delta := []byte(`{"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_0123456789abcdef0123456789abcdef","output_index":0,"content_index":0,"delta":" token","logprobs":[],"obfuscation":"abcdefgh"}`)
	long := []byte(`{"id":"c","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 1<<20) + `"},"finish_reason":null}]}`)
	for _, c := range []struct {
		name string
		ep   Endpoint
		data []byte
	}{{"chat_chunk", Chat, chunk}, {"responses_delta", Responses, delta}, {"long", Chat, long}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.data)))
			b.ReportAllocs()
			for b.Loop() {
				if Inspect(c.ep, Event{Data: c.data}) != Content {
					b.Fatal("not content")
				}
			}
		})
	}
}
