package wire

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func TestPeekReadsWhatTheRouterActsOn(t *testing.T) {
	for _, c := range []struct {
		body string
		want Envelope // exported fields only
	}{
		{`{}`, Envelope{}},
		{" \t\r\n{ } \n", Envelope{}},
		{`{"model":"m"}`, Envelope{Model: "m", HasModel: true}},
		{`{"mod\u0065l":"m"}`, Envelope{Model: "m", HasModel: true}},
		{`{"model":"a\"b\\\u00e9"}`, Envelope{Model: `a"b\é`, HasModel: true}},
		{`{"model":"m","stream":true}`, Envelope{Model: "m", HasModel: true, Stream: true}},
		{`{"stream":null}`, Envelope{}},
		{`{"stream":false,"max_tokens":7,"max_completion_tokens":9}`, Envelope{MaxTokens: 9}},
		{`{"max_output_tokens":1e400}`, Envelope{}},
		{`{"max_tokens":99999999999999999999999999}`, Envelope{}},
		{`{"stream_options":{"include_usage":true}}`, Envelope{IncludeUsage: true}},
		{`{"stream_options":{"x":[1,{"include_usage":true}]}}`, Envelope{}},
		{`{"stream_options":{"include_usage":true,"include_usage":false}}`, Envelope{}},
		{`{"stream_options":null}`, Envelope{}},
		{`{"stream_options":"odd"}`, Envelope{}},
		{`{"a":{"model":"x","model":"y"},"b":[{"stream":1}],"n":-0.0e-999,"a":9007199254740993}`, Envelope{}},
		{`{"Max_Tokens":1,"models":[],"x":{"Model":"x"}}`, Envelope{}},
		{`{"text":"\ud800 half a pair"}`, Envelope{}},
		{`{"text":"한국어 🙂"}`, Envelope{}},
		{nest(maxDepth-1, `{"a":`, `1`, `}`), Envelope{}},
	} {
		env, err := Peek([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		got := Envelope{Model: env.Model, HasModel: env.HasModel, Stream: env.Stream, IncludeUsage: env.IncludeUsage, MaxTokens: env.MaxTokens}
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.body, got, c.want)
		}
	}
}

func nest(n int, open, inner, end string) string {
	return `{"x":` + strings.Repeat(open, n-1) + inner + strings.Repeat(end, n-1) + `}`
}

