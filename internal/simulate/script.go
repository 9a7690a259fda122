package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// words are what a simulated model says.
var words = strings.Fields("This answer comes from a simulated provider. No model has read your request. Configure a real provider to get real answers from a language model.")

// script is one answer.
type script struct {
	t      *Transport
	q      request
	path   string
	prompt int
	mode   string
	id     string
}

func (s script) tokens() int {
	n := s.t.opt.Tokens
	if s.q.MaxTokens > 0 {
		n = min(n, s.q.MaxTokens)
	}
	return max(n, 1)
}

func (s script) text() []string {
	out := make([]string, s.tokens())
	for i := range out {
		out[i] = words[i%len(words)] + " "
	}
	return out
}

type object = map[string]any

// write returns the answer in the pieces in which it is sent.
func (s script) write() (parts []string, contentType string) {
	if s.mode == InBody {
		e := `{"error":{"message":"simulated error in a success","type":"server_error","param":null,"code":null}}`
		if s.q.Stream {
			return []string{"data: " + e + "\n\n"}, "text/event-stream"
		}
		return []string{e}, "application/json"
	}
	var whole any
	switch {
	case strings.HasSuffix(s.path, "/embeddings"):
		whole = s.embeddings()
	case strings.HasSuffix(s.path, "/models"):
		whole = object{"object": "list", "data": []object{{"id": "simulated", "object": "model", "created": 0, "owned_by": "hourthree"}}}
	case strings.HasSuffix(s.path, "/responses"):
		if s.q.Stream {
			return s.responseEvents(), "text/event-stream"
		}
		whole = s.response("completed")
	case strings.HasSuffix(s.path, "/completions"):
		if s.q.Stream {
			return s.chunks(), "text/event-stream"
		}
		whole = s.completion()
	default:
		whole = object{"object": "simulated", "id": s.id, "path": s.path}
	}
	b := marshal(whole)
	if s.mode == Truncate {
		return []string{b[:len(b)/2], b[len(b)/2:]}, "application/json"
	}
	return []string{b}, "application/json"
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("simulate: " + err.Error()) // own values only
	}
	return string(b)
}

func (s script) chat() bool { return strings.HasSuffix(s.path, "/chat/completions") }

func (s script) usage() object {
	n := s.tokens()
	return object{"prompt_tokens": s.prompt, "completion_tokens": n, "total_tokens": s.prompt + n}
}

// called is the tool that the request forces, if any.
func (s script) called() string {
	choice := string(s.q.ToolChoice)
	if len(s.q.Tools) == 0 || choice == "" || choice == `"auto"` || choice == `"none"` {
		return ""
	}
	return s.q.Tools[0].Function.Name
}

// content is what a whole answer says: text, or an empty object where JSON is
// asked for.
func (s script) content() string {
	if strings.HasPrefix(s.q.Format.Type, "json") {
		return "{}"
	}
	return strings.TrimSpace(strings.Join(s.text(), ""))
}

func (s script) completion() object {
	choice := object{"index": 0, "finish_reason": "stop", "logprobs": nil}
	kind := "text_completion"
	switch name := s.called(); {
	case !s.chat():
		choice["text"] = s.content()
	case name != "":
		kind, choice["finish_reason"] = "chat.completion", "tool_calls"
		choice["message"] = object{"role": "assistant", "content": nil, "tool_calls": []object{
			{"id": "call_1", "type": "function", "function": object{"name": name, "arguments": "{}"}}}}
	default:
		kind = "chat.completion"
		choice["message"] = object{"role": "assistant", "content": s.content(), "refusal": nil}
	}
	return object{"id": s.id, "object": kind, "created": time.Now().Unix(), "model": s.q.Model, "choices": []object{choice}, "usage": s.usage()}
}

