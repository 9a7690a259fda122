package peer

import (
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/manifest"
)

// Bounds of a configuration that is neither YAML nor JSON.
const (
	maxText       = 4 << 20
	maxDepth      = 32
	maxDirectives = 200_000
	maxIncludes   = 1000
	maxIncluded   = 64 << 20 // bytes of all of them
)

// directive is one of nginx, with its block.
type directive struct {
	name  string
	args  []string
	line  int // in the text
	file  *manifest.Object
	block []*directive
	outer *directive
	open  bool // it has a block
}

// arg is an argument by position, "" where there is none.
func (d *directive) arg(i int) string {
	if d == nil || i >= len(d.args) {
		return ""
	}
	return d.args[i]
}

// nginxParser cuts text into directives.
type nginxParser struct {
	text  string
	pos   int
	line  int
	count int
	file  *manifest.Object
}

// parseNginx reads the directives of a text. What was read before a fault is
// returned with it.
func parseNginx(text string, file *manifest.Object) ([]*directive, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("line 1: the text is longer than %d MiB", maxText>>20)
	}
	p := &nginxParser{text: text, line: 1, file: file}
	list, err := p.block(0, nil)
	return list, err
}

func (p *nginxParser) fault(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.line, fmt.Sprintf(format, args...))
}

// block reads directives up to the end of the block or, at depth 0, of the text.
func (p *nginxParser) block(depth int, outer *directive) (list []*directive, err error) {
	if depth > maxDepth {
		return nil, p.fault("blocks are nested deeper than %d", maxDepth)
	}
	for {
		d, end, err := p.directive(outer)
		if err != nil {
			return list, err
		}
		if d == nil {
			if (end == '}') != (depth > 0) {
				return list, p.fault("a block is closed that was not opened, or the other way round")
			}
			return list, nil
		}
		list = append(list, d)
		if end != '{' {
			continue
		}
		d.open = true
		if strings.HasSuffix(d.name, "_by_lua_block") {
			if err := p.skipLua(); err != nil {
				return list, err
			}
			continue
		}
		if d.block, err = p.block(depth+1, d); err != nil {
			return list, err
		}
	}
}

// directive reads one up to its end: a semicolon, the start of its block, the
// end of the block around it, or of the text.
func (p *nginxParser) directive(outer *directive) (*directive, byte, error) {
	var d *directive
	for {
		word, end, quoted, err := p.token()
		if err != nil {
			return nil, 0, err
		}
		if end != 0 {
			switch {
			case d == nil && end == '}':
				return nil, end, nil
			case d == nil && end == ';':
				continue // an empty one
			case d == nil || end == '}':
				return nil, 0, p.fault("%q stands where a directive was expected or is not ended", string(end))
			}
			return d, end, nil
		}
		if word == "" && !quoted {
			if d != nil {
				return nil, 0, p.fault("the directive %q is not ended", d.name)
			}
			return nil, 0, nil
		}
		if d == nil {
			if p.count++; p.count > maxDirectives {
				return nil, 0, p.fault("there are more than %d directives", maxDirectives)
			}
			d = &directive{name: word, line: p.line, file: p.file, outer: outer}
			continue
		}
		d.args = append(d.args, word)
	}
}

// token is the next word, or the mark that ends a directive. Both are empty at
// the end of the text.
func (p *nginxParser) token() (word string, end byte, quoted bool, err error) {
	p.space()
	if p.pos >= len(p.text) {
		return "", 0, false, nil
	}
	switch c := p.text[p.pos]; c {
	case ';', '{', '}':
		p.pos++
		return "", c, false, nil
	case '"', '\'':
		word, err = p.quoted(c)
		return word, 0, true, err
	}
	start := p.pos
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '\\' && p.pos+1 < len(p.text):
			if p.text[p.pos+1] == '\n' {
				p.line++
			}
			p.pos += 2
			continue
		case c == '$' && strings.HasPrefix(p.text[p.pos:], "${"):
			p.pos += 2
			continue
		case c == '}' && strings.Contains(p.text[start:p.pos], "${") && open(p.text[start:p.pos]):
			p.pos++
			continue
		case c == ';' || c == '{' || c == '}' || space(c):
			return p.text[start:p.pos], 0, false, nil
		}
		p.pos++
	}
	return p.text[start:], 0, false, nil
}

// open says that the last ${ of a word is not closed.
func open(word string) bool {
	at := strings.LastIndex(word, "${")
	return at >= 0 && !strings.Contains(word[at:], "}")
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// space goes on to the next token.
func (p *nginxParser) space() {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '\n':
			p.line++
		case c == '#':
			for p.pos < len(p.text) && p.text[p.pos] != '\n' {
				p.pos++
			}
			continue
		case !space(c):
			return
		}
		p.pos++
	}
}

func (p *nginxParser) quoted(mark byte) (string, error) {
	var b strings.Builder
	line := p.line
	for p.pos++; p.pos < len(p.text); p.pos++ {
		c := p.text[p.pos]
		if c == '\n' {
			line++
		}
		switch {
		case c == '\\' && p.pos+1 < len(p.text):
			p.pos++
			if n := p.text[p.pos]; n != mark && n != '\\' {
				b.WriteByte('\\')
			}
			if p.text[p.pos] == '\n' {
				line++
			}
			b.WriteByte(p.text[p.pos])
		case c == mark:
			p.pos++
			p.line = line
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fault("a quote is not closed")
}

// skipLua goes behind the brace that ends a block of Lua, whose strings and
// comments may hold braces.
func (p *nginxParser) skipLua() error {
	depth, start := 1, p.line
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "--[["), strings.HasPrefix(rest, "[["):
			p.to("]]")
			continue
		case strings.HasPrefix(rest, "--"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				p.pos += end
			} else {
				p.pos = len(p.text)
			}
			continue
		case c == '"' || c == '\'':
			p.luaString(c)
			continue
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				p.pos++
				return nil
			}
		case c == '\n':
			p.line++
		}
		p.pos++
	}
	p.line = start
	return p.fault("a block of Lua is not closed")
}

func (p *nginxParser) luaString(mark byte) {
	for p.pos++; p.pos < len(p.text); p.pos++ {
		switch p.text[p.pos] {
		case '\\':
			p.pos++
		case mark, '\n': // a string ends with its line at the latest
			if p.text[p.pos] == mark {
				p.pos++
			}
			return
		}
	}
}

// to goes behind a mark, or to the end.
func (p *nginxParser) to(mark string) {
	end := strings.Index(p.text[p.pos+2:], mark)
	stop := len(p.text)
	if end >= 0 {
		stop = p.pos + 2 + end + len(mark)
	}
	p.line += strings.Count(p.text[p.pos:stop], "\n")
	p.pos = stop
}
