package wire

import (
	"bytes"
	"errors"
)

// DefaultMaxEvent is the longest event a Splitter accepts unless told
// otherwise, in bytes. Base64 images in one event reach some 8 MiB.
const DefaultMaxEvent = 16 << 20

const (
	firstBuffer = 4 << 10  // what the buffer starts with
	keepBuffer  = 64 << 10 // what it keeps once it is empty
)

// ErrEventTooLong is returned for an event longer than MaxEvent.
var ErrEventTooLong = errors.New("wire: event of the stream is too long")

// Event is one event of a stream. Its slices are valid until the next call of
// the Splitter that returned it.
type Event struct {
	Raw  []byte // every byte of it, with the blank line that ends it
	Data []byte // the payload; several data lines are joined by line feeds
	Name []byte // the event field, empty when there is none
	// Comment is true when there is nothing in it for a client to act on: no
	// data line, only comments, other fields or a bare blank line.
	Comment bool
	// Unterminated is true for an event the stream ended in: Raw lacks its
	// blank line. Only Flush returns such an event.
	Unterminated bool
}

// Splitter cuts a byte stream into server-sent events. It accepts lines ended
// by LF, CRLF or CR, cut at any byte, and gives every byte out exactly once:
// the Raws in order are the stream. The zero value is ready for use.
//
// After Write, call Next until it reports no further event. Until then the
// bytes written must not change: events that lie whole in them are not copied.
type Splitter struct {
	MaxEvent int // longest event in bytes, DefaultMaxEvent when 0

	data []byte // bytes not given out from start on: the caller's or buf's
	buf  []byte // own memory, for events that came in pieces
	join []byte // payload of several data lines

	start, pos int // of the event and of the line in data
	lf, cr     int // next line ends at or after pos, len(data) when none is known
	own        bool
	begun      bool // past the first line of the stream
	bareCR     bool // the last line ended in CR alone
	failed     bool

	// Of the event so far, as offsets from start.
	payload, name span
	lines         int // data lines
	mark          int // length of a byte order mark before it
}

// Write gives the splitter the next bytes of the stream. It keeps them, or a
// copy of what is left of them, until their events were taken.
func (s *Splitter) Write(p []byte) {
	if len(p) == 0 {
		return
	}
	known := 0
	if s.start == len(s.data) {
		s.data, s.own = p, false
		s.start, s.pos, s.lf, s.cr = 0, 0, 0, 0
		s.trim()
	} else {
		s.keep()
		known = len(s.data)
		s.buf = append(s.buf, p...)
		s.data = s.buf
	}
	if s.lf >= known {
		s.lf = find(s.data, known, '\n')
	}
	if s.cr >= known {
		s.cr = find(s.data, known, '\r')
	}
}

// keep moves what was not given out to the start of the splitter's own memory.
func (s *Splitter) keep() {
	rest := s.data[s.start:]
	if s.own && s.start == 0 {
		return
	}
	if s.buf == nil {
		s.buf = make([]byte, 0, max(firstBuffer, len(rest)))
	}
	s.buf = append(s.buf[:0], rest...)
	s.data, s.own = s.buf, true
	s.pos -= s.start
	s.lf -= s.start
	s.cr -= s.start
	s.start = 0
}

// trim gives back memory that one long event took.
func (s *Splitter) trim() {
	if cap(s.buf) > keepBuffer {
		s.buf = nil
	}
	if cap(s.join) > keepBuffer {
		s.join = nil
	}
}

func find(b []byte, from int, c byte) int {
	if from < len(b) {
		if i := bytes.IndexByte(b[from:], c); i >= 0 {
			return from + i
		}
	}
	return len(b)
}

// Next returns the next whole event. ok is false when more bytes are needed;
// the bytes written so far may then be reused. The only error is
// ErrEventTooLong, and it stays.
func (s *Splitter) Next() (ev Event, ok bool, err error) {
	for !s.failed {
		end, next, whole := s.line()
		if !whole {
			break
		}
		line := s.field(s.pos, end)
		s.pos = next
		if s.lf < next {
			s.lf = find(s.data, next, '\n')
		}
		if s.cr < next {
			s.cr = find(s.data, next, '\r')
		}
		if next-s.start > s.limit() {
			s.failed = true
			break
		}
		if line == 0 {
			return s.event(), true, nil
		}
	}
	if s.failed || len(s.data)-s.start > s.limit() {
		s.failed = true
		return Event{}, false, ErrEventTooLong
	}
	if s.start < len(s.data) {
		s.keep()
	} else if s.start > 0 {
		s.data, s.start, s.pos, s.lf, s.cr = nil, 0, 0, 0, 0
	}
	return Event{}, false, nil
}

