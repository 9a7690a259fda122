package fault

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxParse bounds what is read of an error body.
const maxParse = 64 << 10

// Message is what an error body says to a person, for an operator's log.
func Message(body []byte) string { return parseError(body).message }

// errorBody is what the many shapes of error bodies have in common.
type errorBody struct {
	code, kind, param, inner, message string
	details                           []string // keys and short values of the metadata
	said                              bool     // the body is a JSON object
	flat                              bool     // an API gateway's statusCode and message
	resetsAt                          string
	retryDelay                        string
}

// parseError reads an error body of any of the known shapes. What cannot be
// read leaves everything empty but the message.
func parseError(body []byte) errorBody {
	body = body[:min(len(body), maxParse)]
	e := parseShape(body)
	// Some proxies put the upstream's whole error body into their own text.
	if e.code == "" && e.kind == "" && strings.HasPrefix(strings.TrimSpace(e.message), "{") {
		if inner := parseShape([]byte(e.message)); inner.said {
			return inner
		}
	}
	return e
}

func parseShape(body []byte) (e errorBody) {
	var top any
	if json.Unmarshal(body, &top) != nil {
		e.message = string(body)
		return e
	}
	if list, ok := top.([]any); ok && len(list) > 0 {
		top = list[0] // streams without SSE wrap the error in an array
	}
	m, ok := top.(map[string]any)
	if !ok {
		return e
	}
	e.said = true
	if r, ok := m["response"].(map[string]any); ok && r["error"] != nil { // response.failed
		m = r
	} else if inner := choiceError(m); inner != nil {
		m = map[string]any{"error": inner}
	}
	switch x := m["error"].(type) {
	case map[string]any:
		e.fill(x)
	case string:
		e.fill(m)
		e.message = x
	default:
		_, e.flat = m["statusCode"]
		e.fill(m)
	}
	return e
}

// choiceError finds an error inside a choice, as OpenRouter puts it.
func choiceError(m map[string]any) map[string]any {
	choices, _ := m["choices"].([]any)
	for _, c := range choices {
		if c, ok := c.(map[string]any); ok {
			if inner, ok := c["error"].(map[string]any); ok {
				return inner
			}
		}
	}
	return nil
}

func (e *errorBody) fill(m map[string]any) {
	e.code, e.param = text(m["code"]), text(m["param"])
	e.kind = first(m, "type", "error_type")
	e.message = first(m, "message", "detail")
	for _, name := range []string{"innererror", "inner_error"} { // SDK layers rename it
		if inner, ok := m[name].(map[string]any); ok {
			e.inner = text(inner["code"])
		}
	}
	e.resetsAt = text(m["resets_at"])
	if meta, ok := m["metadata"].(map[string]any); ok {
		e.metadata(meta)
	}
	details, _ := m["details"].([]any)
	for _, d := range details {
		if d, ok := d.(map[string]any); ok && strings.HasSuffix(text(d["@type"]), "RetryInfo") {
			e.retryDelay = text(d["retryDelay"])
		}
	}
}

func (e *errorBody) metadata(meta map[string]any) {
	for k, v := range meta {
		e.details = append(e.details, k)
		if s, ok := v.(string); ok && len(s) < 64 {
			e.details = append(e.details, s)
		}
	}
	if at := text(meta["resets_at"]); e.resetsAt == "" {
		e.resetsAt = at
	}
}

// first is the first of the named values that says something.
func first(m map[string]any, names ...string) string {
	for _, n := range names {
		if s := text(m[n]); s != "" {
			return s
		}
	}
	return ""
}

// text is a JSON value as a word: vendors send codes as text or as numbers.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}
