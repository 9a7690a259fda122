package simulate_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/hourthree/hourthree/internal/simulate"
)

func half() float64 { return 0.5 }

func client(o simulate.Options) openai.Client {
	return openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL("http://simulated.invalid/v1/"), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: simulate.New(o, half)}))
}

func hello(more func(*openai.ChatCompletionNewParams)) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}
	if more != nil {
		more(&p)
	}
	return p
}

// TestChat: the official client reads a whole chat answer, and it takes the
// time that was asked for.
func TestChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(simulate.Options{FirstContent: time.Second, PerToken: 100 * time.Millisecond, Tokens: 11})
		start := time.Now()
		got, err := c.Chat.Completions.New(t.Context(), hello(func(p *openai.ChatCompletionNewParams) { p.N = openai.Int(2) }))
		if err != nil || len(got.Choices) != 2 || got.Model != "m" || got.ID == "" {
			t.Fatal(got, err)
		}
		m := got.Choices[1]
		if len(strings.Fields(m.Message.Content)) != 11 || m.FinishReason != "stop" || m.Message.Role != "assistant" || m.Index != 1 {
			t.Error(m)
		}
		if u := got.Usage; u.CompletionTokens != 22 || u.PromptTokens == 0 || u.TotalTokens != u.PromptTokens+22 {
			t.Error(u)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Error(took)
		}
		got, err = c.Chat.Completions.New(t.Context(), hello(func(p *openai.ChatCompletionNewParams) { p.MaxCompletionTokens = openai.Int(3) }))
		if err != nil || got.Choices[0].FinishReason != "length" || got.Usage.CompletionTokens != 3 {
			t.Error(got, err)
		}
	})
}

// TestChatStream: the same as a stream, with usage when it is asked for.
func TestChatStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(simulate.Options{FirstContent: time.Second, PerToken: 100 * time.Millisecond, Tokens: 11})
		for _, usage := range []bool{false, true} {
			start, first := time.Now(), time.Duration(0)
			s := c.Chat.Completions.NewStreaming(t.Context(), hello(func(p *openai.ChatCompletionNewParams) {
				if usage {
					p.StreamOptions.IncludeUsage = openai.Bool(true)
				}
			}))
			var acc openai.ChatCompletionAccumulator
			for s.Next() {
				if !acc.AddChunk(s.Current()) {
					t.Fatal("chunk refused")
				}
				if first == 0 && acc.Choices[0].Message.Content != "" {
					first = time.Since(start)
				}
			}
			if s.Err() != nil || len(strings.Fields(acc.Choices[0].Message.Content)) != 11 || acc.Choices[0].FinishReason != "stop" {
				t.Fatal(s.Err(), acc)
			}
			if first != time.Second || time.Since(start) != 2*time.Second {
				t.Error(first, time.Since(start))
			}
			if (acc.Usage.CompletionTokens == 11) != usage {
				t.Error(acc.Usage)
			}
		}
	})
}

var weather = openai.FunctionDefinitionParam{
	Name: "weather",
	Parameters: openai.FunctionParameters{
		"type": "object", "required": []string{"city", "days", "unit"},
		"properties": map[string]any{
			"city": map[string]any{"type": "string"}, "days": map[string]any{"type": "integer", "minimum": 3},
			"unit": map[string]any{"enum": []string{"C", "F"}}, "note": map[string]any{"type": "string"},
		},
	},
}

const weatherArguments = `{"city":"text","days":3,"unit":"C"}`