func TestPeekRefusesWithPlaceAndRemedy(t *testing.T) {
	for _, c := range []struct{ body, code, param, says string }{
		{``, CodeInvalidJSON, "", "empty"},
		{"  \n", CodeInvalidJSON, "", "line 2"},
		{`null`, CodeInvalidJSON, "", "a JSON object"},
		{`[]`, CodeInvalidJSON, "", "a JSON object"},
		{`"x"`, CodeInvalidJSON, "", "a JSON object"},
		{"\xef\xbb\xbf{}", CodeInvalidJSON, "", "byte order mark"},
		{`{} {}`, CodeInvalidJSON, "", "column 4 (byte 3)"},
		{`{"a":1,}`, CodeInvalidJSON, "", "a name in quotes"},
		{`{"a" 1}`, CodeInvalidJSON, "", "a colon"},
		{`{"a":1 "b":2}`, CodeInvalidJSON, "", "a comma or '}'"},
		{`{"a":[1 2]}`, CodeInvalidJSON, "", "a comma or ']'"},
		{`{"a":`, CodeInvalidJSON, "", "the text ends"},
		{`{"model":`, CodeInvalidJSON, "", "the text ends"},
		{`{"stream_options":`, CodeInvalidJSON, "", "the text ends"},
		{`{"stream_options":{"a":`, CodeInvalidJSON, "", "in stream_options.a"},
		{`{"model":"m`, CodeInvalidJSON, "", "inside a string"},
		{`{"a":01}`, CodeInvalidJSON, "", "unexpected '1'"},
		{`{"a":-}`, CodeInvalidJSON, "", "a digit"},
		{`{"a":1.}`, CodeInvalidJSON, "", "a digit"},
		{`{"a":1e}`, CodeInvalidJSON, "", "a digit"},
		{`{"a":True}`, CodeInvalidJSON, "", "a value"},
		{`{"a":trve}`, CodeInvalidJSON, "", "without quotes"},
		{`{"a":NaN}`, CodeInvalidJSON, "", "a value"},
		{`{'a':1}`, CodeInvalidJSON, "", "a name in quotes"},
		{"{\"messages\":[1,{\"content\":\"a\n\"}]}", CodeInvalidJSON, "", "in messages[1].content: control character"},
		{`{"a":"\x"}`, CodeInvalidJSON, "", "backslash"},
		{`{"a":"\u12g4"}`, CodeInvalidJSON, "", "backslash"},
		{"{\"a\":\"\xff\"}", CodeInvalidJSON, "", "UTF-8"},
		{"{\"a\":\"12345678\xed\xa0\x80\"}", CodeInvalidJSON, "", "UTF-8"},
		{"{\n \"a\": \"é\",\n \"é\" x}", CodeInvalidJSON, "", "line 3, column 6"},
		{nest(maxDepth, `[`, `1`, `]`)[:maxDepth+4] + `[`, CodeTooDeep, "", "32 levels"},
		{nest(2<<20, `[`, ``, ``), CodeTooDeep, "", "32 levels"},
		{strings.Repeat("[", 2<<20), CodeInvalidJSON, "", "a JSON object"},
		{nest(40, `{"a":`, `1`, `}`), CodeTooDeep, "", "32 levels"},
		{`{"model":"a","model":"b"}`, CodeDuplicateKey, "model", "byte 13"},
		{`{"model":"a","mod\u0065l":"b"}`, CodeDuplicateKey, "model", "twice"},
		{`{"model":"a","Model":"b"}`, CodeWrongName, "model", "lower case"},
		{`{"MODEL":"a","model":"b"}`, CodeWrongName, "model", "lower case"},
		{`{"stream":true,"\u017ftream":false}`, CodeWrongName, "stream", "lower case"},
		{"{\"\u017ftream\":true,\"stream\":false}", CodeWrongName, "stream", "lower case"},
		{`{"stream_options":{},"stream_options":{}}`, CodeDuplicateKey, "stream_options", "twice"},
		{`{"model":""}`, CodeWrongType, "model", "empty"},
		{`{"model":null}`, CodeWrongType, "model", "a string"},
		{`{"model":["a"]}`, CodeWrongType, "model", "a string"},
		{`{"model":"` + strings.Repeat("m", maxModel+1) + `"}`, CodeWrongType, "model", "longer"},
		{`{"stream":"true"}`, CodeWrongType, "stream", "true, false or null"},
		{`{"stream":1}`, CodeWrongType, "stream", "true, false or null"},
	} {
		_, err := Peek([]byte(c.body))
		var bad *BodyError
		if !errors.As(err, &bad) {
			t.Errorf("%.60q: no error", c.body)
			continue
		}
		if bad.Code != c.code || bad.Param != c.param || !strings.Contains(bad.Message, c.says) {
			t.Errorf("%.60q: got %s %q %q, want %s %q …%s…", c.body, bad.Code, bad.Param, bad.Message, c.code, c.param, c.says)
		}
		if !utf8.ValidString(bad.Message) || len(bad.Message) > 512 {
			t.Errorf("%.60q: message %q", c.body, bad.Message)
		}
	}
}

// oracle judges a body with jsontext, which Peek must agree with.
func oracle(body []byte) (code string) {
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	deep := false
	for first := true; ; first = false {
		tok, err := d.ReadToken()
		if err == io.EOF && !first {
			break
		}
		if err != nil || first && tok.Kind() != '{' {
			if deep {
				return CodeTooDeep
			}
			return CodeInvalidJSON
		}
		deep = deep || d.StackDepth() > maxDepth
		if !first && d.StackDepth() == 0 {
			if _, err := d.ReadToken(); err != io.EOF {
				return CodeInvalidJSON
			}
			break
		}
	}
	if !utf8.Valid(body) {
		return CodeInvalidJSON
	}
	if deep {
		return CodeTooDeep
	}
	return ""
}