// chunks is a chat or completion stream.
func (s script) chunks() []string {
	kind := "text_completion"
	if s.chat() {
		kind = "chat.completion.chunk"
	}
	frame := func(choices []object, usage object) string {
		o := object{"id": s.id, "object": kind, "created": time.Now().Unix(), "model": s.q.Model, "choices": choices}
		if usage != nil {
			o["usage"] = usage
		}
		return "data: " + marshal(o) + "\n\n"
	}
	piece := func(delta object, text string, finish any) string {
		c := object{"index": 0, "finish_reason": finish}
		if s.chat() {
			c["delta"] = delta
		} else {
			c["text"] = text
		}
		return frame([]object{c}, nil)
	}
	var parts []string
	finish := "stop"
	if s.chat() {
		parts = append(parts, piece(object{"role": "assistant", "content": ""}, "", nil))
	}
	if name := s.called(); name != "" {
		finish = "tool_calls"
		parts = append(parts, piece(object{"tool_calls": []object{{"index": 0, "id": "call_1", "type": "function", "function": object{"name": name, "arguments": "{}"}}}}, "", nil))
	} else if strings.HasPrefix(s.q.Format.Type, "json") {
		parts = append(parts, piece(object{"content": "{}"}, "{}", nil))
	} else {
		for _, w := range s.text() {
			parts = append(parts, piece(object{"content": w}, w, nil))
		}
	}
	parts = append(parts, piece(object{}, "", finish))
	if s.q.StreamOptions.IncludeUsage {
		parts = append(parts, frame([]object{}, s.usage()))
	}
	return append(parts, "data: [DONE]\n\n")
}

func (s script) embeddings() object {
	inputs := []json.RawMessage{s.q.Input}
	var list []json.RawMessage
	if json.Unmarshal(s.q.Input, &list) == nil {
		inputs = list
	}
	data := make([]object, len(inputs))
	for i, in := range inputs {
		data[i] = object{"object": "embedding", "index": i, "embedding": vector(in)}
	}
	return object{"object": "list", "model": s.q.Model, "data": data, "usage": object{"prompt_tokens": s.prompt, "total_tokens": s.prompt}}
}

// vector is the same for the same text.
func vector(text []byte) []float64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	v := make([]float64, 8)
	for i := range v {
		h = h*6364136223846793005 + 1442695040888963407
		v[i] = float64(int64(h>>33))/float64(1<<30) - 1
	}
	return v
}

func (s script) response(status string) object {
	o := object{"id": s.id, "object": "response", "created_at": time.Now().Unix(), "model": s.q.Model, "status": status, "output": []object{}}
	if status == "completed" {
		n := s.tokens()
		o["output"] = []object{s.item()}
		o["usage"] = object{"input_tokens": s.prompt, "output_tokens": n, "total_tokens": s.prompt + n}
	}
	return o
}

func (s script) item() object {
	return object{"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": s.content(), "annotations": []object{}}}}
}

func (s script) responseEvents() []string {
	var parts []string
	event := func(kind string, fields object) {
		fields["type"], fields["sequence_number"] = kind, len(parts)
		parts = append(parts, fmt.Sprintf("event: %s\ndata: %s\n\n", kind, marshal(fields)))
	}
	at := func(more object) object {
		o := object{"item_id": "msg_1", "output_index": 0, "content_index": 0}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	event("response.created", object{"response": s.response("in_progress")})
	event("response.output_item.added", object{"output_index": 0, "item": object{"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []object{}}})
	event("response.content_part.added", at(object{"part": object{"type": "output_text", "text": "", "annotations": []object{}}}))
	for _, w := range s.text() {
		event("response.output_text.delta", at(object{"delta": w}))
	}
	event("response.output_text.done", at(object{"text": s.content()}))
	event("response.output_item.done", object{"output_index": 0, "item": s.item()})
	event("response.completed", object{"response": s.response("completed")})
	return parts
}

// paced sends an answer's parts in their time.
type paced struct {
	ctx   context.Context
	parts []string
	next  int
	rest  string
	first time.Duration
	gap   time.Duration
	cut   bool
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if p.rest == "" {
		switch {
		case p.next == len(p.parts):
			return 0, io.EOF
		case p.cut && p.next >= (len(p.parts)+1)/2:
			return 0, io.ErrUnexpectedEOF
		}
		wait := p.gap
		if p.next == 0 {
			wait = p.first
		}
		if err := sleep(p.ctx, wait); err != nil {
			return 0, err
		}
		p.rest = p.parts[p.next]
		p.next++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (p *paced) Close() error { return nil }

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