// line finds the end of the current line and the start of the next.
//
// A CR at the very end of the bytes may be half of a CRLF, so the line stays
// open until the next byte, with one exception: in a stream that ends its
// lines with CR alone a blank line is complete at once, so that its event
// is not held back. The LF that might yet follow is then a blank line of its
// own, wherever the reads are cut.
func (s *Splitter) line() (end, next int, whole bool) {
	if s.lf < s.cr {
		s.bareCR = false
		return s.lf, s.lf + 1, true
	}
	if s.cr == len(s.data) {
		return 0, 0, false
	}
	if s.bareCR && s.cr == s.pos {
		return s.cr, s.cr + 1, true
	}
	if s.cr+1 == len(s.data) {
		return 0, 0, false
	}
	s.bareCR = s.data[s.cr+1] != '\n'
	if s.bareCR {
		return s.cr, s.cr + 1, true
	}
	return s.cr, s.cr + 2, true
}

// field notes what the line says and returns its length, 0 for a blank line.
func (s *Splitter) field(from, to int) int {
	if !s.begun {
		s.begun = true
		if bytes.HasPrefix(s.data[from:to], []byte("\xef\xbb\xbf")) {
			s.mark = 3
			from += s.mark
		}
	}
	line := s.data[from:to]
	if is, value := fieldValue(line, "data"); is {
		s.lines++
		s.payload = span{from + value - s.start, to - s.start}
	} else if is, value := fieldValue(line, "event"); is {
		s.name = span{from + value - s.start, to - s.start}
	}
	return len(line)
}

// fieldValue reports whether the line is the named field and where its value
// begins: behind the colon and one space, if any.
func fieldValue(line []byte, name string) (is bool, value int) {
	n := len(name)
	if len(line) < n || string(line[:n]) != name {
		return false, 0
	}
	switch {
	case len(line) == n:
		return true, n
	case line[n] != ':':
		return false, 0
	case len(line) > n+1 && line[n+1] == ' ':
		return true, n + 2
	}
	return true, n + 1
}

// event closes the event that ends at pos.
func (s *Splitter) event() Event {
	raw := s.data[s.start:s.pos:s.pos]
	ev := Event{Raw: raw, Comment: s.lines == 0}
	if s.name.to > 0 {
		ev.Name = raw[s.name.from:s.name.to]
	}
	switch {
	case s.lines == 1:
		ev.Data = raw[s.payload.from:s.payload.to]
	case s.lines > 1:
		ev.Data = s.joined(raw[s.mark:])
	}
	s.start, s.lines, s.mark, s.payload, s.name = s.pos, 0, 0, span{}, span{}
	return ev
}

// joined gathers the payload of several data lines.
func (s *Splitter) joined(raw []byte) []byte {
	s.join = s.join[:0]
	first := true
	for line := range lines(raw) {
		if is, value := fieldValue(line, "data"); is {
			if !first {
				s.join = append(s.join, '\n')
			}
			first = false
			s.join = append(s.join, line[value:]...)
		}
	}
	return s.join
}

// lines yields the lines of an event without their ends.
func lines(raw []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(raw) > 0 {
			end := bytes.IndexAny(raw, "\r\n")
			if end < 0 {
				end = len(raw)
			}
			if !yield(raw[:end]) {
				return
			}
			raw = raw[min(end+1, len(raw)):]
		}
	}
}

// Flush returns what is left when the stream has ended: an event without its
// blank line, of which the last line may lack its end. Call it after Next
// reported no further event.
func (s *Splitter) Flush() (Event, bool) {
	if s.failed || s.start == len(s.data) {
		return Event{}, false
	}
	end := len(s.data)
	blank := false
	if s.pos < end {
		to := end
		if s.data[to-1] == '\r' {
			to--
		}
		blank = s.field(s.pos, to) == 0
	}
	s.pos = end
	ev := s.event()
	ev.Unterminated = !blank
	return ev, true
}

func (s *Splitter) limit() int {
	if s.MaxEvent > 0 {
		return s.MaxEvent
	}
	return DefaultMaxEvent
}

// Partial reports that the start of an event is waiting for its rest, and that
// it is more than comments. Call it after Next reported no further event.
func (s *Splitter) Partial() bool {
	return s.lines > 0 || s.pos < len(s.data) && s.data[s.pos] != ':'
}

// Buffered returns the bytes of memory the splitter itself holds: at most
// about twice MaxEvent plus one write. It falls when a long event has gone.
func (s *Splitter) Buffered() int { return cap(s.buf) + cap(s.join) }

// Reset makes the splitter ready for another stream. It keeps its memory and
// MaxEvent.
func (s *Splitter) Reset() {
	s.trim()
	most, buf, join := s.MaxEvent, s.buf[:0], s.join[:0]
	*s = Splitter{}
	s.MaxEvent, s.buf, s.join = most, buf, join
}
