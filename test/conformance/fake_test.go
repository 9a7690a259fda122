//go:build conformance

package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// upstreamKey is the credential that the fake upstream wants.
const upstreamKey = "sk-upstream-5f0c"

// fake is a scripted upstream that speaks the OpenAI dialect and Azure's
// paths. What it does stands in the model's name, before the first dot:
//
//	ok     the answer that the request asks for
//	bad    400 with badBody
//	500, 503, 429    that status
//	wait5  429 with Retry-After: 5
//	hang   nothing, ever
//	reset  the connection is closed without an answer
//	short  an answer that breaks off before its Content-Length
//	first, later    an error inside a 200 stream, before or after content
//	empty, null, page    a 200 with nothing, with null, with HTML
//	cut    a stream that breaks off; fin: one that ends early, cleanly
//	drip   a stream of a word every 20 ms for 3 s; rain: for ever
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	calls []*call
}

// call is one request as the fake got it.
type call struct {
	model  string
	path   string
	header http.Header
	body   []byte
	asked  asked
	closed chan time.Time // gets the moment the caller left before the answer's end
}

// asked is the part of a request body that the fake looks at.
type asked struct {
	Model          string            `json:"model"`
	Messages       []json.RawMessage `json:"messages"`
	Input          []string          `json:"input"`
	EncodingFormat string            `json:"encoding_format"`
	Stream         bool              `json:"stream"`
	StreamOptions  *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	ResponseFormat struct {
		Type string `json:"type"`
	} `json:"response_format"`
}

func startFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// made returns the calls for a model so far.
func (f *fake) made(model string) []*call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*call
	for _, c := range f.calls {
		if c.model == model {
			out = append(out, c)
		}
	}
	return out
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c := &call{path: r.URL.Path, header: r.Header.Clone(), body: body, closed: make(chan time.Time, 1)}
	_ = json.Unmarshal(body, &c.asked) // a body that is none has no model either
	c.model = c.asked.Model
	if rest, ok := strings.CutPrefix(r.URL.Path, "/openai/deployments/"); ok {
		c.model, _, _ = strings.Cut(rest, "/")
	}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+upstreamKey && r.Header.Get("Api-Key") != upstreamKey {
		refuse(w, http.StatusUnauthorized, "invalid_api_key")
		return
	}
	f.play(w, r, c)
}

// badBody is a refusal with everything that a router could be tempted to tidy.
const badBody = `{ "error" : {"message":"Unsupported value: 'temperature' — only 1 is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value","extra":[1.0,1e3]} }` + "\n"

func (f *fake) play(w http.ResponseWriter, r *http.Request, c *call) {
	verb, _, _ := strings.Cut(c.model, ".")
	switch verb {
	case "ok":
		c.answer(w)
	case "bad":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, badBody)
	case "500":
		refuse(w, http.StatusInternalServerError, "server_error")
	case "503":
		refuse(w, http.StatusServiceUnavailable, "service_unavailable")
	case "429":
		refuse(w, http.StatusTooManyRequests, "rate_limit_exceeded")
	case "wait5":
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusTooManyRequests, "rate_limit_exceeded")
	case "hang":
		<-r.Context().Done()
		c.closed <- time.Now()
	case "short":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "4096")
		_, _ = io.WriteString(w, `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"mess`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case "first", "later":
		s := startStream(w, c.model)
		if verb == "later" {
			s.text("It ")
		}
		fmt.Fprint(w, `data: {"error":{"message":"The engine has died.","type":"server_error","code":500}}`+"\n\ndata: [DONE]\n\n")
	case "empty":
		w.Header().Set("Content-Type", "text/event-stream")
	case "null":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "null")
	case "page":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><title>Service maintenance</title></html>")
	case "reset":
		panic(http.ErrAbortHandler)
	case "cut", "fin":
		s := startStream(w, c.model)
		for _, word := range []string{"It ", "is ", "about "} {
			s.text(word)
		}
		if verb == "cut" {
			panic(http.ErrAbortHandler)
		}
	case "drip", "rain":
		c.drip(w, r, verb == "rain")
	default:
		refuse(w, http.StatusNotFound, "model_not_found")
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":"The fake upstream was told to fail.","type":%q,"param":null,"code":%q}}`, code, code)
}

// drip streams words until its time is over or the caller has left.
func (c *call) drip(w http.ResponseWriter, r *http.Request, endless bool) {
	s := startStream(w, c.model)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < 150 || endless; i++ {
		s.text(fmt.Sprintf("word%d ", i))
		select {
		case <-r.Context().Done():
			c.closed <- time.Now()
			return
		case <-tick.C:
		}
	}
	s.end("stop", nil)
}

