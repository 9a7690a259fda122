package wire

import (
	"encoding/binary"
	"math/bits"
)

// skim walks JSON that an upstream sent. It follows the structure and does
// not validate: what it cannot follow sets bad and ends every loop.
type skim struct {
	b   []byte
	i   int
	bad bool
}

// space skips white space and returns the byte that follows, 0 at the end.
func (c *skim) space() byte {
	if c.i < len(c.b) && c.b[c.i] > ' ' {
		return c.b[c.i]
	}
	return c.blanks()
}

func (c *skim) blanks() byte {
	for ; c.i < len(c.b); c.i++ {
		if ch := c.b[c.i]; ch > ' ' {
			return ch
		}
	}
	return 0
}

// begin steps into the object or array at the current byte. It returns false
// when there is nothing in it. Use with sep:
//
//	for ok := c.begin('{'); ok; ok = c.sep('}') { key := c.key(); ... }
func (c *skim) begin(open byte) bool {
	if c.space() != open {
		c.bad = true
		return false
	}
	c.i++
	if next := c.space(); next == open+2 { // '{' and '}', '[' and ']' are two apart
		c.i++
		return false
	}
	return true
}

// sep steps to the next member, or out behind the closing byte.
func (c *skim) sep(closing byte) bool {
	if c.bad {
		return false
	}
	switch c.space() {
	case ',':
		c.i++
		return true
	case closing:
		c.i++
		return false
	}
	c.bad = true
	return false
}

// key reads a member's name and its colon.
func (c *skim) key() []byte {
	if c.space() != '"' {
		c.bad = true
		return nil
	}
	from := c.i + 1
	plain := c.str()
	if c.bad {
		return nil
	}
	key := c.b[from : c.i-1]
	if c.space() != ':' {
		c.bad = true
		return nil
	}
	c.i++
	c.space()
	if !plain {
		return []byte(unquote(key, false))
	}
	return key
}

// str skips the string at the current quote and reports whether it had no
// escapes.
func (c *skim) str() (plain bool) {
	plain = true
	b, i := c.b, c.i+1
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			q, s := w^quotes, w^slants
			if m := ((q-ones)&^q | (s-ones)&^s) & highs; m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' {
			i++
		}
		if i >= len(b) {
			c.i, c.bad = len(b), true
			return plain
		}
		if b[i] == '"' {
			c.i = i + 1
			return plain
		}
		plain = false
		i += 2
	}
}

// text returns the bytes between the quotes of the string at the current
// byte, escapes as they are; nil, with the value skipped, when it is none.
func (c *skim) text() []byte {
	if c.space() != '"' {
		c.skip()
		return nil
	}
	from := c.i + 1
	c.str()
	if c.bad {
		return nil
	}
	return c.b[from : c.i-1]
}

// skip steps over the value at the current byte.
func (c *skim) skip() {
	switch c.space() {
	case '"':
		c.str()
	case '{', '[':
		c.nested()
	default:
		i := c.i
		for i < len(c.b) && !ends(c.b[i]) {
			i++
		}
		c.bad = c.bad || c.i == i
		c.i = i
	}
}

// ends reports whether c ends a number or literal.
func ends(c byte) bool { return c == ',' || c == '}' || c == ']' || c <= ' ' }

// nested steps over an object or array of any depth.
func (c *skim) nested() {
	for depth := 0; c.i < len(c.b); {
		switch c.b[c.i] {
		case '"':
			if c.str(); c.bad {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.i++
		if depth == 0 {
			return
		}
	}
	c.bad = true
}

// truthy steps over a value and reports whether it says anything: not null,
// false, zero or the empty string.
func (c *skim) truthy() bool {
	first := c.space()
	from := c.i
	c.skip()
	switch first {
	case 'n', 'f', 0:
		return false
	case '"':
		return c.i-from > 2
	case '0':
		return c.i-from > 1
	}
	return !c.bad
}

// filled steps over a value and reports whether it is an object or array with
// something in it.
func (c *skim) filled() bool {
	first := c.space()
	if first != '{' && first != '[' {
		c.skip()
		return false
	}
	from := c.i
	c.i++
	empty := c.space() == first+2
	c.i = from
	c.nested()
	return !empty && !c.bad
}

// maxCarry bounds how deep content is looked for.
const maxCarry = 8

// carries steps over a value and reports whether it holds text: a non-empty
// string that is not a mere label of the part it stands in.
func (c *skim) carries(depth int) bool {
	found := false
	switch c.space() {
	case '"':
		return len(c.text()) > 0
	case '[':
		if depth == 0 {
			break
		}
		for ok := c.begin('['); ok; ok = c.sep(']') {
			found = c.carries(depth-1) || found
		}
		return found
	case '{':
		if depth == 0 {
			break
		}
		for ok := c.begin('{'); ok; ok = c.sep('}') {
			switch string(c.key()) {
			case "type", "id", "role", "status", "name", "call_id", "index", "object", "phase", "format":
				c.skip()
			default:
				found = c.carries(depth-1) || found
			}
		}
		return found
	}
	c.skip()
	return false
}
