package wire

import (
	"bytes"
	"strings"
)

// BodyVerdict says whether the body of a 2xx answer holds an answer.
type BodyVerdict uint8

// The verdicts. All but BodyGood are failures of the upstream.
const (
	BodyGood        BodyVerdict = iota
	BodyEmpty                   // no bytes, or an answer with nothing in it
	BodyErrorInside             // an error in the clothes of a success
	BodyNotObject               // JSON, but null, a list or a scalar
	BodyNotJSON                 // cut off or garbled
	BodyHTML                    // a page of some proxy on the way
)

var verdictNames = [...]string{"good", "empty", "error_inside", "not_object", "not_json", "html"}

// String returns the name used in logs.
func (v BodyVerdict) String() string {
	if int(v) >= len(verdictNames) {
		return "unknown"
	}
	return verdictNames[v]
}

// answerDepth is the nesting accepted in an answer. It only guards the stack.
const answerDepth = 1000

// InspectBody judges the whole body of a 2xx answer that is not a stream.
//
// A chat or text answer is empty when no choice has text, a refusal, a call
// or audio, unless it ended for another reason than having finished (length,
// content_filter, tool_calls), or reports output tokens. A response may have
// no output while it is queued, running or incomplete. For Other nothing is
// refused: it may be any kind of file.
func InspectBody(ep Endpoint, contentType string, body []byte) BodyVerdict {
	if ep == Other {
		return BodyGood
	}
	if isHTML(contentType) {
		return BodyHTML
	}
	body = bytes.Trim(body, " \t\r\n")
	switch {
	case len(body) == 0:
		return BodyEmpty
	case body[0] == '<':
		return BodyHTML
	}
	s := scanner{b: body, limit: answerDepth, loose: true}
	if !s.value(0) || s.i < len(body) {
		return BodyNotJSON
	}
	if body[0] != '{' {
		return BodyNotObject
	}
	switch ep {
	case Chat, Completions:
		return chatVerdict(ep, body)
	case Responses:
		return responseVerdict(body)
	}
	return listVerdict(ep, body)
}

func isHTML(contentType string) bool {
	const html = "text/html"
	t := strings.TrimSpace(contentType)
	return len(t) >= len(html) && strings.EqualFold(t[:len(html)], html)
}

func chatVerdict(ep Endpoint, body []byte) BodyVerdict {
	c := skim{b: body}
	var s shape
	switch sig := c.chunk(&s); {
	case sig&Error != 0, s.choices == 0 && s.flat:
		return BodyErrorInside
	case s.choices == 0:
		return BodyEmpty
	case sig&Content != 0, sig&Finish != 0 && sig&Stop == 0, UsageOf(ep, body).Output > 0:
		return BodyGood
	}
	return BodyEmpty
}

func responseVerdict(body []byte) BodyVerdict {
	c := skim{b: body}
	status, hasStatus, none := "", false, false
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "error":
			if c.truthy() {
				return BodyErrorInside
			}
		case "object", "type":
			if string(c.text()) == "error" {
				return BodyErrorInside
			}
		case "status":
			status, hasStatus = string(c.text()), true
		case "output":
			none = !c.filled()
		default:
			c.skip()
		}
	}
	switch {
	case status == "failed":
		return BodyErrorInside
	case !hasStatus && none, status == "completed" && none && UsageOf(Responses, body).Output == 0:
		return BodyEmpty
	}
	return BodyGood
}

// listVerdict judges embeddings and model lists.
func listVerdict(ep Endpoint, body []byte) BodyVerdict {
	c := skim{b: body}
	verdict := BodyGood
	if ep == Embeddings {
		verdict = BodyEmpty
	}
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "error":
			if c.truthy() {
				return BodyErrorInside
			}
		case "object", "type":
			if string(c.text()) == "error" {
				return BodyErrorInside
			}
		case "data":
			if c.filled() {
				verdict = BodyGood
			}
		default:
			c.skip()
		}
	}
	return verdict
}
