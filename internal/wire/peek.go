package wire

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The codes of a BodyError. CodeMissingModel is for callers: a body without a
// model is an error only where no path names one.
const (
	CodeInvalidJSON  = "invalid_json"
	CodeDuplicateKey = "duplicate_key"
	CodeWrongName    = "wrong_name"
	CodeWrongType    = "wrong_type"
	CodeTooDeep      = "too_deep"
	CodeMissingModel = "missing_model"
)

const (
	// maxDepth is the deepest nesting of a request body, the body itself
	// being level one. Ten levels of a tool's JSON schema, the most OpenAI
	// takes, reach about 25.
	maxDepth = 32
	// maxModel bounds a model's name, in bytes. Azure's longest resource
	// path is shorter.
	maxModel = 512
	// maxPath and maxPathName bound what an error shows of the body.
	maxPath     = 120
	maxPathName = 40
)

// BodyError says what is wrong with a request body, where, and how to mend it.
type BodyError struct {
	Code    string // one of the Code constants
	Message string // for the caller: place and remedy, never a value of theirs
	Offset  int64  // bytes before the fault
	Param   string // the field at fault, "" when the JSON itself is
}

// Error returns the message.
func (e *BodyError) Error() string { return e.Message }

// Envelope is what the router needs to know of a request body. It remembers
// where in the body the editable parts are, so Splice works only with the
// bytes that were peeked. The zero Envelope stands for a body that was not.
type Envelope struct {
	Model        string // "" unless HasModel
	HasModel     bool
	Stream       bool
	IncludeUsage bool // stream_options.include_usage is true
	MaxTokens    int  // largest of max_tokens and its two newer names, 0 when unset
	Count        int  // "n": answers asked for, 0 when unset, unreadable or too many to tell apart -1
	Prompts      int  // prompts in the "prompt" of a completion, 0 when it is no list of them

	open    int  // offset behind the opening brace, 0 when not peeked
	empty   bool // the object has no members
	model   span
	options options
}

// span is a range of the body; to is 0 when there is none.
type span struct{ from, to int }

// options is where stream_options is.
type options struct {
	value span
	kind  byte // first byte of the value, 0 when absent
	empty bool
	usage span // value of include_usage when that is a bool or null
	known bool // include_usage is there, of whatever type
}

// Peek validates a JSON body whole and reads the few fields the router acts
// on. It accepts every object RFC 8259 allows, up to 32 levels deep, and
// refuses in addition what could be read differently by two parsers: a second
// "model", "stream" or "stream_options" at the top level, however escaped,
// one in another letter case, and values of a wrong type for the first two.
// All else, repeated names and large numbers further down included, is left for
// the upstream to judge. The error is always a *BodyError.
func Peek(body []byte) (Envelope, error) {
	p := peeker{scanner: scanner{b: body, limit: maxDepth}}
	if !p.top() {
		return Envelope{}, p.error()
	}
	return p.env, nil
}

// field is a top-level name the router acts on.
type field uint8

const (
	unknown field = iota
	fieldModel
	fieldStream
	fieldOptions
	fieldTokens
	fieldCount
	fieldPrompt
)

var fieldNames = [...]string{fieldModel: "model", fieldStream: "stream", fieldOptions: "stream_options"}

type peeker struct {
	scanner
	env   Envelope
	seen  [fieldTokens]bool
	param string
}

func (p *peeker) top() bool {
	if p.space() != '{' {
		return p.notObject()
	}
	p.i++
	p.env.open = p.i
	if p.space() == '}' {
		p.i++
		p.env.empty = true
		return p.end()
	}
	for {
		at := p.i
		key, ok := p.key()
		if !ok {
			return false
		}
		if !p.member(key, at) {
			if p.param == "" {
				p.within(key)
			}
			return false
		}
		more, ok := p.separator('}')
		if !ok {
			return false
		}
		if !more {
			return p.end()
		}
	}
}

func (p *peeker) notObject() bool {
	switch {
	case p.i >= len(p.b):
		return p.fail(p.i, "the body is empty; send a JSON object")
	case bytes.HasPrefix(p.b, []byte("\xef\xbb\xbf")):
		return p.fail(0, "the body starts with a byte order mark; send UTF-8 without one")
	}
	return p.unexpected("a JSON object")
}

