package wire

import (
	"bytes"
	"strings"
)

// Signal is what an event of a stream says, as a set of bits.
type Signal uint16

// The signals.
const (
	// Content is set for text, reasoning, a refusal, a tool or function call
	// or audio. Roles, empty strings, comments, pings, filter results and the
	// opening events of a response are not content.
	Content Signal = 1 << iota
	// Error is set for an error frame of any shape, or a choice that ended in
	// an error. It holds beside any other signal.
	Error
	// Finish is set when a choice or the response says that it is finished,
	// for whatever reason. Filter and usage frames may follow, and so may the
	// other choices: Tally counts them.
	Finish
	// Stop is set beside Finish when the reason is the natural one, so that
	// content was to be expected.
	Stop
	// Done is set for the terminal marker: [DONE], or the last event of a
	// response. It says nothing about success: servers send it after errors.
	Done
	// HasUsage is set when the event has token counts for UsageOf.
	HasUsage
	// UsageOnly is set beside HasUsage when the event has no choices: the
	// extra frame that stream_options.include_usage asks for.
	UsageOnly
	// Malformed is set when the payload was to be a JSON object and its
	// structure cannot be followed.
	Malformed
)

var signalNames = [...]string{"content", "error", "finish", "stop", "done", "usage", "usage_only", "malformed"}

// String lists the signals, "none" when there is none.
func (s Signal) String() string {
	var names []string
	for i, name := range signalNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "|")
}

var doneMark = []byte("[DONE]")

// Inspect reads what an event says. It follows the structure of the payload,
// so words inside the model's own text are never mistaken for signals.
func Inspect(ep Endpoint, ev Event) Signal {
	if string(ev.Name) == "error" {
		return Error
	}
	data := ev.Data
	if len(data) == 0 {
		return 0
	}
	if data[0] != '{' {
		data = bytes.TrimSpace(data)
		if bytes.Equal(data, doneMark) {
			return Done
		}
		if len(data) == 0 {
			return 0
		}
	}
	c := skim{b: data}
	var sig Signal
	switch ep {
	case Chat, Completions:
		sig = c.chunk(nil)
	case Responses:
		sig = c.responseEvent(ev.Name)
	default:
		return c.otherEvent(ev.Name)
	}
	if c.space(); c.bad || c.i < len(c.b) {
		sig |= Malformed
	}
	return sig
}

// shape counts what a whole chat body has, for InspectBody.
type shape struct {
	choices int
	flat    bool // a message or detail beside no choices: a bare error shape
}

// chunk reads a chat or completion object, whole or a chunk of a stream.
func (c *skim) chunk(s *shape) Signal {
	var sig Signal
	choices := 0
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "choices":
			var got Signal
			got, choices = c.choices()
			sig |= got
		case "usage":
			if c.filled() {
				sig |= HasUsage
			}
		case "error":
			if c.truthy() {
				sig |= Error
			}
		case "object", "type":
			if string(c.text()) == "error" {
				sig |= Error
			}
		case "message", "detail":
			if c.truthy() && s != nil {
				s.flat = true
			}
		default:
			c.skip()
		}
	}
	if sig&HasUsage != 0 && choices == 0 {
		sig |= UsageOnly
	}
	if s != nil {
		s.choices = choices
	}
	return sig
}

func (c *skim) choices() (sig Signal, n int) {
	if c.space() != '[' {
		c.skip()
		return 0, 0
	}
	for ok := c.begin('['); ok; ok = c.sep(']') {
		n++
		if c.space() != '{' {
			c.skip()
			continue
		}
		for ok := c.begin('{'); ok; ok = c.sep('}') {
			sig |= c.choiceMember()
		}
	}
	return sig, n
}

func (c *skim) choiceMember() Signal {
	switch string(c.key()) {
	case "delta", "message":
		return c.delta()
	case "text":
		if len(c.text()) > 0 {
			return Content
		}
	case "finish_reason":
		return finish(c.text())
	case "error":
		if c.truthy() {
			return Error
		}
	default:
		c.skip()
	}
	return 0
}

// Tally counts the choices of one chat or completion stream. The zero value
// has seen none.
type Tally struct {
	begun, ended choiceSet
}