// Answers, by what is asked for.
const (
	plainText  = "It is about Malmö, a city in Sweden."
	objectText = `{"city":"Malmö","population":365644}`
	toolName   = "lookup_city"
	toolArgs   = `{"city":"Malmö"}`
)

var vector = []float32{0.25, 0.5, 0.75}

func (c *call) answer(w http.ResponseWriter) {
	switch {
	case strings.HasSuffix(c.path, "/embeddings"):
		c.embed(w)
	case strings.HasSuffix(c.path, "/chat/completions"):
		c.chat(w)
	case strings.HasSuffix(c.path, "/completions"):
		reply(w, map[string]any{"id": "cmpl-1", "object": "text_completion", "created": 1, "model": c.model,
			"choices": []any{map[string]any{"index": 0, "text": plainText, "finish_reason": "stop", "logprobs": nil}}, "usage": usage()})
	default:
		refuse(w, http.StatusNotFound, "not_found")
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a caller that has left is told nothing
}

func usage() map[string]any {
	return map[string]any{"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
}

func (c *call) embed(w http.ResponseWriter) {
	var raw bytes.Buffer
	for _, f := range vector {
		_ = binary.Write(&raw, binary.LittleEndian, math.Float32bits(f))
	}
	var data []any
	for i := range c.asked.Input {
		var v any = vector
		if c.asked.EncodingFormat == "base64" {
			v = base64.StdEncoding.EncodeToString(raw.Bytes())
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": v})
	}
	reply(w, map[string]any{"object": "list", "model": c.model, "data": data, "usage": map[string]any{"prompt_tokens": 2, "total_tokens": 2}})
}

// picture describes the image of the last message, "" if it has none.
func (a asked) picture() string {
	var m struct {
		Content []struct {
			ImageURL struct {
				URL string `json:"url"`
			} `json:"image_url"`
		} `json:"content"`
	}
	if len(a.Messages) == 0 || json.Unmarshal(a.Messages[len(a.Messages)-1], &m) != nil {
		return ""
	}
	for _, p := range m.Content {
		if p.ImageURL.URL != "" {
			return describe(p.ImageURL.URL)
		}
	}
	return ""
}

// describe names an image by its bytes, so that a test sees them arrive.
func describe(url string) string {
	return fmt.Sprintf("An image, %x.", sha256.Sum256([]byte(url)))
}

func (c *call) chat(w http.ResponseWriter) {
	text, tool := plainText, ""
	switch {
	case len(c.asked.Tools) > 0:
		text, tool = "", c.asked.Tools[0].Function.Name
	case c.asked.ResponseFormat.Type == "json_schema":
		text = objectText
	case c.asked.picture() != "":
		text = c.asked.picture()
	}
	if c.asked.Stream {
		c.stream(w, text, tool)
		return
	}
	message, finish := map[string]any{"role": "assistant", "content": text, "refusal": nil}, "stop"
	if tool != "" {
		message["content"], finish = nil, "tool_calls"
		message["tool_calls"] = []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": tool, "arguments": toolArgs}}}
	}
	reply(w, map[string]any{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": c.model, "usage": usage(),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish, "logprobs": nil}}})
}

func (c *call) stream(w http.ResponseWriter, text, tool string) {
	s := startStream(w, c.model)
	finish := "stop"
	if tool != "" {
		finish = "tool_calls"
		s.delta(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": tool, "arguments": ""}}}})
		for _, part := range []string{toolArgs[:5], toolArgs[5:]} {
			s.delta(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": part}}}})
		}
	}
	for word := range strings.SplitAfterSeq(text, " ") {
		if word != "" {
			s.text(word)
		}
	}
	var counted map[string]any
	if c.asked.StreamOptions != nil && c.asked.StreamOptions.IncludeUsage {
		counted = usage()
	}
	s.end(finish, counted)
}

// events writes the frames of one streamed answer.
type events struct {
	w     http.ResponseWriter
	model string
}

func startStream(w http.ResponseWriter, model string) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &events{w, model}
	s.delta(map[string]any{"role": "assistant", "content": ""})
	return s
}

func (s *events) frame(choices []any, counted map[string]any) {
	v := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": s.model, "choices": choices}
	if counted != nil {
		v["usage"] = counted
	}
	b, _ := json.Marshal(v) // maps of plain values
	fmt.Fprintf(s.w, "data: %s\n\n", b)
	s.w.(http.Flusher).Flush()
}

func (s *events) delta(d map[string]any) {
	s.frame([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
}

func (s *events) text(word string) { s.delta(map[string]any{"content": word}) }

func (s *events) end(finish string, counted map[string]any) {
	s.frame([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil)
	if counted != nil {
		s.frame([]any{}, counted)
	}
	fmt.Fprint(s.w, "data: [DONE]\n\n")
}