// end makes sure that nothing follows the object.
func (p *peeker) end() bool {
	if p.space(); p.i < len(p.b) {
		return p.fail(p.i, "more text follows the JSON object; send one object only")
	}
	return true
}

// member takes one top-level value.
func (p *peeker) member(key []byte, at int) bool {
	f, exact := fieldOf(key, p.plain)
	if f == unknown {
		return p.value(1)
	}
	if f < fieldTokens && !p.once(f, exact, at) {
		return false
	}
	switch f {
	case fieldModel:
		return p.readModel()
	case fieldStream:
		return p.readStream()
	case fieldOptions:
		return p.readOptions()
	case fieldPrompt:
		return p.readPrompt()
	case fieldCount:
		return p.readCount()
	}
	n, ok := p.readNumber()
	p.env.MaxTokens = max(p.env.MaxTokens, n)
	return ok
}

// once refuses a second member of the same name, and a name in another letter
// case: some upstreams ignore case and would read it.
func (p *peeker) once(f field, exact bool, at int) bool {
	name := fieldNames[f]
	switch {
	case !exact:
		p.code, p.at, p.param = CodeWrongName, at, name
		p.why = "\"" + name + "\" is written in other letters; write it in lower case"
		return false
	case p.seen[f]:
		p.code, p.at, p.param = CodeDuplicateKey, at, name
		p.why = "\"" + name + "\" is given twice; give it once"
		return false
	}
	p.seen[f] = true
	return true
}

func (p *peeker) wrong(f field, at int, why string) bool {
	p.code, p.at, p.param, p.why = CodeWrongType, at, fieldNames[f], why
	return false
}

func (p *peeker) readModel() bool {
	from := p.i
	if p.i >= len(p.b) || p.b[p.i] != '"' {
		if !p.value(1) {
			return false
		}
		return p.wrong(fieldModel, from, "\"model\" must be a string")
	}
	if !p.str() {
		return false
	}
	switch n := p.i - from - 2; {
	case n == 0:
		return p.wrong(fieldModel, from, "\"model\" is empty; name a model")
	case n > maxModel:
		return p.wrong(fieldModel, from, "\"model\" is longer than "+strconv.Itoa(maxModel)+" bytes")
	}
	p.env.model = span{from, p.i}
	p.env.Model, p.env.HasModel = unquote(p.b[from+1:p.i-1], p.plain), true
	return true
}

func (p *peeker) readStream() bool {
	from := p.i
	if !p.value(1) {
		return false
	}
	switch p.b[from] {
	case 't':
		p.env.Stream = true
	case 'f', 'n':
	default:
		return p.wrong(fieldStream, from, "\"stream\" must be true, false or null")
	}
	return true
}

