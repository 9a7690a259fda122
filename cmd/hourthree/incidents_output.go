package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// view is something of the library that is shown: as data, as text in
// columns, and as Markdown.
type view interface {
	data() any
	table(*paper)
	markdown(*paper)
}

func write(out io.Writer, format string, v view) error {
	p := &paper{width: widthOf(out)}
	switch format {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v.data())
	case "markdown":
		v.markdown(p)
	default:
		v.table(p)
	}
	_, err := io.WriteString(out, p.String())
	return err
}

// The width of lines: that of the terminal, within these; else 80.
const (
	usualWidth = 80
	leastWidth = 60
	mostWidth  = 120
)

func widthOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return usualWidth
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return usualWidth
	}
	return min(max(n, leastWidth), mostWidth)
}

// paper is text in lines of a width. What comes from records is plain there,
// whatever is in their files: no control characters reach a terminal.
type paper struct {
	strings.Builder
	width int
}

func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
}

// wrap writes text behind a prefix; further lines are indented by as much.
func (p *paper) wrap(prefix, text string) {
	indent := utf8.RuneCountInString(prefix)
	line, used := prefix, 0
	for _, word := range strings.Fields(plainText(text)) {
		letters := []rune(word)
		if used > 0 && indent+used+1+len(letters) > p.width {
			p.WriteString(strings.TrimRight(line, " ") + "\n")
			line, used = strings.Repeat(" ", indent), 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		for room := p.width - indent - used; len(letters) > room; room = p.width - indent {
			p.WriteString(line + string(letters[:room]) + "\n")
			line, used, letters = strings.Repeat(" ", indent), 0, letters[room:]
		}
		line, used = line+string(letters), used+len(letters)
	}
	p.WriteString(strings.TrimRight(line, " ") + "\n")
}

// labelled writes a text behind a label of a column, and nothing for no text.
func (p *paper) labelled(label, text string) {
	if text != "" {
		p.wrap(fmt.Sprintf("%-12s", label), text)
	}
}

// section writes a heading and what follows, if there is any.
func (p *paper) section(heading string, texts ...string) {
	first := true
	for _, t := range texts {
		if t == "" {
			continue
		}
		if first {
			p.heading(heading)
			first = false
		}
		prefix := "  "
		if len(texts) > 1 {
			prefix = "  - "
		}
		p.wrap(prefix, t)
	}
}

func (p *paper) heading(text string) { p.WriteString("\n" + text + "\n") }

var markdownSpecial = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "|", `\|`, "#", `\#`, "&", "&amp;")

// md is text as it has to be written to be text in Markdown.
func md(s string) string {
	return markdownSpecial.Replace(strings.Join(strings.Fields(plainText(s)), " "))
}

// row writes a line of a Markdown table.
func (p *paper) row(cells ...string) {
	p.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func (p *paper) head(cells ...string) {
	p.row(cells...)
	p.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
}

// columned cuts a text to n columns and fills it up.
func columned(s string, n int) string {
	s = clip(plainText(s), n)
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// minutes is a time as one says it.
func minutes(n int) string {
	switch h, m := n/60, n%60; {
	case n < 60:
		return strconv.Itoa(n) + " min"
	case h < 48 && m == 0:
		return fmt.Sprintf("%d h", h)
	case h < 48:
		return fmt.Sprintf("%d h %d min", h, m)
	default:
		return fmt.Sprintf("%d d %d h", h/24, h%24)
	}
}

// moment is a time of a record as one reads it.
func moment(s string) string {
	return strings.TrimSuffix(strings.Replace(s, "T", " ", 1), "Z")
}
