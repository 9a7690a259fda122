package wire

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxMessage bounds the message of an error body, in bytes.
const maxMessage = 2 << 10

// AttemptNote is one upstream call as an error body lists it.
type AttemptNote struct {
	Target string // provider/model
	Class  string
	Millis int64
}

// ErrorBody is an error of the router's own, in the OpenAI dialect.
type ErrorBody struct {
	Message, Type, Code, Param string // Code and Param are null when ""
	Class                      string
	RequestID                  string
	Attempts                   []AttemptNote
	// Sequence is the sequence_number of the event in a Responses stream.
	Sequence int64
}

// JSON returns the body of an error answer. It is valid UTF-8 whatever the
// fields hold, with a message of at most 2 KiB.
func (e ErrorBody) JSON() []byte {
	b := make([]byte, 0, 256+len(e.Message)+64*len(e.Attempts))
	b = append(b, `{"error":`...)
	b = e.appendError(b)
	return append(e.appendOwn(b), '}')
}

// Event returns the error as an event of a stream that has begun. It is not
// followed by a terminal marker.
func (e ErrorBody) Event(ep Endpoint) []byte {
	if ep != Responses {
		return append(append([]byte("data: "), e.JSON()...), "\n\n"...)
	}
	// Typed clients read the flat fields, others look for an error object.
	b := append([]byte(nil), "event: error\ndata: {\"type\":\"error\",\"sequence_number\":"...)
	b = strconv.AppendInt(b, e.Sequence, 10)
	b = appendOrNull(append(b, `,"code":`...), e.Code)
	b = appendText(append(b, `,"message":`...), clip(e.Message))
	b = appendOrNull(append(b, `,"param":`...), e.Param)
	b = e.appendError(append(b, `,"error":`...))
	return append(e.appendOwn(b), "}\n\n"...)
}

func (e ErrorBody) appendError(b []byte) []byte {
	b = appendText(append(b, `{"message":`...), clip(e.Message))
	b = appendText(append(b, `,"type":`...), e.Type)
	b = appendOrNull(append(b, `,"param":`...), e.Param)
	b = appendOrNull(append(b, `,"code":`...), e.Code)
	return append(b, '}')
}

func (e ErrorBody) appendOwn(b []byte) []byte {
	b = appendText(append(b, `,"hourthree":{"class":`...), e.Class)
	b = appendText(append(b, `,"request_id":`...), e.RequestID)
	b = append(b, `,"attempts":[`...)
	for i, a := range e.Attempts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"target":`...), a.Target)
		b = appendText(append(b, `,"class":`...), a.Class)
		b = strconv.AppendInt(append(b, `,"ms":`...), a.Millis, 10)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

// clip cuts a message to maxMessage between two characters.
func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	n := maxMessage
	for n > maxMessage-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func appendText(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	return b
}

func appendOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendText(b, s)
}