// readNumber takes a count. One that is no whole number is the upstream's to
// refuse and reads as 0.
func (p *peeker) readNumber() (n int, ok bool) {
	from := p.i
	if !p.value(1) {
		return 0, false
	}
	for _, c := range p.b[from:p.i] {
		if !isDigit(c) || n > maxCount {
			return 0, true
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// readCount takes the number of answers asked for. It may be written as a
// fraction; one that is none is the upstream's to refuse.
func (p *peeker) readCount() bool {
	from := p.i
	if !p.value(1) {
		return false
	}
	switch f, err := strconv.ParseFloat(string(p.b[from:min(p.i, from+32)]), 64); {
	case p.b[from] == 'n': // null
		p.env.Count = 0
	case err != nil || f != math.Trunc(f) || f > maxTally:
		p.env.Count = -1
	default:
		p.env.Count = max(0, int(f))
	}
	return true
}

// Choices is how many answers a stream is to bring, -1 when that is not known.
func (e *Envelope) Choices(ep Endpoint) int {
	n := max(e.Count, 1)
	if ep == Completions {
		n *= max(e.Prompts, 1)
	}
	if e.Count < 0 || n > maxTally {
		return -1
	}
	return n
}

// readPrompt counts the prompts of a completion: the elements of a list, unless
// these are the tokens of a single one.
func (p *peeker) readPrompt() bool {
	from := p.i
	if !p.value(1) {
		return false
	}
	c := skim{b: p.b[from:p.i]}
	if c.space() != '[' {
		return true
	}
	n := 0
	for ok := c.begin('['); ok; ok = c.sep(']') {
		if first := c.space(); first != '"' && first != '[' {
			return true
		}
		c.skip()
		n++
	}
	p.env.Prompts = n
	return true
}

func (p *peeker) readOptions() bool {
	o := &p.env.options
	o.value.from = p.i
	if p.i >= len(p.b) || p.b[p.i] != '{' {
		if !p.value(1) {
			return false
		}
		o.kind, o.value.to = p.b[o.value.from], p.i
		return true
	}
	o.kind = '{'
	p.i++
	if p.space() == '}' {
		p.i++
		o.value.to, o.empty = p.i, true
		return true
	}
	for {
		key, ok := p.key()
		if !ok {
			return false
		}
		if !p.readOption(isUsage(key, p.plain)) {
			p.within(key)
			return false
		}
		if more, ok := p.separator('}'); !more {
			o.value.to = p.i
			return ok
		}
	}
}

func isUsage(key []byte, plain bool) bool {
	const name = "include_usage"
	return string(key) == name || !plain && unquote(key, false) == name
}

// readOption takes one member of stream_options. Of several include_usage the
// last counts, as it does for nearly every parser.
func (p *peeker) readOption(usage bool) bool {
	from := p.i
	if !p.value(2) || !usage {
		return p.code == ""
	}
	o := &p.env.options
	o.known, o.usage = true, span{}
	c := p.b[from]
	if c == 't' || c == 'f' || c == 'n' {
		o.usage = span{from, p.i}
	}
	p.env.IncludeUsage = c == 't'
	return true
}

// fieldOf finds the field a name stands for. exact is false for a name that
// differs in letter case.
func fieldOf(key []byte, plain bool) (f field, exact bool) {
	if f := namedField(key); f != unknown {
		return f, true
	}
	if plain && isSnake(key) {
		return unknown, false
	}
	name := []byte(unquote(key, plain))
	if f := namedField(name); f != unknown {
		return f, true
	}
	for f := fieldModel; f < fieldTokens; f++ {
		if bytes.EqualFold(name, []byte(fieldNames[f])) {
			return f, false
		}
	}
	return unknown, false
}

func namedField(key []byte) field {
	switch string(key) {
	case "model":
		return fieldModel
	case "stream":
		return fieldStream
	case "stream_options":
		return fieldOptions
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		return fieldTokens
	case "n":
		return fieldCount
	case "prompt":
		return fieldPrompt
	}
	return unknown
}

// isSnake reports that a name has no letter case to fold.
func isSnake(key []byte) bool {
	for _, c := range key {
		if c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unquote gives the text of a string from the bytes between its quotes.
func unquote(inner []byte, plain bool) string {
	if plain {
		return string(inner)
	}
	quoted := make([]byte, 0, len(inner)+2)
	quoted = append(append(append(quoted, '"'), inner...), '"')
	text, _ := jsontext.AppendUnquote(nil, quoted) // half a surrogate pair becomes U+FFFD
	return string(text)
}

func (p *peeker) error() *BodyError {
	at := min(p.at, len(p.b))
	line := 1 + bytes.Count(p.b[:at], []byte("\n"))
	column := 1 + utf8.RuneCount(p.b[bytes.LastIndexByte(p.b[:at], '\n')+1:at])
	place := "line " + strconv.Itoa(line) + ", column " + strconv.Itoa(column) + " (byte " + strconv.Itoa(at) + ")"
	if path := p.place(); path != "" {
		place += ", in " + path
	}
	what := "The request body cannot be used"
	if p.code == CodeInvalidJSON {
		what = "The request body is not valid JSON"
	}
	return &BodyError{Code: p.code, Message: what + ": " + place + ": " + p.why + ".", Offset: int64(at), Param: p.param}
}
