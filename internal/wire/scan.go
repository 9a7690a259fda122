package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// scanner validates JSON as RFC 8259 defines it, in one pass and without
// allocating. Methods return false after fail; the place and reason are then
// in at, code and why.
type scanner struct {
	b     []byte
	i     int
	limit int  // deepest nesting allowed
	loose bool // accept bytes that are not UTF-8
	plain bool // the last string had no escapes

	at   int
	code string
	why  string
	path []byte // where, built while unwinding
}

const (
	ones   = 0x0101010101010101
	highs  = 0x8080808080808080
	spaces = 0x2020202020202020
	quotes = 0x2222222222222222
	slants = 0x5c5c5c5c5c5c5c5c
)

// special marks the bytes of w that end a run of plain string bytes: quote,
// backslash, control, not ASCII. A borrow can mark a byte wrongly only above
// one marked rightly, so the lowest mark is exact.
func special(w uint64) uint64 {
	return (w | (w - spaces) | ((w ^ quotes) - ones) | ((w ^ slants) - ones)) & highs
}

// runEnd returns the index of the first special byte at or after i, or len(b).
func runEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
		for i+32 <= len(b) {
			q := b[i : i+32 : i+32]
			if special(binary.LittleEndian.Uint64(q))|special(binary.LittleEndian.Uint64(q[8:]))|
				special(binary.LittleEndian.Uint64(q[16:]))|special(binary.LittleEndian.Uint64(q[24:])) != 0 {
				break
			}
			i += 32
		}
	}
	for i < len(b) {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 || c >= 0x80 {
			return i
		}
		i++
	}
	return len(b)
}

func (s *scanner) fail(at int, why string) bool {
	s.at, s.code, s.why = at, CodeInvalidJSON, why
	return false
}

// unexpected fails at the current byte, or for the end of the text.
func (s *scanner) unexpected(want string) bool {
	if s.i >= len(s.b) {
		return s.fail(len(s.b), "the text ends where "+want+" is expected; send the whole body")
	}
	return s.fail(s.i, "unexpected "+strconv.QuoteRuneToASCII(rune(s.b[s.i]))+" where "+want+" is expected")
}

// space skips white space and returns the byte that follows, 0 at the end.
func (s *scanner) space() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\r', '\t':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// str validates the string that starts at the current quote.
func (s *scanner) str() bool {
	s.plain = true
	for i := s.i + 1; ; {
		if i = runEnd(s.b, i); i >= len(s.b) {
			return s.fail(len(s.b), "the text ends inside a string; send the whole body")
		}
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return true
		case c == '\\':
			n := escapeLen(s.b[i:])
			if n == 0 {
				return s.fail(i, "a backslash in a string starts no valid escape; write a backslash as \\\\")
			}
			s.plain = false
			i += n
		case c < 0x20:
			return s.fail(i, "control character in a string; escape it (a line break is \\n)")
		default:
			var ok bool
			if i, ok = wideEnd(s.b, i); !ok && !s.loose {
				return s.fail(i, "a string is not valid UTF-8; encode the body as UTF-8")
			} else if !ok {
				i++
			}
		}
	}
}

// wideEnd returns the end of the run of characters beyond ASCII at i, or the
// place of the first bad one.
func wideEnd(b []byte, i int) (end int, ok bool) {
	for i < len(b) && b[i] >= utf8.RuneSelf {
		// Most of the world's text: three bytes, no special ranges.
		if i+2 < len(b) && b[i]-0xe1 < 0xed-0xe1 && b[i+1]&0xc0 == 0x80 && b[i+2]&0xc0 == 0x80 {
			i += 3
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i, false
		}
		i += n
	}
	return i, true
}

// escapeLen is the length of the escape at the start of b, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !isHex(c) {
				return 0
			}
		}
		return 6
	}
	return 0
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// value validates the value at the current byte. depth is the nesting around
// it.
func (s *scanner) value(depth int) bool {
	if s.i >= len(s.b) {
		return s.unexpected("a value")
	}
	switch c := s.b[s.i]; c {
	case '"':
		return s.str()
	case '{':
		return s.object(depth + 1)
	case '[':
		return s.array(depth + 1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return s.number()
		}
		return s.unexpected("a value")
	}
}

func (s *scanner) literal(word string) bool {
	if end := s.i + len(word); end <= len(s.b) && string(s.b[s.i:end]) == word {
		s.i = end
		return true
	}
	return s.fail(s.i, "only true, false and null are written without quotes")
}

func (s *scanner) number() bool {
	if s.b[s.i] == '-' {
		s.i++
	}
	if s.i < len(s.b) && s.b[s.i] == '0' {
		s.i++
	} else if !s.digits() {
		return s.unexpected("a digit")
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !s.digits() {
			return s.unexpected("a digit")
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if !s.digits() {
			return s.unexpected("a digit")
		}
	}
	return true
}

// digits skips digits and reports whether there were any.
func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && isDigit(s.b[s.i]) {
		s.i++
	}
	return s.i > from
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (s *scanner) object(depth int) bool {
	if !s.enter(depth) {
		return false
	}
	if s.space() == '}' {
		s.i++
		return true
	}
	for {
		key, ok := s.key()
		if !ok {
			return false
		}
		if !s.value(depth) {
			s.within(key)
			return false
		}
		if more, ok := s.separator('}'); !more {
			return ok
		}
	}
}

func (s *scanner) array(depth int) bool {
	if !s.enter(depth) {
		return false
	}
	if s.space() == ']' {
		s.i++
		return true
	}
	for n := 0; ; n++ {
		s.space()
		if !s.value(depth) {
			s.path = append([]byte("["+strconv.Itoa(n)+"]"), s.path...)
			return false
		}
		if more, ok := s.separator(']'); !more {
			return ok
		}
	}
}

// enter steps into an object or array.
func (s *scanner) enter(depth int) bool {
	if depth > s.limit {
		s.at, s.code = s.i, CodeTooDeep
		s.why = "more than " + strconv.Itoa(s.limit) + " levels of nesting; flatten the body"
		return false
	}
	s.i++
	return true
}

// key reads a member's name and the colon behind it. The bytes are those
// between the quotes; s.plain says whether they are free of escapes.
func (s *scanner) key() ([]byte, bool) {
	if s.space() != '"' {
		return nil, s.unexpected("a name in quotes")
	}
	from := s.i + 1
	if !s.str() {
		return nil, false
	}
	key := s.b[from : s.i-1]
	if s.space() != ':' {
		return nil, s.unexpected("a colon")
	}
	s.i++
	s.space()
	return key, true
}

// separator reads what follows a value: a comma, or the closing byte.
func (s *scanner) separator(closing byte) (more, ok bool) {
	switch s.space() {
	case ',':
		s.i++
		return true, true
	case closing:
		s.i++
		return false, true
	}
	return false, s.unexpected("a comma or " + strconv.QuoteRune(rune(closing)))
}

// within notes on the way out of a failure which member it happened in.
func (s *scanner) within(key []byte) {
	s.path = append([]byte("."+string(key[:min(len(key), maxPathName)])), s.path...)
}

// place names the path of a failure: messages[0].content.
func (s *scanner) place() string {
	path := bytes.TrimPrefix(s.path, []byte("."))
	if len(path) > maxPath {
		path = append(path[:maxPath:maxPath], "..."...)
	}
	return string(bytes.ToValidUTF8(path, []byte("?")))
}
