package simulate

import (
	"encoding/json"
	"strings"
)

// words are what a simulated model says, over and over.
var words = strings.Fields("This answer comes from a simulated provider. No model has read your request. Configure a real provider to get real answers from a language model.")

// maxChoices bounds n, as OpenAI does.
const maxChoices = 128

// pieceBytes is the size of a token of JSON.
const pieceBytes = 6

// request is what the simulation reads of a body.
type request struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	N                   int             `json:"n"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	MaxOutputTokens     int             `json:"max_output_tokens"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ResponseFormat      format          `json:"response_format"`
	Text                struct {
		Format format `json:"format"`
	} `json:"text"`
	Input          json.RawMessage `json:"input"`
	Dimensions     int             `json:"dimensions"`
	EncodingFormat string          `json:"encoding_format"`
}

// tool is a function, in the form of chat or in the flat one of responses.
type tool struct {
	function
	Function function `json:"function"`
}

type function struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

// format is a response format, in the form of chat or in the flat one of responses.
type format struct {
	Type       string          `json:"type"`
	Schema     json.RawMessage `json:"schema"`
	JSONSchema struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

type object = map[string]any

// answer is one answer: what is said, in tokens. It belongs to its call.
type answer struct {
	kind
	request
	id      string
	created int64
	prompt  int // tokens

	call   string // name of the function that is called, "" for text
	made   string // JSON said in place of words, "" for words
	tokens int    // in each choice
	cut    bool   // by the caller's limit
}

// say decides what is said, in at most want tokens of words.
func (a *answer) say(want int) {
	a.N = min(max(a.N, 1), maxChoices)
	f := a.forced()
	switch {
	case f.Name != "":
		a.call, a.made = f.Name, sample(f.Parameters)
	case a.ResponseFormat.Type == "json_schema":
		a.made = sample(a.ResponseFormat.JSONSchema.Schema)
	case a.Text.Format.Type == "json_schema":
		a.made = sample(a.Text.Format.Schema)
	case a.ResponseFormat.Type == "json_object", a.Text.Format.Type == "json_object":
		a.made = `{"answer":"simulated"}`
	}
	a.tokens = want
	if a.made != "" {
		a.tokens = (len(a.made) + pieceBytes - 1) / pieceBytes
	}
	for _, limit := range []int{a.MaxTokens, a.MaxCompletionTokens, a.MaxOutputTokens} {
		if limit > 0 && a.tokens > limit {
			a.tokens, a.cut = limit, true
		}
	}
}

// forced is the function that tool_choice demands: the one it names, or the
// first.
func (a *answer) forced() function {
	choice := string(a.ToolChoice)
	if len(a.Tools) == 0 || choice == "" || choice == "null" || choice == `"auto"` || choice == `"none"` {
		return function{}
	}
	var named tool
	if json.Unmarshal(a.ToolChoice, &named) != nil {
		return a.Tools[0].flat() // "required"
	}
	for _, t := range a.Tools {
		if t.flat().Name == named.flat().Name {
			return t.flat()
		}
	}
	return a.Tools[0].flat()
}

func (t tool) flat() function {
	if t.Function.Name != "" {
		return t.Function
	}
	return t.function
}

// token is the i-th token of the answer.
func (a *answer) token(i int) string {
	if a.made != "" {
		from := min(i*pieceBytes, len(a.made))
		return a.made[from:min(from+pieceBytes, len(a.made))]
	}
	if i+1 == a.tokens {
		return words[i%len(words)]
	}
	return words[i%len(words)] + " "
}

// said is the whole of it.
func (a *answer) said() string {
	var b strings.Builder
	for i := range a.tokens {
		b.WriteString(a.token(i))
	}
	return b.String()
}

// finish is the finish_reason of a choice.
func (a *answer) finish() string {
	switch {
	case a.cut:
		return "length"
	case a.call != "":
		return "tool_calls"
	}
	return "stop"
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("simulate: " + err.Error()) // own values only
	}
	return string(b)
}

// frames is a stream: all of it is known before it is sent, but made piece
// by piece.
type frames struct {
	head   []string         // before the first token
	tokens int              // content frames
	token  func(int) string // the i-th content frame
	tail   []string         // behind the last token
}

func (f *frames) len() int { return len(f.head) + f.tokens + len(f.tail) }

// at is the i-th frame; content says whether it is a token.
func (f *frames) at(i int) (frame string, content bool) {
	switch k := i - len(f.head); {
	case k < 0:
		return f.head[i], false
	case k < f.tokens:
		return f.token(k), true
	default:
		return f.tail[k-f.tokens], false
	}
}

// whole is an answer as one JSON object.
func (a *answer) whole() string {
	switch a.kind {
	case chat, completions:
		return marshal(a.completion())
	case responses:
		return marshal(a.response(true))
	case embeddings:
		return marshal(a.embeddings())
	}
	return marshal(object{"object": "list", "data": []object{{"id": "simulated", "object": "model", "created": 0, "owned_by": "hourthree"}}})
}

// streamed is an answer as events; nil when the endpoint has none.
func (a *answer) streamed() *frames {
	switch {
	case !a.Stream:
		return nil
	case a.kind == chat, a.kind == completions:
		return a.chunks()
	case a.kind == responses:
		return a.events()
	}
	return nil
}

// waits is how many tokens a whole answer takes its time for.
func (a *answer) waits() int {
	if a.kind == embeddings || a.kind == models {
		return 0
	}
	return a.tokens
}
