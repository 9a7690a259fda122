//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// openaiGo is the official OpenAI SDK for Go.
type openaiGo struct{}

func (openaiGo) name() string { return "openai-go" }

// The fixtures of test/clients/lib.mjs, for the Go libraries.
const (
	prompt = "Which city is this about?"
	pixel  = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

const (
	citySchema = `{"type":"object","properties":{"city":{"type":"string"},"population":{"type":"integer"}},"required":["city","population"],"additionalProperties":false}`
	toolSchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`
)

func object(schema string) map[string]any {
	var m map[string]any
	_ = json.Unmarshal([]byte(schema), &m) // one of the constants above
	return m
}

// timed runs a Go library's call with the job's abort and notes its times.
func timed(j job, call func(ctx context.Context, r *result) error) (r result) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if j.AbortMs > 0 {
		stop := time.AfterFunc(time.Duration(j.AbortMs)*time.Millisecond, func() {
			r.AbortedAt = time.Now().UnixMilli()
			cancel()
		})
		defer stop.Stop()
	}
	start := time.Now()
	err := call(ctx, &r)
	r.MS = time.Since(start).Milliseconds()
	if err != nil {
		r.Error = &thrown{Name: fmt.Sprintf("%T", err), Message: err.Error()}
		var api *openai.Error
		if errors.As(err, &api) {
			r.Error.Status, r.Error.Code = api.StatusCode, api.Code
		}
		var azure *azcore.ResponseError
		if errors.As(err, &azure) {
			r.Error.Status, r.Error.Code = azure.StatusCode, azure.ErrorCode
		}
	}
	return r
}

func (openaiGo) run(t *testing.T, j job) result {
	t.Helper()
	c := openai.NewClient(option.WithBaseURL(j.Origin+"/v1"), option.WithAPIKey(j.Key))
	ask := prompt
	if j.Prompt != "" {
		ask = j.Prompt
	}
	p := openai.ChatCompletionNewParams{Model: j.Model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(ask)}}
	if j.MaxTokens > 0 {
		p.MaxTokens = openai.Int(int64(j.MaxTokens))
	}
	switch j.Scenario {
	case "tools", "streamTools":
		p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: toolName, Parameters: object(toolSchema)})}
	case "schema":
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "city", Strict: openai.Bool(true), Schema: object(citySchema)}}
	case "vision":
		p.Messages[0] = openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart(ask), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: pixel})})
	case "streamUsage":
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	case "streamNoUsage":
		p.StreamOptions.IncludeUsage = openai.Bool(false)
	}
	return timed(j, func(ctx context.Context, r *result) error {
		switch j.Scenario {
		case "embed":
			return goEmbed(ctx, c, j, r)
		case "stream", "streamTools", "streamUsage", "streamNoUsage":
			return goStream(ctx, c, p, r)
		}
		return goChat(ctx, c, p, r)
	})
}

func goChat(ctx context.Context, c openai.Client, p openai.ChatCompletionNewParams, r *result) error {
	out, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		return err
	}
	m := out.Choices[0].Message
	r.Text, r.Finish = m.Content, out.Choices[0].FinishReason
	if len(m.ToolCalls) > 0 {
		r.tool(m.ToolCalls[0].Function.Name, m.ToolCalls[0].Function.Arguments)
	}
	return r.structured(p.ResponseFormat.OfJSONSchema != nil)
}

func goStream(ctx context.Context, c openai.Client, p openai.ChatCompletionNewParams, r *result) error {
	s := c.Chat.Completions.NewStreaming(ctx, p)
	defer s.Close()
	var tool, args string
	for s.Next() {
		chunk := s.Current()
		r.Chunks++
		if chunk.JSON.Usage.Valid() {
			r.Usages++
		}
		if len(chunk.Choices) == 0 {
			r.Bare++
			continue
		}
		d := chunk.Choices[0]
		r.Text += d.Delta.Content
		if d.FinishReason != "" {
			r.Finish = d.FinishReason
		}
		if len(d.Delta.ToolCalls) > 0 {
			tool += d.Delta.ToolCalls[0].Function.Name
			args += d.Delta.ToolCalls[0].Function.Arguments
		}
	}
	if tool != "" {
		r.tool(tool, args)
	}
	return s.Err()
}

func goEmbed(ctx context.Context, c openai.Client, j job, r *result) error {
	out, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: j.Model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"one", "two"}}})
	if err != nil {
		return err
	}
	for _, d := range out.Data {
		var v []float32
		for _, f := range d.Embedding {
			v = append(v, float32(f))
		}
		r.Vectors = append(r.Vectors, v)
	}
	return nil
}

func (r *result) tool(name, args string) {
	r.Tool = &toolCall{Name: name}
	_ = json.Unmarshal([]byte(args), &r.Tool.Args) // broken arguments show as missing ones
}

func (r *result) structured(wanted bool) error {
	if !wanted {
		return nil
	}
	r.Object = &city{}
	return json.Unmarshal([]byte(r.Text), r.Object)
}
