package testnet

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hourthree/hourthree/internal/memnet"
)

// Payloads of a chat stream, for SSE.
const (
	Role   = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	Finish = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	Usage  = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`
	Done   = `[DONE]`
)

// Content is the payload of a chat stream's event with text.
func Content(text string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text)
}

// Chat answers with a whole chat completion.
func Chat(text string) Step {
	return JSON(fmt.Sprintf(`{"id":"c1","object":"chat.completion","created":1,"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, text))
}

// ChatStream answers with a whole chat stream, one event a text.
func ChatStream(texts ...string) Step {
	events := []string{Role}
	for _, t := range texts {
		events = append(events, Content(t))
	}
	return SSE(append(events, Finish, Done)...)
}

// Client returns a client whose connections run over the network, for a
// server that a test has put there with Serve or otherwise.
func Client(t testing.TB, n *memnet.Net) *http.Client {
	transport := &http.Transport{DialContext: n.Dial, MaxIdleConnsPerHost: 1024}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Serve puts a handler on the network through a real http.Server and returns
// its base URL.
func Serve(t testing.TB, n *memnet.Net, host string, h http.Handler) string {
	l := n.Listen(host)
	s := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // ends with ErrServerClosed
	}()
	t.Cleanup(func() {
		_ = s.Close() // its connections go with it
		<-ended
	})
	return "http://" + host
}
