package fault

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxParse bounds what is read of an error body.
const maxParse = 64 << 10

// errorBody is what the many shapes of error bodies have in common.
type errorBody struct {
	code, kind, param, inner, message string
	details                           []string
	flat                              bool
	resetsAt                          any
	retryDelay                        string
}

// parseError reads an error body of any of the known shapes. What cannot be
// read leaves everything empty.
func parseError(body []byte) (e errorBody) {
	if len(body) > maxParse {
		body = body[:maxParse]
	}
	var top any
	if json.Unmarshal(body, &top) != nil {
		e.message = string(body)
		return e
	}
	if list, ok := top.([]any); ok && len(list) > 0 {
		top = list[0] // Google's streams without SSE wrap the error in an array
	}
	m, ok := top.(map[string]any)
	if !ok {
		return e
	}
	if r, ok := m["response"].(map[string]any); ok { // response.failed
		if inner, ok := r["error"].(map[string]any); ok {
			m = map[string]any{"error": inner}
		}
	}
	if inner := choiceError(m); inner != nil {
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
	e.code, e.kind, e.param = text(m["code"]), text(m["type"]), text(m["param"])
	if e.message = text(m["message"]); e.message == "" {
		e.message = text(m["detail"])
	}
	if inner, ok := m["innererror"].(map[string]any); ok {
		e.inner = text(inner["code"])
	}
	e.resetsAt = m["resets_at"]
	if meta, ok := m["metadata"].(map[string]any); ok {
		for k, v := range meta {
			e.details = append(e.details, k)
			if s, ok := v.(string); ok && len(s) < 64 {
				e.details = append(e.details, s)
			}
		}
		if _, ok := meta["flagged_input"]; ok {
			e.details = append(e.details, "flagged")
		}
		if e.resetsAt == nil {
			e.resetsAt = meta["resets_at"]
		}
	}
	if details, ok := m["details"].([]any); ok {
		for _, d := range details {
			if d, ok := d.(map[string]any); ok && strings.HasSuffix(text(d["@type"]), "RetryInfo") {
				e.retryDelay = text(d["retryDelay"])
			}
		}
	}
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
