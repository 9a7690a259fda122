package manifest

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"
)

// document is a piece of a file that is read by itself: a fault in it leaves
// the others alone.
type document struct {
	file string
	line int // of its first line in the file, from 1
	text []byte
}

// decodeText gives the UTF-8 text of a file, without a byte order mark.
func decodeText(file string, text []byte) ([]byte, []Problem) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		text = text[3:]
	case bytes.HasPrefix(text, []byte("\xff\xfe")), len(text) > 3 && text[0] != 0 && text[1] == 0:
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte("\xfe\xff")), len(text) > 3 && text[0] == 0 && text[1] != 0:
		order = binary.BigEndian
	}
	if order == nil {
		if i := invalid(text); i >= 0 {
			return nil, []Problem{{File: file, Line: 1 + bytes.Count(text[:i], []byte("\n")), Lost: true,
				What: "is not text: it has bytes that are no UTF-8", Remedy: "save it as UTF-8, or leave it out"}}
		}
		return text, nil
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	if len(units) > 0 && units[0] == 0xfeff {
		units = units[1:]
	}
	text = []byte(string(utf16.Decode(units)))
	if invalid(text) >= 0 {
		return nil, []Problem{{File: file, Line: 1, Lost: true, What: "is not text: it has zero bytes", Remedy: "save it as UTF-8, or leave it out"}}
	}
	return text, []Problem{{File: file, Line: 1, What: "is UTF-16; it was read, but not every tool does so", Remedy: "save it as UTF-8"}}
}

// invalid is the offset of the first byte that is no text, -1 for none.
func invalid(text []byte) int {
	zero := bytes.IndexByte(text, 0)
	if utf8.Valid(text) {
		return zero
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 || text[i] == 0 {
			return i
		}
		i += n
	}
	return zero
}

// split cuts a file at its document borders. YAML allows --- and ... at the
// beginning of a line nowhere else, not even in a text.
func split(file string, text []byte) []document {
	var docs []document
	from, fromLine, line := 0, 1, 0
	cut := func(to, toLine int) {
		d := document{file: file, line: fromLine, text: text[from:to]}
		if to <= from || d.onlyDirectives() {
			return // directives belong to the document that follows
		}
		if d.empty() {
			from, fromLine = to, toLine
			return
		}
		docs = append(docs, d)
		from, fromLine = to, toLine
	}
	for i := 0; i < len(text); {
		line++
		end := len(text)
		if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		switch l := text[i:end]; {
		case border(l, "---"):
			cut(i, line)
		case border(l, "..."):
			cut(end, line+1)
		}
		i = end
	}
	cut(len(text), line+1)
	return docs
}

// border says that a line begins or ends a document.
func border(line []byte, mark string) bool {
	return bytes.HasPrefix(line, []byte(mark)) &&
		(len(line) == 3 || line[3] == '\n' || line[3] == '\r' || line[3] == ' ' || line[3] == '\t')
}

// empty says that nothing stands in the document.
func (d document) empty() bool {
	for line := range bytes.Lines(d.text) {
		line = bytes.TrimPrefix(line, []byte("---"))
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("...")) {
			return false
		}
	}
	return true
}

// onlyDirectives says that there are directives such as %YAML and nothing else.
func (d document) onlyDirectives() bool {
	found := false
	for line := range bytes.Lines(d.text) {
		if line[0] == '%' {
			found = true
		} else if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return found
}

// hasTemplate says that a document holds the braces of a template.
func (d document) hasTemplate() bool { return bytes.Contains(d.text, []byte("{{")) }

// ofHelm is what only a Helm chart says.
var ofHelm = regexp.MustCompile(`\{\{-?[^}]*(\.Values\.|\.Release\.|\.Chart\.|\.Capabilities\.|include ")`)

// unrendered is the problem of a template that nobody has filled in.
func (d document) unrendered() Problem {
	at := max(bytes.Index(d.text, []byte("{{")), 0)
	before := d.text[:at]
	return Problem{
		File: d.file, Line: d.line + bytes.Count(before, []byte("\n")),
		Column: 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]),
		What:   "is a template that is not rendered: it holds {{ }}", Lost: true,
		Remedy: "render first: helm template NAME CHART | hourthree audit -",
	}
}

// parse reads the values of a document: as JSON when it is, else as YAML.
func (d document) parse(b bounds, w words) ([]tree, []Problem) {
	body := d
	if border(d.text, "---") {
		body.text = append([]byte("   "), d.text[3:]...)
	}
	if body.looksJSON() {
		trees, notes, err := body.readJSON(b, w)
		if err == nil {
			return trees, notes
		}
		if _, deep := err.(tooDeep); deep || jsonFile(d.file) {
			return nil, []Problem{body.syntaxJSON(err)}
		}
	}
	if bytes.HasPrefix(d.text, []byte("%")) || bytes.Contains(d.text, []byte("\n%YAML")) {
		// The parser takes no version but 1.1; that of the document changes nothing here.
		d.text = versionLine.ReplaceAll(d.text, []byte("#$1"))
	}
	return d.readYAML(b, w)
}

var versionLine = regexp.MustCompile(`(?m)^%(YAML )`)
