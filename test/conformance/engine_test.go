//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/hourthree/hourthree/test/tinymodel"
)

// TestEngine puts a real engine behind the router: llama.cpp with a tiny
// model. Eight streams run at once; then the engine is killed in the middle
// of streams, which is an error to their readers, and the next request is
// served by the other engine.
func TestEngine(t *testing.T) {
	model := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(model); err != nil {
		t.Fatal(err)
	}
	const msPerToken = "10"
	first, process := startServer(t, "engine.mjs", model, msPerToken)
	second, _ := startServer(t, "engine.mjs", model, msPerToken)
	r := startRouter(t, conf{"workloads": workloads(),
		"providers": conf{
			"one": conf{"type": "openai-compatible", "base_url": first + "/v1", "vendor": "llamacpp"},
			"two": conf{"type": "openai-compatible", "base_url": second + "/v1", "vendor": "llamacpp"},
		},
		"models": conf{"tiny": order("one/tiny", "two/tiny")},
	})
	t.Run("clients", func(t *testing.T) {
		for _, c := range clients() {
			for _, scenario := range []string{"chat", "stream"} {
				got := c.run(t, job{Scenario: scenario, Origin: r.origin, Key: userKey, Model: "tiny"})
				if got.Error != nil || len(got.Text) < 20 || got.Finish == "" {
					t.Errorf("%s: %s: %+v, error %+v", c.name(), scenario, got, got.Error)
				}
			}
		}
	})
	t.Run("eight at once", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				got := openaiGo{}.run(t, job{Scenario: "stream", Origin: r.origin, Key: userKey, Model: "tiny", MaxTokens: 60, Prompt: fmt.Sprintf("story %d", i)})
				if got.Error != nil || got.Finish == "" {
					t.Errorf("stream %d: %+v, error %+v", i, got, got.Error)
				}
			})
		}
		wg.Wait()
	})
	t.Run("killed in mid-stream", func(t *testing.T) {
		var wg sync.WaitGroup
		js := clients()[0]
		wg.Go(func() {
			got := js.run(t, job{Scenario: "stream", Origin: r.origin, Key: userKey, Model: "tiny", MaxTokens: 120})
			if got.Error == nil || got.Text == "" {
				t.Errorf("%s: half an answer passed for a whole one: %+v", js.name(), got)
			}
		})
		eventually(t, 5*time.Second, "the first stream runs", func() bool {
			return slices.ContainsFunc(r.state(t).Targets, func(s targetState) bool { return s.Name == "one/tiny" && s.InFlight == 1 })
		})
		c := openai.NewClient(option.WithBaseURL(r.origin+"/v1"), option.WithAPIKey(userKey))
		s := c.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
			Model: "tiny", MaxTokens: openai.Int(120), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}})
		defer s.Close()
		n := 0
		for s.Next() {
			if n++; n == 30 {
				if err := process.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
		}
		if s.Err() == nil || n < 30 {
			t.Errorf("after %d chunks: %v", n, s.Err())
		}
		wg.Wait()
	})
	t.Run("the other engine serves on", func(t *testing.T) {
		resp := post(t, r.origin+"/v1/chat/completions", userKey, `{"model":"tiny","max_tokens":8,"messages":[{"role":"user","content":"hello"}]}`)
		body, _ := io.ReadAll(resp.Body) // a broken body fails to parse
		var answer openai.ChatCompletion
		err := json.Unmarshal(body, &answer)
		if resp.StatusCode != http.StatusOK || err != nil || len(answer.Choices) != 1 || strings.TrimSpace(answer.Choices[0].Message.Content) == "" {
			t.Errorf("%d, %v: %s", resp.StatusCode, err, body)
		}
		if got := resp.Header.Get("Hourthree-Target"); got != "two/tiny" {
			t.Errorf("served by %q", got)
		}
	})
}
