//go:build conformance

package conformance

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/ai/azopenai"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
)

// azureGo is Azure's own SDK for Go, with azcore's retries.
type azureGo struct{}

func (azureGo) name() string { return "azopenai" }

func (azureGo) run(t *testing.T, j job) result {
	t.Helper()
	var opt azopenai.ClientOptions
	opt.InsecureAllowCredentialWithHTTP = true // the router listens on loopback
	c, err := azopenai.NewClientWithKeyCredential(j.Origin, azcore.NewKeyCredential(j.Key), &opt)
	if err != nil {
		t.Fatal(err)
	}
	return timed(j, func(ctx context.Context, r *result) error {
		switch j.Scenario {
		case "embed":
			return azureEmbed(ctx, c, j, r)
		case "stream", "streamTools":
			return azureStream(ctx, c, j, r)
		}
		return azureChat(ctx, c, j, r)
	})
}

func azureMessages(j job) []azopenai.ChatRequestMessageClassification {
	ask := prompt
	if j.Prompt != "" {
		ask = j.Prompt
	}
	content := azopenai.NewChatRequestUserMessageContent(ask)
	if j.Scenario == "vision" {
		content = azopenai.NewChatRequestUserMessageContent([]azopenai.ChatCompletionRequestMessageContentPartClassification{
			&azopenai.ChatCompletionRequestMessageContentPartText{Text: to.Ptr(ask)},
			&azopenai.ChatCompletionRequestMessageContentPartImage{ImageURL: &azopenai.ChatCompletionRequestMessageContentPartImageURL{URL: to.Ptr(pixel)}},
		})
	}
	return []azopenai.ChatRequestMessageClassification{&azopenai.ChatRequestUserMessage{Content: content}}
}

func azureTools(j job) []azopenai.ChatCompletionsToolDefinitionClassification {
	if j.Scenario != "tools" && j.Scenario != "streamTools" {
		return nil
	}
	return []azopenai.ChatCompletionsToolDefinitionClassification{&azopenai.ChatCompletionsFunctionToolDefinition{
		Type: to.Ptr("function"), Function: &azopenai.ChatCompletionsFunctionToolDefinitionFunction{Name: to.Ptr(toolName), Parameters: []byte(toolSchema)}}}
}

func azureChat(ctx context.Context, c *azopenai.Client, j job, r *result) error {
	o := azopenai.ChatCompletionsOptions{DeploymentName: to.Ptr(j.Model), Messages: azureMessages(j), Tools: azureTools(j)}
	if j.Scenario == "schema" {
		o.ResponseFormat = &azopenai.ChatCompletionsJSONSchemaResponseFormat{JSONSchema: &azopenai.ChatCompletionsJSONSchemaResponseFormatJSONSchema{
			Name: to.Ptr("city"), Strict: to.Ptr(true), Schema: []byte(citySchema)}}
	}
	out, err := c.GetChatCompletions(ctx, o, nil)
	if err != nil {
		return err
	}
	m := out.Choices[0].Message
	if m.Content != nil {
		r.Text = *m.Content
	}
	r.Finish = string(*out.Choices[0].FinishReason)
	r.azureTool(m.ToolCalls, nil)
	return r.structured(j.Scenario == "schema")
}

func azureStream(ctx context.Context, c *azopenai.Client, j job, r *result) error {
	out, err := c.GetChatCompletionsStream(ctx, azopenai.ChatCompletionsStreamOptions{
		DeploymentName: to.Ptr(j.Model), Messages: azureMessages(j), Tools: azureTools(j)}, nil)
	if err != nil {
		return err
	}
	defer out.ChatCompletionsStream.Close()
	var args string
	for {
		chunk, err := out.ChatCompletionsStream.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.Chunks++
		if len(chunk.Choices) == 0 {
			r.Bare++
			continue
		}
		d := chunk.Choices[0]
		if d.Delta.Content != nil {
			r.Text += *d.Delta.Content
		}
		if d.FinishReason != nil {
			r.Finish = string(*d.FinishReason)
		}
		r.azureTool(d.Delta.ToolCalls, &args)
	}
}

// azureTool notes a tool call; args collects the pieces of a streamed one.
func (r *result) azureTool(calls []azopenai.ChatCompletionsToolCallClassification, args *string) {
	for _, call := range calls {
		f, ok := call.(*azopenai.ChatCompletionsFunctionToolCall)
		if !ok || f.Function == nil {
			continue
		}
		name, part := "", ""
		if f.Function.Name != nil {
			name = *f.Function.Name
		}
		if f.Function.Arguments != nil {
			part = *f.Function.Arguments
		}
		if args != nil {
			*args += part
			part = *args
		}
		if name == "" && r.Tool != nil {
			name = r.Tool.Name
		}
		r.tool(name, part)
	}
}

func azureEmbed(ctx context.Context, c *azopenai.Client, j job, r *result) error {
	out, err := c.GetEmbeddings(ctx, azopenai.EmbeddingsOptions{DeploymentName: to.Ptr(j.Model), Input: []string{"one", "two"}}, nil)
	if err != nil {
		return err
	}
	for _, d := range out.Data {
		r.Vectors = append(r.Vectors, d.Embedding)
	}
	return nil
}
