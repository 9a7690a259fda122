package upstream

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Marks that the load generator looks for.
const (
	// Stamp precedes the time a chunk was written, StampDigits digits of
	// nanoseconds since 1970.
	Stamp       = `"content":"t=`
	StampDigits = 19
	// Whole is in every whole JSON answer and in nothing else.
	Whole = `"content":"bench-answer `
)

const (
	jsonBytes  = 1200 // of a JSON answer's body
	chunkBytes = 280  // of an event
	usage      = `{"prompt_tokens":128,"completion_tokens":192,"total_tokens":320}`
	errorBody  = `{"error":{"message":"The fake upstream fails on purpose.","type":"server_error","param":null,"code":null}}`
	limitBody  = `{"error":{"message":"Rate limit reached.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
	chunkHead  = `data: {"id":"chatcmpl-bench0000000000000000000000","object":"chat.completion.chunk","created":1764460800,"model":"` + Model + `","system_fingerprint":"fp_bench0000",`
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
	lastChunk  = "0\r\n\r\n"
)

var (
	answerJSON       = whole("200 OK", "", chatBody())
	answerError200   = whole("200 OK", "", errorBody)
	answer404        = whole("404 Not Found", "", `{"error":{"message":"Unknown path.","type":"invalid_request_error","param":null,"code":null}}`)
	answer429        = whole("429 Too Many Requests", "Retry-After: "+strconv.Itoa(retryAfter)+"\r\n", limitBody)
	answer500        = whole("500 Internal Server Error", "", errorBody)
	answer503        = whole("503 Service Unavailable", "", errorBody)
	answerModels     = whole("200 OK", "", `{"object":"list","data":[{"id":"`+Model+`","object":"model","created":1764460800,"owned_by":"bench"}]}`)
	answerEmbeddings = whole("200 OK", "", embeddingsBody())

	streamStart      = []byte(streamHead + framed(chunkHead+`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`+"\n\n"))
	streamErrorFirst = []byte(streamHead + framed("data: "+errorBody+"\n\n") + lastChunk)
	streamErrorMid   = []byte(framed("data: "+errorBody+"\n\n") + lastChunk)
	streamEnd        = []byte(framed(finish()) + framed("data: [DONE]\n\n") + lastChunk)
	streamEndUsage   = []byte(framed(finish()) + framed(chunkHead+`"choices":[],"usage":`+usage+"}\n\n") + framed("data: [DONE]\n\n") + lastChunk)

	template = []byte(framed(contentEvent()))
	stampAt  = bytes.Index(template, []byte(Stamp)) + len(Stamp)
)

func whole(status, headers, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", status, headers, len(body), body)
}

func framed(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func chatBody() string {
	head := `{"id":"chatcmpl-bench0000000000000000000000","object":"chat.completion","created":1764460800,"model":"` + Model + `","choices":[{"index":0,"message":{"role":"assistant",` + Whole
	tail := `"},"logprobs":null,"finish_reason":"stop"}],"usage":` + usage + `,"system_fingerprint":"fp_bench0000"}`
	return head + strings.Repeat("word ", (jsonBytes-len(head)-len(tail))/5) + tail
}

func embeddingsBody() string {
	return `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[` + strings.Repeat("0.0123,", 127) + `0.0123]}],"model":"` + Model + `","usage":{"prompt_tokens":8,"total_tokens":8}}`
}

func contentEvent() string {
	head := chunkHead + `"choices":[{"index":0,"delta":{` + Stamp + strings.Repeat("0", StampDigits) + " "
	tail := `"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	return head + strings.Repeat("x", max(0, chunkBytes-len(head)-len(tail))) + tail
}

func finish() string {
	return chunkHead + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n"
}

// chunk is one content event that says when it was written.
func (x *exchange) chunk(now time.Time) []byte {
	if x.out == nil {
		x.out = bytes.Clone(template)
	}
	strconv.AppendInt(x.out[stampAt:stampAt:stampAt+StampDigits], now.UnixNano(), 10)
	return x.out
}
