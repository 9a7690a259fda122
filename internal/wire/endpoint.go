package wire

import "strings"

// Endpoint is the kind of API call a path asks for.
type Endpoint uint8

// The endpoints the router understands. Everything else is Other: it is
// passed through and only HTML in place of an answer is noticed.
const (
	Other Endpoint = iota
	Chat
	Completions
	Embeddings
	Responses
	Models
)

var endpointNames = [...]string{"other", "chat", "completions", "embeddings", "responses", "models"}

// String returns the name used in logs and metrics.
func (ep Endpoint) String() string {
	if int(ep) >= len(endpointNames) {
		return "unknown"
	}
	return endpointNames[ep]
}

// Operation is the name that OpenTelemetry's GenAI conventions have for what
// the endpoint does, "" for what is none of theirs.
func (ep Endpoint) Operation() string {
	switch ep {
	case Chat, Responses:
		return "chat"
	case Completions:
		return "text_completion"
	case Embeddings:
		return "embeddings"
	}
	return ""
}

// EndpointOf names the endpoint of a path, given without its version prefix:
// "/chat/completions". Only creating calls have their own endpoint; a path
// below one ("/responses/resp_1") is Other, except a model's own page.
func EndpointOf(path string) Endpoint {
	switch path = strings.TrimSuffix(path, "/"); path {
	case "/chat/completions":
		return Chat
	case "/completions":
		return Completions
	case "/embeddings":
		return Embeddings
	case "/responses":
		return Responses
	case "/models":
		return Models
	}
	if strings.HasPrefix(path, "/models/") {
		return Models
	}
	return Other
}

// EndsWithDone reports whether a stream of this endpoint ends with a [DONE]
// frame. Responses end with a typed event instead.
func (ep Endpoint) EndsWithDone() bool { return ep == Chat || ep == Completions }

// HasStreamOptions reports whether the request takes
// stream_options.include_usage. Responses streams carry usage unasked.
func (ep Endpoint) HasStreamOptions() bool { return ep == Chat || ep == Completions }
