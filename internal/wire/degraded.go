package wire

import (
	"bytes"
	"slices"
	"strconv"
	"time"
)

// Message makes a whole answer of a fixed text, in the shape the request
// asked for: the last resort when no upstream can answer. ok is false for
// endpoints whose answers are not text.
func Message(ep Endpoint, env Envelope, id string, now time.Time, text string) (body []byte, contentType string, ok bool) {
	m := message{model: env.Model, id: id, created: now.Unix(), text: text, usage: env.IncludeUsage}
	contentType = "application/json"
	if env.Stream {
		contentType = "text/event-stream"
	}
	switch {
	case ep == Responses && env.Stream:
		body = m.responseStream()
	case ep == Responses:
		body = m.response(nil, "completed")
	case (ep == Chat || ep == Completions) && env.Stream:
		body = m.chunks(ep)
	case ep == Chat || ep == Completions:
		body = m.whole(ep)
	default:
		return nil, "", false
	}
	return body, contentType, true
}

type message struct {
	model, id, text string
	created         int64
	usage           bool
}

const noUsage = `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`

// head begins an object of the chat family.
func (m message) head(b []byte, prefix, object string) []byte {
	b = appendText(append(b, `{"id":`...), prefix+m.id)
	b = appendText(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), m.created, 10)
	return appendText(append(b, `,"model":`...), m.model)
}

func (m message) whole(ep Endpoint) []byte {
	var b []byte
	if ep == Chat {
		b = m.head(b, "chatcmpl-", "chat.completion")
		b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
		b = append(appendText(b, m.text), `,"refusal":null}`...)
	} else {
		b = m.head(b, "cmpl-", "text_completion")
		b = appendText(append(b, `,"choices":[{"index":0,"text":`...), m.text)
	}
	return append(b, `,"logprobs":null,"finish_reason":"stop"}],`+noUsage+`}`...)
}

func (m message) chunks(ep Endpoint) []byte {
	prefix, object := "chatcmpl-", "chat.completion.chunk"
	content := append(appendText([]byte(`"delta":{"role":"assistant","content":`), m.text), '}')
	last := `"delta":{}`
	if ep == Completions {
		prefix, object = "cmpl-", "text_completion"
		content = appendText([]byte(`"text":`), m.text)
		last = `"text":""`
	}
	var b []byte
	b = m.head(append(b, "data: "...), prefix, object)
	b = append(append(b, `,"choices":[{"index":0,`...), content...)
	b = append(b, ",\"finish_reason\":null}]}\n\ndata: "...)
	b = m.head(b, prefix, object)
	b = append(append(b, `,"choices":[{"index":0,`...), last...)
	b = append(b, ",\"finish_reason\":\"stop\"}]}\n\n"...)
	if m.usage {
		b = m.head(append(b, "data: "...), prefix, object)
		b = append(b, `,"choices":[],`+noUsage+"}\n\n"...)
	}
	return append(b, "data: [DONE]\n\n"...)
}

// part is the text part of a Responses message.
func (m message) part(text string) []byte {
	return append(appendText([]byte(`{"type":"output_text","annotations":[],"text":`), text), '}')
}

// item is the message of a response, with the given part.
func (m message) item(part []byte, status string) []byte {
	b := appendText([]byte(`{"type":"message","role":"assistant","id":`), "msg_"+m.id)
	b = appendText(append(b, `,"status":`...), status)
	return append(append(append(b, `,"content":[`...), part...), `]}`...)
}

// response appends a response object; one in progress has no output yet.
func (m message) response(b []byte, status string) []byte {
	b = appendText(append(b, `{"id":`...), "resp_"+m.id)
	b = strconv.AppendInt(append(b, `,"object":"response","created_at":`...), m.created, 10)
	b = appendText(append(b, `,"status":`...), status)
	b = append(b, `,"error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,`+
		`"temperature":null,"tool_choice":"auto","tools":[],"top_p":null,"model":`...)
	b = append(appendText(b, m.model), `,"output":[`...)
	if status != "completed" {
		return append(b, `],"usage":null}`...)
	}
	b = append(b, m.item(m.part(m.text), status)...)
	return append(b, `],"usage":{"input_tokens":0,"input_tokens_details":{"cached_tokens":0},"output_tokens":0,`+
		`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":0}}`...)
}

func (m message) responseStream() []byte {
	at := append(appendText([]byte(`"item_id":`), "msg_"+m.id), `,"output_index":0,"content_index":0,`...)
	text := appendText(nil, m.text)
	events := []struct{ kind, fields string }{
		{"response.created", `"response":` + string(m.response(nil, "in_progress"))},
		{"response.output_item.added", `"output_index":0,"item":` + string(m.item(nil, "in_progress"))},
		{"response.content_part.added", string(at) + `"part":` + string(m.part(""))},
		{"response.output_text.delta", string(at) + `"logprobs":[],"delta":` + string(text)},
		{"response.output_text.done", string(at) + `"logprobs":[],"text":` + string(text)},
		{"response.content_part.done", string(at) + `"part":` + string(m.part(m.text))},
		{"response.output_item.done", `"output_index":0,"item":` + string(m.item(m.part(m.text), "completed"))},
		{"response.completed", `"response":` + string(m.response(nil, "completed"))},
	}
	var b bytes.Buffer
	for i, ev := range events {
		b.WriteString("event: " + ev.kind + "\ndata: {\"type\":\"" + ev.kind + "\",\"sequence_number\":" +
			strconv.Itoa(i) + "," + ev.fields + "}\n\n")
	}
	return b.Bytes()
}

// ModelList is the body of GET /models, in the order of the names.
func ModelList(names []string) []byte {
	b := []byte(`{"object":"list","data":[`)
	for i, name := range slices.Sorted(slices.Values(names)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, ModelCard(name)...)
	}
	return append(b, `]}`...)
}

// ModelCard is the body of GET /models/{name}.
func ModelCard(name string) []byte {
	b := appendText([]byte(`{"id":`), name)
	return append(b, `,"object":"model","created":0,"owned_by":"hourthree"}`...)
}