func FuzzPeek(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"model":"m","stream":true,"stream_options":{"include_usage":false},"messages":[{"role":"user","content":"é\n\"\u00e9"}]}`,
		`{"model":"a","mod\u0065l":"b"}`, nest(40, `[`, `1`, `]`), nest(32, `{"a":`, `1`, `}`), `{"a":-0.5E+10,"b":[true,false,null]}`,
		"{\"a\":\"0123456789abcdef\xff\"}", `{"a":"\ud800\udc00\ud800"}`, "{\"Model\":1}\n", `{"a":"0123456\"","b":"01234567\\"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		want := oracle(body)
		env, err := Peek(body)
		var bad *BodyError
		errors.As(err, &bad)
		switch {
		case bad == nil:
			if want != "" {
				t.Fatalf("accepted, jsontext says %s", want)
			}
			checkEnvelope(t, body, &env)
		case bad.Code == CodeDuplicateKey, bad.Code == CodeWrongName, bad.Code == CodeWrongType:
			if bad.Param == "" {
				t.Fatal("no param")
			}
		case want == "":
			t.Fatalf("refused: %v", bad)
		case want == CodeTooDeep && bad.Code != CodeTooDeep:
			t.Fatalf("%s, want too deep", bad.Code)
		}
		if bad != nil && (bad.Offset < 0 || bad.Offset > int64(len(body)) || !utf8.ValidString(bad.Message)) {
			t.Fatalf("bad error %+v", bad)
		}
	})
}

// members decodes an object with jsontext: its names in order, and the raw
// value of each.
func members(t testing.TB, body []byte) (names []string, values []string) {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	for d.PeekKind() != '}' {
		tok, err := d.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		name := tok.String()
		v, err := d.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		names, values = append(names, name), append(values, string(v))
	}
	return names, values
}

func checkEnvelope(t *testing.T, body []byte, env *Envelope) {
	names, values := members(t, body)
	var want Envelope
	for i, name := range names {
		switch name {
		case "model":
			text, _ := jsontext.AppendUnquote(nil, values[i])
			want.Model, want.HasModel = string(text), true
		case "stream":
			want.Stream = values[i] == "true"
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			n, err := strconv.Atoi(values[i])
			if err == nil && n < maxCount {
				want.MaxTokens = max(want.MaxTokens, n)
			}
		}
	}
	if env.Model != want.Model || env.HasModel != want.HasModel || env.Stream != want.Stream || env.MaxTokens != want.MaxTokens {
		t.Fatalf("got %+v, want %+v", env, want)
	}
	if whole := env.Splice(body, Edit{}); !bytes.Equal(whole.AppendTo(nil), body) {
		t.Fatal("an empty edit changes the body")
	}
	edited := env.Splice(body, Edit{Model: "n\"é", IncludeUsage: true})
	after := edited.AppendTo(nil)
	if int64(len(after)) != edited.Len() {
		t.Fatalf("Len is %d of %d bytes", edited.Len(), len(after))
	}
	again, err := Peek(after)
	if err != nil || again.Model != "n\"é" || again.Stream != env.Stream {
		t.Fatalf("after the edit %s: %+v %v", after, again, err)
	}
}

// chatBody is a request of about n bytes whose last message has the text.
func chatBody(text string) []byte {
	return []byte(`{"model":"gpt-5","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"` + text +
		`"}],"temperature":0.7,"max_tokens":512,"stream":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"type":"function","function":{"name":"look_up","description":"Looks a thing up","parameters":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}}]}`)
}

func BenchmarkPeek(b *testing.B) {
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"700B", chatBody(strings.Repeat("The quick brown fox. ", 15))},
		{"64KB_escaped", chatBody(strings.Repeat(`line of text\n\"quoted\" and \\ `, 2048))},
		{"64KB_korean", chatBody(strings.Repeat("안녕하세요 세계 ", 2900))},
		{"10MB_image", chatBody("data:image/png;base64," + strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAUA", 10<<20/28))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Peek(c.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
