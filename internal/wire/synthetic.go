package wire

import (
	"slices"
	"strconv"
	"time"
)

// Message is an answer of the router's own that says text: the degraded
// answer of a chat or completion, as JSON or as a stream, whichever the
// request asks for. It returns false for endpoints where text is no answer.
func Message(ep Endpoint, env Envelope, id string, now time.Time, text string) (body []byte, contentType string, ok bool) {
	m := message{ep: ep, id: id, model: env.Model, text: text, created: now.Unix()}
	switch {
	case ep != Chat && ep != Completions:
		return nil, "", false
	case env.Stream:
		b := append(m.append([]byte("data: "), true, false), "\n\n"...)
		b = append(m.append(append(b, "data: "...), true, true), "\n\n"...)
		return append(b, "data: [DONE]\n\n"...), "text/event-stream", true
	}
	return m.append(nil, false, true), "application/json", true
}

type message struct {
	ep              Endpoint
	id, model, text string
	created         int64
}

// append writes one object: a whole answer, or the first or last chunk.
func (m message) append(b []byte, chunk, last bool) []byte {
	object := "text_completion"
	if m.ep == Chat {
		object = "chat.completion"
		if chunk {
			object += ".chunk"
		}
	}
	b = appendText(append(b, `{"id":`...), m.id)
	b = appendText(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), m.created, 10)
	b = appendText(append(b, `,"model":`...), m.model)
	b = append(b, `,"choices":[{"index":0,`...)
	text := m.text
	if chunk && last {
		text = ""
	}
	switch {
	case m.ep == Completions:
		b = appendText(append(b, `"text":`...), text)
	case chunk && last:
		b = append(b, `"delta":{}`...)
	case chunk:
		b = append(appendText(append(b, `"delta":{"role":"assistant","content":`...), text), '}')
	default:
		b = append(appendText(append(b, `"message":{"role":"assistant","content":`...), text), '}')
	}
	if last {
		b = append(b, `,"logprobs":null,"finish_reason":"stop"}]`...)
	} else {
		b = append(b, `,"logprobs":null,"finish_reason":null}]`...)
	}
	if !chunk {
		b = append(b, `,"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`...)
	}
	return append(b, '}')
}

// ModelList is the answer to GET /models, or to GET /models/{id} for one.
func ModelList(names []string, one bool) []byte {
	slices.Sort(names)
	var b []byte
	entry := func(name string) {
		b = appendText(append(b, `{"id":`...), name)
		b = append(b, `,"object":"model","created":0,"owned_by":"hourthree"}`...)
	}
	if one {
		entry(names[0])
		return b
	}
	b = append(b, `{"object":"list","data":[`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		entry(name)
	}
	return append(b, `]}`...)
}
