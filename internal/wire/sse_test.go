package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// seen is an event copied out of a splitter.
type seen struct {
	raw, data, name string
	comment, open   bool
}

func see(ev Event) seen {
	return seen{string(ev.Raw), string(ev.Data), string(ev.Name), ev.Comment, ev.Unterminated}
}

// split feeds the pieces, spoiling each as soon as the contract allows it.
func split(max int, pieces ...[]byte) (all []seen, err error) {
	s := Splitter{MaxEvent: max}
	for _, p := range pieces {
		p = bytes.Clone(p)
		s.Write(p)
		for {
			ev, ok, err := s.Next()
			if err != nil {
				return all, err
			}
			if !ok {
				break
			}
			all = append(all, see(ev))
		}
		for i := range p {
			p[i] = '#'
		}
	}
	if ev, ok := s.Flush(); ok {
		all = append(all, see(ev))
	}
	return all, nil
}

func TestSplitterReadsEveryForm(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []seen
	}{
		{"", nil},
		{"data: a\n\ndata: b\n\n", []seen{{raw: "data: a\n\n", data: "a"}, {raw: "data: b\n\n", data: "b"}}},
		{"data: a\r\n\r\ndata: b\r\n\r\n", []seen{{raw: "data: a\r\n\r\n", data: "a"}, {raw: "data: b\r\n\r\n", data: "b"}}},
		{"data: a\r\rdata: b\r\r", []seen{{raw: "data: a\r\r", data: "a"}, {raw: "data: b\r\r", data: "b"}}},
		{"data:{\"a\":1}\n\n", []seen{{raw: "data:{\"a\":1}\n\n", data: `{"a":1}`}}},
		{"data:  two spaces \n\n", []seen{{raw: "data:  two spaces \n\n", data: " two spaces "}}},
		{"\xef\xbb\xbfdata: a\n\n", []seen{{raw: "\xef\xbb\xbfdata: a\n\n", data: "a"}}},
		{"\xef\xbb\xbfdata: a\ndata: b\n\n", []seen{{raw: "\xef\xbb\xbfdata: a\ndata: b\n\n", data: "a\nb"}}},
		{"\xef\xbb\xbf\ndata: a\n\n", []seen{{raw: "\xef\xbb\xbf\n", comment: true}, {raw: "data: a\n\n", data: "a"}}},
		{"data: a\n\n\xef\xbb\xbfdata: x\ndata: b\n\n", []seen{{raw: "data: a\n\n", data: "a"}, {raw: "\xef\xbb\xbfdata: x\ndata: b\n\n", data: "b"}}},
		{"data: {\r\ndata:  \"a\"\ndata\r\ndata: }\n\n", []seen{{raw: "data: {\r\ndata:  \"a\"\ndata\r\ndata: }\n\n", data: "{\n \"a\"\n\n}"}}},
		{": keep-alive\n\n", []seen{{raw: ": keep-alive\n\n", comment: true}}},
		{":\nevent: ping\nid: 1\nretry: 5\n\n", []seen{{raw: ":\nevent: ping\nid: 1\nretry: 5\n\n", name: "ping", comment: true}}},
		{"event:error\ndata: x\nevent\n\n", []seen{{raw: "event:error\ndata: x\nevent\n\n", data: "x"}}},
		{"event: a\nevent: error\ndata: x\n: note\n\n", []seen{{raw: "event: a\nevent: error\ndata: x\n: note\n\n", data: "x", name: "error"}}},
		{"\n\r\n\ndata: a\n\n", []seen{{raw: "\n", comment: true}, {raw: "\r\n", comment: true}, {raw: "\n", comment: true}, {raw: "data: a\n\n", data: "a"}}},
		{"data: a\n\r\n", []seen{{raw: "data: a\n\r\n", data: "a"}}},
		{"data: a\r\r\n", []seen{{raw: "data: a\r\r", data: "a"}, {raw: "\n", comment: true}}},
		{"data: a\r\n\r", []seen{{raw: "data: a\r\n\r", data: "a"}}},
		{"database: a\nxdata: b\n\n", []seen{{raw: "database: a\nxdata: b\n\n", comment: true}}},
		{"data:\n\n", []seen{{raw: "data:\n\n"}}},
		{"data: a", []seen{{raw: "data: a", data: "a", open: true}}},
		{"data: a\n", []seen{{raw: "data: a\n", data: "a", open: true}}},
		{"data: a\r", []seen{{raw: "data: a\r", data: "a", open: true}}},
		{"data: a\ndata: b", []seen{{raw: "data: a\ndata: b", data: "a\nb", open: true}}},
		{"data: 한국어 🙂\n\n", []seen{{raw: "data: 한국어 🙂\n\n", data: "한국어 🙂"}}},
	} {
		ones := make([][]byte, 0, len(c.in))
		for i := range len(c.in) {
			ones = append(ones, []byte{c.in[i]})
		}
		for how, pieces := range map[string][][]byte{"whole": {[]byte(c.in)}, "byte by byte": ones} {
			got, err := split(0, pieces...)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%q %s:\n got %+v\nwant %+v", c.in, how, got, c.want)
			}
		}
	}
}