// maxTally bounds the choices that are told apart: OpenAI takes 128.
const maxTally = 256

type choiceSet struct {
	bits [maxTally / 64]uint64
	n    int
}

func (s *choiceSet) add(index int64) {
	if index >= maxTally || s.bits[index/64]&(1<<(index%64)) != 0 {
		return
	}
	s.bits[index/64] |= 1 << (index % 64)
	s.n++
}

// Add notes the choices in the payload of an event, each once.
func (t *Tally) Add(data []byte) {
	c := skim{b: data}
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		if string(c.key()) != "choices" || c.space() != '[' {
			c.skip()
			continue
		}
		for ok := c.begin('['); ok; ok = c.sep(']') {
			if c.space() != '{' {
				c.skip()
				continue
			}
			t.choice(&c)
		}
	}
}

func (t *Tally) choice(c *skim) {
	index, given, done := int64(0), false, false
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "index":
			c.count(&index, &given)
		case "finish_reason":
			done = len(c.text()) > 0
		default:
			c.skip()
		}
	}
	t.begun.add(index)
	if done {
		t.ended.add(index)
	}
}

// Finished is the number of choices that have finished.
func (t *Tally) Finished() int { return t.ended.n }

// All reports that every choice that was seen has finished, and that there
// was one.
func (t *Tally) All() bool { return t.ended.n > 0 && t.ended == t.begun }

func finish(reason []byte) Signal {
	switch string(reason) {
	case "":
		return 0
	case "stop", "eos_token", "stop_sequence":
		return Finish | Stop
	case "error":
		return Finish | Error
	}
	return Finish
}

// delta reads a message or a piece of one.
func (c *skim) delta() (sig Signal) {
	if c.space() != '{' {
		c.skip()
		return 0
	}
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "content", "reasoning_content", "reasoning", "refusal",
			"reasoning_details", "thinking", "thinking_blocks", "audio", "images":
			if c.carries(maxCarry) {
				sig |= Content
			}
		case "tool_calls", "function_call":
			if c.filled() {
				sig |= Content
			}
		default:
			c.skip()
		}
	}
	return sig
}

// responseEvent reads an event of a Responses stream.
func (c *skim) responseEvent(name []byte) Signal {
	var sig Signal
	kind := name
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "type":
			if t := c.text(); t != nil {
				kind = t
			}
		case "error":
			if c.truthy() {
				sig |= Error
			}
		case "response":
			sig |= c.response()
		case "delta", "text", "refusal", "arguments", "input", "code", "transcript",
			"part", "item", "partial_image_b64":
			if c.carries(maxCarry) {
				sig |= Content
			}
		default:
			c.skip()
		}
	}
	switch string(kind) {
	case "error", "response.failed":
		sig = sig&^Content | Error // an error's code is no text
	case "response.completed":
		sig |= Done | Finish | Stop
	case "response.incomplete":
		sig |= Done | Finish
	case "response.created", "response.in_progress", "response.queued":
		sig &^= Content // may echo the request
	}
	return sig
}

// response reads a response object, whole or as an event carries it.
func (c *skim) response() (sig Signal) {
	if c.space() != '{' {
		c.skip()
		return 0
	}
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "error":
			if c.truthy() {
				sig |= Error
			}
		case "status":
			if string(c.text()) == "failed" {
				sig |= Error
			}
		case "output":
			if c.carries(maxCarry) {
				sig |= Content
			}
		case "usage":
			if c.filled() {
				sig |= HasUsage
			}
		default:
			c.skip()
		}
	}
	return sig
}

// otherEvent reads an event of an API the router does not know: any payload
// is content unless it is an error or a ping.
func (c *skim) otherEvent(name []byte) Signal {
	if string(name) == "ping" {
		return 0
	}
	sig := Content
	if c.space() != '{' {
		return sig
	}
	for ok := c.begin('{'); ok; ok = c.sep('}') {
		switch string(c.key()) {
		case "error":
			if c.truthy() {
				sig = Error
			}
		case "type":
			if string(c.text()) == "error" {
				sig = Error
			}
		default:
			c.skip()
		}
	}
	return sig
}