// TestTools: a forced call has the function that was named and arguments that
// fit its schema, whole and streamed; a free choice is text.
func TestTools(t *testing.T) {
	c := client(simulate.Options{})
	forced := hello(func(p *openai.ChatCompletionNewParams) {
		p.Tools = []openai.ChatCompletionToolUnionParam{
			openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "other"}), openai.ChatCompletionFunctionTool(weather),
		}
		p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "weather"})
	})
	check := func(got openai.ChatCompletion, err error) {
		t.Helper()
		if err != nil || len(got.Choices) != 1 || len(got.Choices[0].Message.ToolCalls) != 1 || got.Choices[0].FinishReason != "tool_calls" {
			t.Fatal(got, err)
		}
		call := got.Choices[0].Message.ToolCalls[0]
		if call.Function.Name != "weather" || call.Function.Arguments != weatherArguments || call.ID == "" || call.Type != "function" {
			t.Error(call)
		}
	}
	got, err := c.Chat.Completions.New(t.Context(), forced)
	check(*got, err)
	s := c.Chat.Completions.NewStreaming(t.Context(), forced)
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		acc.AddChunk(s.Current())
	}
	// The accumulator leaves a call's type empty.
	if len(acc.Choices) == 1 && len(acc.Choices[0].Message.ToolCalls) == 1 {
		acc.Choices[0].Message.ToolCalls[0].Type = "function"
	}
	check(acc.ChatCompletion, s.Err())
	forced.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{}
	if got, err := c.Chat.Completions.New(t.Context(), forced); err != nil || got.Choices[0].Message.Content == "" || got.Choices[0].FinishReason != "stop" {
		t.Error(got, err)
	}
}

// TestStructured: an answer fits the schema that was given.
func TestStructured(t *testing.T) {
	c := client(simulate.Options{})
	for _, k := range []struct {
		schema any
		want   string
	}{
		{weather.Parameters, weatherArguments},
		{map[string]any{"type": "object", "required": []string{"next", "tags", "ok", "x"}, "properties": map[string]any{
			"next": map[string]any{"anyOf": []any{map[string]any{"$ref": "#"}, map[string]any{"type": "null"}}},
			"tags": map[string]any{"type": "array", "minItems": 2, "items": map[string]any{"$ref": "#/$defs/tag"}},
			"ok":   map[string]any{"type": []string{"boolean", "null"}}, "x": map[string]any{"const": "y"},
		}, "$defs": map[string]any{"tag": map[string]any{"type": "string", "minLength": 6}}}, `{"next":null,"ok":true,"tags":["xxtext","xxtext"],"x":"y"}`},
		{"not a schema", "{}"},
	} {
		got, err := c.Chat.Completions.New(t.Context(), hello(func(p *openai.ChatCompletionNewParams) {
			p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "s", Schema: k.schema}}
		}))
		if err != nil || got.Choices[0].Message.Content != k.want {
			t.Error(got.Choices, err, k.want)
		}
	}
	got, err := c.Chat.Completions.New(t.Context(), hello(func(p *openai.ChatCompletionNewParams) {
		p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	}))
	if err != nil || !json.Valid([]byte(got.Choices[0].Message.Content)) {
		t.Error(got, err)
	}
}

// TestCompletions: the older endpoint, both ways.
func TestCompletions(t *testing.T) {
	c := client(simulate.Options{Tokens: 4})
	p := openai.CompletionNewParams{Model: "m", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("hello")}}
	got, err := c.Completions.New(t.Context(), p)
	if err != nil || got.Choices[0].Text != "This answer comes from" || got.Usage.CompletionTokens != 4 {
		t.Fatal(got, err)
	}
	s, text := c.Completions.NewStreaming(t.Context(), p), ""
	for s.Next() {
		text += s.Current().Choices[0].Text
	}
	if s.Err() != nil || text != got.Choices[0].Text {
		t.Error(text, s.Err())
	}
}