// An event is given out as soon as its last byte is there.
func TestSplitterHoldsNothingBack(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		var s Splitter
		for i := range 3 {
			s.Write([]byte("data: a" + end + end))
			if _, ok, _ := s.Next(); !ok {
				t.Errorf("%q: event %d held back", end, i)
			}
			if _, ok, _ := s.Next(); ok {
				t.Errorf("%q: a second event", end)
			}
		}
		if s.Buffered() != 0 {
			t.Errorf("%q: whole events were copied", end)
		}
	}
}

func TestSplitterPassesLongEvents(t *testing.T) {
	for _, n := range []int{65_537, 1<<20 + 1, 8 << 20} {
		in := []byte("data: " + strings.Repeat("x", n) + "\n\ndata: b\n\n")
		var pieces [][]byte
		for at := 0; at < len(in); at += 8 << 10 {
			pieces = append(pieces, in[at:min(at+8<<10, len(in))])
		}
		got, err := split(0, pieces...)
		if err != nil || len(got) != 2 || len(got[0].data) != n {
			t.Errorf("%d bytes: %d events, %v", n, len(got), err)
		}
	}
}

func TestSplitterBoundsMemory(t *testing.T) {
	const limit = 64 << 10
	chunk := bytes.Repeat([]byte("x"), 1000)
	for _, form := range []string{"x", "data: \n", "data: \r", ": \r\n"} {
		s := Splitter{MaxEvent: limit}
		piece := bytes.Repeat([]byte(form), len(chunk)/len(form))
		var err error
		for n := 0; err == nil && n < 10*limit; n += len(piece) {
			s.Write(piece)
			_, _, err = s.Next()
			if s.Buffered() > 3*limit {
				t.Fatalf("%q: holds %d bytes", form, s.Buffered())
			}
		}
		if !errors.Is(err, ErrEventTooLong) {
			t.Errorf("%q: %v", form, err)
		}
		if _, _, again := s.Next(); !errors.Is(again, ErrEventTooLong) {
			t.Errorf("%q: the error does not stay", form)
		}
		if _, ok := s.Flush(); ok {
			t.Errorf("%q: an event after the error", form)
		}
		s.Reset()
		s.Write([]byte("data: a\n\n"))
		if ev, ok, err := s.Next(); !ok || err != nil || string(ev.Data) != "a" {
			t.Errorf("%q: not usable after Reset", form)
		}
	}
}

func TestSplitterGivesMemoryBack(t *testing.T) {
	var s Splitter
	long := []byte("data: " + strings.Repeat("x", 1<<20))
	s.Write(long)
	s.Next()
	s.Write([]byte("\n\n"))
	if ev, ok, _ := s.Next(); !ok || len(ev.Data) != 1<<20 {
		t.Fatal("no event")
	}
	s.Next()
	s.Write([]byte("data: a\n\n"))
	if _, ok, _ := s.Next(); !ok || s.Buffered() > keepBuffer {
		t.Errorf("still holds %d bytes", s.Buffered())
	}
}

