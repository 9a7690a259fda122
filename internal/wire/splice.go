package wire

import (
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Edit is what the router may change in a request body.
type Edit struct {
	Model        string // new model name, added when the body has none; "" keeps the body's
	IncludeUsage bool   // set stream_options.include_usage to true
}

// change replaces a range of the body; an empty range is an insertion.
type change struct {
	at   span
	text []byte
}

const (
	usageMember  = `"include_usage":true`
	usageOptions = `{` + usageMember + `}`
)

// Splice applies the edit to the body that was peeked. Every byte outside the
// edited values stays as it is; the body is not copied and must not change
// while the result is in use. A stream_options, or an include_usage in it,
// that is neither of the right type nor null is left for the upstream to
// refuse.
func (e *Envelope) Splice(body []byte, ed Edit) Segments {
	if e.open == 0 {
		return segments(body)
	}
	var all [2]change
	list := all[:0]
	var added []byte
	if ed.Model != "" {
		text, _ := jsontext.AppendQuote(make([]byte, 0, len(ed.Model)+len(`"model":"",`)), ed.Model)
		if e.HasModel {
			list = append(list, change{e.model, text})
		} else {
			added = append(append(added, `"model":`...), text...)
		}
	}
	if ed.IncludeUsage && !e.IncludeUsage {
		if c, ok := e.usageChange(); ok {
			list = append(list, c)
		} else if e.options.kind == 0 {
			if added != nil {
				added = append(added, ',')
			}
			added = append(added, `"stream_options":`+usageOptions...)
		}
	}
	if added != nil {
		if !e.empty {
			added = append(added, ',')
		}
		list = append(list, change{span{e.open, e.open}, added})
	}
	if len(list) == 2 && list[0].at.from > list[1].at.from {
		list[0], list[1] = list[1], list[0]
	}
	return segments(body, list...)
}

// usageChange is the change inside an existing stream_options.
func (e *Envelope) usageChange() (change, bool) {
	o := &e.options
	switch {
	case o.kind == 'n':
		return change{o.value, []byte(usageOptions)}, true
	case o.kind != '{':
		return change{}, false
	case o.usage.to != 0:
		return change{o.usage, []byte("true")}, true
	case o.known:
		return change{}, false
	case o.empty:
		return change{o.value, []byte(usageOptions)}, true
	}
	in := o.value.from + 1
	return change{span{in, in}, []byte(usageMember + ",")}, true
}

// Segments is an edited body: pieces of the original with the new text
// between them.
type Segments struct {
	parts [5][]byte
	n     int
	size  int64
}

func segments(body []byte, list ...change) Segments {
	var s Segments
	from := 0
	for _, c := range list {
		s.add(body[from:c.at.from])
		s.add(c.text)
		from = c.at.to
	}
	s.add(body[from:])
	return s
}

func (s *Segments) add(part []byte) {
	if len(part) == 0 {
		return
	}
	s.parts[s.n] = part
	s.n++
	s.size += int64(len(part))
}

// Len returns the length of the edited body in bytes.
func (s *Segments) Len() int64 { return s.size }

// Parts returns the pieces in order, for a gathering write. They are not to
// be changed.
func (s *Segments) Parts() [][]byte { return s.parts[:s.n] }

// AppendTo appends the edited body to dst.
func (s *Segments) AppendTo(dst []byte) []byte {
	for _, p := range s.parts[:s.n] {
		dst = append(dst, p...)
	}
	return dst
}

// Reader returns a new reader of the edited body, at its start.
func (s *Segments) Reader() *SegmentReader { return &SegmentReader{s: *s} }

// SegmentReader reads an edited body. It implements io.Reader, io.WriterTo
// and io.Seeker.
type SegmentReader struct {
	s   Segments
	i   int // current part
	off int // bytes of it that were read
}

// Read implements io.Reader.
func (r *SegmentReader) Read(p []byte) (int, error) {
	n := 0
	for r.i < r.s.n && n < len(p) {
		k := copy(p[n:], r.s.parts[r.i][r.off:])
		n += k
		r.advance(k)
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *SegmentReader) advance(k int) {
	if r.off += k; r.off == len(r.s.parts[r.i]) {
		r.i, r.off = r.i+1, 0
	}
}

// WriteTo implements io.WriterTo: each piece is written as it is, uncopied.
func (r *SegmentReader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for r.i < r.s.n {
		part := r.s.parts[r.i][r.off:]
		k, err := w.Write(part)
		total += int64(k)
		if k > 0 {
			r.advance(min(k, len(part)))
		}
		if err != nil {
			return total, err
		}
		if k < len(part) {
			return total, io.ErrShortWrite
		}
	}
	return total, nil
}

var errSeek = errors.New("wire: seek outside the body")

// Seek implements io.Seeker.
func (r *SegmentReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		for _, p := range r.s.parts[:r.i] {
			offset += int64(len(p))
		}
		offset += int64(r.off)
	case io.SeekEnd:
		offset += r.s.size
	}
	if offset < 0 || offset > r.s.size || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, errSeek
	}
	r.i, r.off = 0, 0
	for left := offset; left > 0; {
		k := min(left, int64(len(r.s.parts[r.i])))
		r.advance(int(k))
		left -= k
	}
	return offset, nil
}