// TestEmbeddings: one vector an input, of length one, the same each time and
// different for different texts, in both encodings.
func TestEmbeddings(t *testing.T) {
	c := client(simulate.Options{})
	in := func(u openai.EmbeddingNewParamsInputUnion, size int64) *openai.CreateEmbeddingResponse {
		t.Helper()
		p := openai.EmbeddingNewParams{Model: "m", Input: u}
		if size > 0 {
			p.Dimensions = openai.Int(size)
		}
		got, err := c.Embeddings.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := in(openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b", "a"}}, 32)
	a, b, again := got.Data[0].Embedding, got.Data[1].Embedding, got.Data[2].Embedding
	sum := 0.0
	for i := range a {
		sum += a[i] * a[i]
		if a[i] != again[i] {
			t.Fatal("the same text has two vectors")
		}
	}
	if len(a) != 32 || math.Abs(sum-1) > 1e-4 || a[0] == b[0] || got.Data[2].Index != 2 || got.Usage.PromptTokens == 0 {
		t.Error(sum, got)
	}
	for _, u := range []openai.EmbeddingNewParamsInputUnion{{OfString: openai.String("a")}, {OfArrayOfTokens: []int64{1, 2, 3}}, {OfArrayOfTokenArrays: [][]int64{{1, 2}}}} {
		if got := in(u, 0); len(got.Data) != 1 || len(got.Data[0].Embedding) != 256 {
			t.Error(len(got.Data))
		}
	}
	var raw struct {
		Data []struct{ Embedding []byte } // base64
	}
	err := c.Post(t.Context(), "embeddings", map[string]any{"model": "m", "input": "a", "dimensions": 32, "encoding_format": "base64"}, &raw)
	if err != nil || len(raw.Data) != 1 || len(raw.Data[0].Embedding) != 32*4 {
		t.Fatal(raw, err)
	}
}

// TestResponses: text and calls, whole and as events whose numbers rise by one.
func TestResponses(t *testing.T) {
	c := client(simulate.Options{Tokens: 5})
	text := responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")}}
	call := text
	call.Tools = []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "weather", Parameters: weather.Parameters}}}
	call.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsRequired)}
	short := text
	short.MaxOutputTokens = openai.Int(2)
	for _, k := range []struct {
		name   string
		params responses.ResponseNewParams
		end    string
		status responses.ResponseStatus
	}{{"text", text, "response.completed", "completed"}, {"call", call, "response.completed", "completed"}, {"short", short, "response.incomplete", "incomplete"}} {
		whole, err := c.Responses.New(t.Context(), k.params)
		if err != nil || whole.Status != k.status || len(whole.Output) != 1 || whole.Usage.OutputTokens == 0 {
			t.Fatal(k.name, whole, err)
		}
		s := c.Responses.NewStreaming(t.Context(), k.params)
		delta, last := "", ""
		for n := int64(0); s.Next(); n++ {
			e := s.Current()
			if e.SequenceNumber != n {
				t.Errorf("%s: %s has number %d, want %d", k.name, e.Type, e.SequenceNumber, n)
			}
			delta, last = delta+e.Delta, e.Type
			if e.Type == k.end && e.Response.Output[0].Type != whole.Output[0].Type {
				t.Error(k.name, e.Response.Output)
			}
		}
		want := whole.OutputText()
		if k.name == "call" {
			want = whole.Output[0].Arguments.OfString
			if want != weatherArguments || whole.Output[0].Name != "weather" {
				t.Error(whole.Output[0])
			}
		}
		if s.Err() != nil || last != k.end || delta != want || want == "" {
			t.Error(k.name, s.Err(), last, delta, want)
		}
	}
}

// TestModelsAndRefusals: the list, and what is not there.
func TestModelsAndRefusals(t *testing.T) {
	c := client(simulate.Options{})
	if page, err := c.Models.List(t.Context()); err != nil || len(page.Data) != 1 {
		t.Error(page, err)
	}
	var refusal *openai.Error
	if err := c.Post(t.Context(), "rerank", map[string]any{"model": "m"}, nil); !errors.As(err, &refusal) || refusal.StatusCode != 404 {
		t.Error(err)
	}
	if _, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{}); !errors.As(err, &refusal) || refusal.StatusCode != 400 || refusal.Type != "invalid_request_error" {
		t.Error(err)
	}
}
