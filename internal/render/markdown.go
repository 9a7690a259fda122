package render

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
)

// The bounds of a comment: GitHub refuses one of more than 65,536 characters.
const (
	mostMarkdown = 60_000
	mostRows     = 100
	mostCell     = 160
)

// markdown is for a comment on a pull request: a table of findings, what to do
// about each check, and the coverage. It is bounded, the most severe first, and
// says what it leaves out.
func (v *view) markdown() []byte {
	var b bytes.Buffer
	b.WriteString("### hourthree audit: " + v.headline() + "\n\n")
	tail := v.markdownTail()
	rows := v.rows()
	shown := 0
	for _, r := range rows {
		if shown == mostRows || b.Len()+len(r)+len(tail)+500 > mostMarkdown {
			break
		}
		if shown == 0 {
			b.WriteString("| | check | object | place | found | seen in |\n|---|---|---|---|---|---|\n")
		}
		b.WriteString(r)
		shown++
	}
	if shown < len(rows) {
		fmt.Fprintf(&b, "\n%d more findings, no more severe than the last, are left out here; the other formats have all.\n", len(rows)-shown)
	}
	if shown > 0 {
		b.WriteString("\n")
	}
	left := 0
	for _, d := range v.remedies() {
		if b.Len()+len(d)+len(tail)+200 > mostMarkdown {
			left++
			continue
		}
		b.WriteString(d)
	}
	if left > 0 {
		fmt.Fprintf(&b, "What to do about %s is left out here; `hourthree audit checks explain ID` has it.\n\n", many(left, "more check"))
	}
	b.WriteString(tail)
	return b.Bytes()
}

func (v *view) headline() string {
	s := v.bySeverity()
	if s == "" {
		s = "no findings"
	}
	if n := v.waived(); n > 0 {
		s += fmt.Sprintf(", %d waived", n)
	}
	if d := v.Diff; d != nil {
		s += fmt.Sprintf("; %d new, %d fixed", d.New, len(d.Fixed))
	}
	return s
}

// rows are the table's, what fails before what is waived.
func (v *view) rows() []string {
	var failed, waived []string
	for i := range v.findings {
		f := &v.findings[i]
		word := f.Severity.String()
		if f.State == audit.Waived {
			word = "waived"
		}
		if f.Change == audit.New && f.State == audit.Fail {
			word = "**new** " + word
		}
		found := cell(said(f))
		if f.Waiver != nil {
			found += " until " + cell(f.Waiver.Until) + ": " + cell(f.Waiver.Reason)
		}
		row := "| " + strings.Join([]string{
			word, fmt.Sprintf("[%s](%s) %s", escape(f.ID), helpURI(clean(f.ID)), escape(cut(clean(f.Title), mostCell))), cell(owner(f.Object, f.Container)),
			cell(at(f.Place)), found, escape(seen(f)),
		}, " | ") + " |\n"
		if f.State == audit.Waived {
			waived = append(waived, row)
		} else {
			failed = append(failed, row)
		}
	}
	return append(failed, waived...)
}

// remedies are what the failed checks say, each once.
func (v *view) remedies() []string {
	var list []string
	seen := map[string]bool{}
	for i := range v.findings {
		f := &v.findings[i]
		if seen[f.ID] || f.State == audit.Waived {
			continue
		}
		seen[f.ID] = true
		c := v.check(f)
		var b strings.Builder
		fmt.Fprintf(&b, "<details><summary>%s %s</summary>\n\n", escape(f.ID), escape(clean(f.Title)))
		if c.Why != "" {
			b.WriteString(escape(clean(c.Why)) + "\n\n")
		}
		if c.Fix != "" {
			b.WriteString("**Fix:** " + escape(clean(c.Fix)) + "\n\n")
		}
		if c.Patch != "" {
			b.WriteString(fenced("yaml", c.Patch) + "\n\n")
		}
		for _, id := range f.Incidents[:min(len(f.Incidents), 3)] {
			fmt.Fprintf(&b, "- %s\n", escape(clean(strings.TrimSpace(id+" "+v.title(id)))))
		}
		if f.Drill != "" {
			fmt.Fprintf(&b, "\nSee it happen: %s\n", code("hourthree drill run "+clean(f.Drill)))
		}
		b.WriteString("\n</details>\n\n")
		list = append(list, b.String())
	}
	return list
}

// markdownTail is the coverage, what could not be decided and the faults of the
// input, at most a third of the comment.
func (v *view) markdownTail() string {
	var b strings.Builder
	b.WriteString(escape(clean(v.coverage())) + ".\n")
	var lines []string
	for _, r := range v.reasons() {
		lines = append(lines, "- not evaluated: "+code(cut(clean(r.text), 300))+": "+escape(cut(clean(strings.Join(r.ids, ", ")), 600)))
	}
	for _, p := range v.problems {
		lines = append(lines, "- input: "+code(cut(problem(p), 400)))
	}
	if d := v.Diff; d != nil {
		for _, p := range d.Fixed {
			lines = append(lines, "- fixed: "+code(cut(clean(p.ID+" "+owner(p.Object, p.Container)), mostCell)))
		}
		for _, p := range d.Unknown {
			lines = append(lines, "- not looked for: "+code(cut(clean(p.ID+" "+owner(p.Object, p.Container)), mostCell)))
		}
	}
	for i, l := range lines {
		if b.Len()+len(l) > mostMarkdown/3 {
			fmt.Fprintf(&b, "- and %s\n", many(len(lines)-i, "more line"))
			break
		}
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(l + "\n")
	}
	if v.Version != "" {
		b.WriteString("\n<sub>hourthree " + escape(clean(v.Version)) + "</sub>\n")
	}
	return b.String()
}

// cell is a code span in a table, where a bar needs a backslash, in code too.
func cell(s string) string { return strings.ReplaceAll(code(cut(clean(s), mostCell)), "|", `\|`) }

// code is a code span: nothing in it is a link, a tag or a mention.
func code(s string) string {
	if s = clean(s); s == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// escape makes text of Markdown: the catalogue's words, ids and titles.
func escape(s string) string {
	var b strings.Builder
	s = clean(s)
	for i, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@', // no mention of anybody
			r == '#', // nor of an issue
			r == ':' && strings.HasPrefix(s[i:], "://"),              // no link of its own accord
			r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"): // the same
			b.WriteRune(r)
			b.WriteString("<!-- -->")
		case strings.ContainsRune("\\`*_[]|~", r),
			i == 0 && strings.ContainsRune("-+=", r), // no list, no heading
			(r == '.' || r == ')') && strings.Trim(s[:i], "0123456789") == "":
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fenced is a block of code, with a fence that the text does not have.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
