package wire

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestSplice(t *testing.T) {
	for _, c := range []struct {
		body string
		ed   Edit
		want string
	}{
		{`{"model":"a","x":1}`, Edit{}, `{"model":"a","x":1}`},
		{`{"x" : 1e400, "model" : "a" }`, Edit{Model: "b"}, `{"x" : 1e400, "model" : "b" }`},
		{`{"x":1}`, Edit{Model: "b"}, `{"model":"b","x":1}`},
		{`{ }`, Edit{Model: "b"}, `{"model":"b" }`},
		{`{}`, Edit{Model: "b", IncludeUsage: true}, `{"model":"b","stream_options":{"include_usage":true}}`},
		{`{"model":"a"}`, Edit{Model: "a/\"\\\n<é"}, `{"model":"a/\"\\\n<é"}`},
		{`{"model":"a"}`, Edit{IncludeUsage: true}, `{"stream_options":{"include_usage":true},"model":"a"}`},
		{`{"model":"a","stream_options":null}`, Edit{IncludeUsage: true}, `{"model":"a","stream_options":{"include_usage":true}}`},
		{`{"stream_options": {} ,"model":"a"}`, Edit{Model: "b", IncludeUsage: true}, `{"stream_options": {"include_usage":true} ,"model":"b"}`},
		{`{"stream_options":{ "x":1},"model":"a"}`, Edit{IncludeUsage: true}, `{"stream_options":{"include_usage":true, "x":1},"model":"a"}`},
		{`{"stream_options":{"include_usage": false,"x":1}}`, Edit{IncludeUsage: true}, `{"stream_options":{"include_usage": true,"x":1}}`},
		{`{"stream_options":{"include_usage":null}}`, Edit{IncludeUsage: true}, `{"stream_options":{"include_usage":true}}`},
		{`{"stream_options":{"include_usage":true}}`, Edit{IncludeUsage: true}, `{"stream_options":{"include_usage":true}}`},
		{`{"stream_options":{"include_usage":true,"include_usag\u0065":false}}`, Edit{IncludeUsage: true}, `{"stream_options":{"include_usage":true,"include_usag\u0065":true}}`},
		{`{"stream_options":{"include_usage":"yes"}}`, Edit{IncludeUsage: true}, `{"stream_options":{"include_usage":"yes"}}`},
		{`{"stream_options":7}`, Edit{IncludeUsage: true}, `{"stream_options":7}`},
	} {
		env, err := Peek([]byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		s := env.Splice([]byte(c.body), c.ed)
		if got := string(s.AppendTo(nil)); got != c.want {
			t.Errorf("%s %+v:\n got %s\nwant %s", c.body, c.ed, got, c.want)
		}
	}
}

func TestSpliceOfABodyNotPeeked(t *testing.T) {
	var env Envelope
	s := env.Splice([]byte("any bytes"), Edit{Model: "m", IncludeUsage: true})
	if got := string(s.AppendTo(nil)); got != "any bytes" {
		t.Errorf("got %q", got)
	}
	if s := env.Splice(nil, Edit{}); s.Len() != 0 || len(s.Parts()) != 0 {
		t.Errorf("empty body: %d bytes", s.Len())
	}
}

// drawObject makes a request body with members in any order, odd spacing and
// values that must survive.
func drawObject(t *rapid.T) (body string, optionsOK bool) {
	space := rapid.SampledFrom([]string{"", " ", "\n\t"})
	list := rapid.SliceOfN(rapid.SampledFrom([]string{
		`"n":9007199254740993`, `"n":1e400`, `"d":{"model":"x","model":"y"}`, `"s":"\ud83d\ude00 \u0041é한"`, `"z":[]`, `"user":"u"`,
	}), 0, 4).Draw(t, "others")
	if rapid.Bool().Draw(t, "has model") {
		list = append(list, `"model":`+rapid.SampledFrom([]string{`"a"`, `"\u0061\"b"`}).Draw(t, "model"))
	}
	options := rapid.SampledFrom([]string{"", `null`, `{}`, `{"x":1}`, `{"x":1,"include_usage":false}`, `{"include_usage":true}`, `{"include_usage":null,"y":{}}`, `5`}).Draw(t, "options")
	if options != "" {
		list = append(list, `"stream_options":`+options)
	}
	list = rapid.Permutation(list).Draw(t, "order")
	gap := space.Draw(t, "space")
	return gap + "{" + gap + strings.Join(list, gap+","+gap) + gap + "}" + gap, options != "5"
}

func TestSpliceChangesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, optionsOK := drawObject(t)
		body := []byte(text)
		before := bytes.Clone(body)
		env, err := Peek(body)
		if err != nil {
			t.Fatal(err)
		}
		ed := Edit{Model: rapid.SampledFrom([]string{"", "m", "p/\"q\"\u00e9"}).Draw(t, "new"), IncludeUsage: rapid.Bool().Draw(t, "usage")}
		s := env.Splice(body, ed)
		after := s.AppendTo(nil)
		again, err := Peek(after)
		if err != nil {
			t.Fatalf("%s: %v", after, err)
		}
		if want := ed.Model; want != "" && again.Model != want {
			t.Fatalf("model %q, want %q", again.Model, want)
		}
		if again.IncludeUsage != (env.IncludeUsage || ed.IncludeUsage && optionsOK) {
			t.Fatalf("include_usage is %v in %s", again.IncludeUsage, after)
		}
		if got, want := untouched(body), untouched(after); !slices.Equal(got, want) {
			t.Fatalf("other members changed:\n%q\n%q", got, want)
		}
		if !bytes.Equal(body, before) {
			t.Fatal("the body itself changed")
		}
		checkReader(t, &s, after)
	})
}

// untouched lists every member that no edit may change.
func untouched(body []byte) []string {
	var t testing.T
	names, values := members(&t, body)
	var out []string
	for i, name := range names {
		if name != "model" && name != "stream_options" {
			out = append(out, name+"="+values[i])
		}
	}
	return out
}

func checkReader(t *rapid.T, s *Segments, want []byte) {
	if err := iotest.TestReader(s.Reader(), want); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := s.Reader().WriteTo(&b); err != nil || n != s.Len() || !bytes.Equal(b.Bytes(), want) {
		t.Fatalf("WriteTo: %d %v", n, err)
	}
	at := rapid.IntRange(0, len(want)).Draw(t, "seek")
	r := s.Reader()
	if _, err := r.Seek(int64(at-len(want)), io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if _, err := io.Copy(&b, r); err != nil || !bytes.Equal(b.Bytes(), want[at:]) {
		t.Fatalf("after a seek to %d: %q %v", at, b.Bytes(), err)
	}
}

func TestSegmentReaderEdges(t *testing.T) {
	s := segments([]byte("abcdef"))
	r := s.Reader()
	for _, whence := range []int{-1, 3} {
		if _, err := r.Seek(0, whence); err == nil {
			t.Errorf("whence %d accepted", whence)
		}
	}
	if _, err := r.Seek(7, io.SeekStart); err == nil {
		t.Error("seek behind the end accepted")
	}
	if _, err := r.WriteTo(shortWriter{}); err != io.ErrShortWrite {
		t.Errorf("short write: %v", err)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "cdef" {
		t.Errorf("after a short write %q is left", rest)
	}
}

// shortWriter takes two bytes and does not say why.
type shortWriter struct{}

func (shortWriter) Write([]byte) (int, error) { return 2, nil }