func drawStream(t *rapid.T) []byte {
	parts := rapid.SliceOf(rapid.SampledFrom([]string{
		"data", "data: ", "data:{\"a\":1}", "event: error", ":", ": note", "id: 1", "\n", "\n", "\r\n", "\r\n", "\r", "\r", "\n\n", "x", "한", "\xef\xbb\xbf",
	})).Draw(t, "parts")
	return []byte(strings.Join(parts, ""))
}

func drawPieces(t *rapid.T, in []byte) [][]byte {
	var pieces [][]byte
	for len(in) > 0 {
		n := rapid.IntRange(1, len(in)).Draw(t, "piece")
		pieces = append(pieces, in[:n])
		in = in[n:]
	}
	return pieces
}

func TestSplitterDoesNotCareWhereReadsAreCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawStream(t)
		limit := rapid.SampledFrom([]int{0, 20}).Draw(t, "limit")
		want, wantErr := split(limit, in)
		got, err := split(limit, drawPieces(t, in)...)
		if fmt.Sprint(got) != fmt.Sprint(want) || !errors.Is(err, wantErr) {
			t.Fatalf("%q\nwhole %q %v\n  cut %q %v", in, fmt.Sprint(want), wantErr, fmt.Sprint(got), err)
		}
		checkAgainstSpec(t, in, want, wantErr)
	})
}

// checkAgainstSpec compares with the standard's own description: turn every
// line end into LF, then read line by line.
func checkAgainstSpec(t interface{ Fatalf(string, ...any) }, in []byte, got []seen, err error) {
	if err != nil {
		return
	}
	var raw strings.Builder
	var data []string
	for _, ev := range got {
		raw.WriteString(ev.raw)
		if !ev.comment {
			data = append(data, ev.name+"|"+ev.data)
		}
	}
	if raw.String() != string(in) {
		t.Fatalf("%q came out as %q", in, raw.String())
	}
	text := strings.TrimPrefix(string(in), "\xef\xbb\xbf")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var want []string
	for _, block := range strings.Split(text, "\n\n") {
		var lines []string
		name, found := "", false
		for _, line := range strings.Split(block, "\n") {
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "data":
				found, lines = true, append(lines, value)
			case "event":
				name = value
			}
		}
		if found {
			want = append(want, name+"|"+strings.Join(lines, "\n"))
		}
	}
	if fmt.Sprint(data) != fmt.Sprint(want) {
		t.Fatalf("%q\n got %q\nwant %q", in, data, want)
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\nevent: x\ndata: b\n\n"), uint8(3))
	f.Add([]byte("\xef\xbb\xbfdata:a\rdata\r\r\n: c\n\r\ndata: [DONE]"), uint8(1))
	f.Add([]byte("data: 한\n\n\n\r\r\n"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		var pieces [][]byte
		step := int(size)%64 + 1
		for at := 0; at < len(in); at += step {
			pieces = append(pieces, in[at:min(at+step, len(in))])
		}
		for _, limit := range []int{0, 16} {
			want, wantErr := split(limit, in)
			got, err := split(limit, pieces...)
			if fmt.Sprint(got) != fmt.Sprint(want) || !errors.Is(err, wantErr) {
				t.Fatalf("whole %q %v\n  cut %q %v", fmt.Sprint(want), wantErr, fmt.Sprint(got), err)
			}
			checkAgainstSpec(t, in, want, wantErr)
		}
	})
}

func BenchmarkSplitter(b *testing.B) {
	chunk := []byte(`data: {"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-2026-08-01","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	for _, c := range []struct {
		name string
		in   []byte
		step int
	}{{"one_event_a_read", chunk, len(chunk)}, {"cut_in_two", chunk, len(chunk)/2 + 1}, {"sixteen_a_read", bytes.Repeat(chunk, 16), 16 * len(chunk)}} {
		b.Run(c.name, func(b *testing.B) {
			var s Splitter
			b.SetBytes(int64(len(c.in)))
			b.ReportAllocs()
			for b.Loop() {
				for at := 0; at < len(c.in); at += c.step {
					s.Write(c.in[at:min(at+c.step, len(c.in))])
					for {
						if _, ok, _ := s.Next(); !ok {
							break
						}
					}
				}
			}
		})
	}
}
