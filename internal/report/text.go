package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hourthree/hourthree/internal/drill"
)

const (
	columns = 80
	perPart = 7 // contenders side by side in the summary
)

var head = [2][]string{
	{"contender", "fresh", "good", "up/", "in/", "worst", "calls/", "cra-", "met", "verdict"},
	{"", "", "", "fresh", "fresh", "p99", "step", "shes", "", ""},
}

const notes = `up/fresh: calls at targets for one request. in/fresh: calls by clients for one.
worst p99: of good answers, of the worst workload in its worst step.
calls/step: most calls in one step at one target.
lacks: no criterion missed, but one needs what this version has not.
`

// Text writes the results as plain text that fits 80 columns.
func Text(w io.Writer, results []*drill.Result) error {
	results = present(results)
	var b bytes.Buffer
	for i, r := range results {
		if i > 0 {
			b.WriteString("\n")
		}
		textResult(&b, r)
	}
	if len(results) > 1 {
		b.WriteString("\n")
		textSummary(&b, results)
	}
	if len(results) > 0 {
		b.WriteString("\n" + notes)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func textResult(b *bytes.Buffer, r *drill.Result) {
	title := titleOf(r)
	wrap(b, "", title)
	b.WriteString(strings.Repeat("=", min(columns, utf8.RuneCountInString(title))) + "\n")
	line := fmt.Sprintf("%s virtual, seed %d", short(r.Length), r.Seed)
	if r.Incident != "" {
		line = "incident " + clean(r.Incident) + ", " + line
	}
	wrap(b, "", line)
	if len(r.Runs) == 0 {
		b.WriteString("\nno contender\n")
		return
	}
	b.WriteString("\n")
	textTable(b, r.Runs)
	textCriteria(b, &r.Runs[0])
	textHollow(b, r.Runs)
	textPlaces(b, r.Runs)
	textStatuses(b, r.Runs)
}

// titleOf falls back on the scenario's name.
func titleOf(r *drill.Result) string {
	for _, s := range []string{clean(r.Title), clean(r.Scenario)} {
		if s != "" {
			return s
		}
	}
	return "untitled"
}

// textTable gives the name what the numbers leave; a longer name gets a line
// of its own.
func textTable(b *bytes.Buffer, runs []drill.Run) {
	rows := [][]string{head[0], head[1]}
	for i := range runs {
		f := figuresOf(&runs[i])
		rows = append(rows, []string{f.Name, f.Fresh, f.Good, f.Up, f.In, f.P99, f.Peak, f.Crashes, f.Met, f.Verdict})
	}
	widths := make([]int, len(head[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rest := columns
	for _, n := range widths[1:] {
		rest -= n + 1
	}
	widths[0] = min(widths[0], rest)
	for _, row := range rows {
		if utf8.RuneCountInString(row[0]) > widths[0] {
			wrap(b, "", row[0])
			row[0] = ""
		}
		var line strings.Builder
		fmt.Fprintf(&line, "%-*s", widths[0], row[0])
		for i := 1; i < len(row)-1; i++ {
			fmt.Fprintf(&line, " %*s", widths[i], row[i])
		}
		line.WriteString(" " + row[len(row)-1])
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// textCriteria lists what was asked of the first contender.
func textCriteria(b *bytes.Buffer, r *drill.Run) {
	if len(r.Criteria) == 0 {
		return
	}
	b.WriteString("\n")
	wrap(b, "", "criteria, "+nameOf(r)+":")
	for _, j := range r.Criteria {
		word, said := mark(j, r.Contender)
		name := clean(j.Name)
		if name == "" {
			name = clean(j.Expr)
		}
		if word == "not yet" || word == hollow {
			word, said = "", word+": "+said
		}
		if said != "" {
			name += ": " + said
		}
		wrap(b, fmt.Sprintf("  %-6s  ", word), name)
	}
}

// listing writes a line for each contender of which there is something to say,
// below a head.
func listing(b *bytes.Buffer, head string, runs []drill.Run, say func(*drill.Run) string) {
	for i := range runs {
		if said := say(&runs[i]); said != "" {
			if head != "" {
				b.WriteString("\n" + head + "\n")
				head = ""
			}
			wrap(b, "  ", nameOf(&runs[i])+": "+said)
		}
	}
}

// textHollow lists what contenders met although they are to miss it.
func textHollow(b *bytes.Buffer, runs []drill.Run) {
	listing(b, "proves nothing, for it is met by who is to miss it:", runs, func(r *drill.Run) string {
		return strings.Join(cleaned(r.Toothless()), "; ")
	})
}

// textPlaces lists the gateways and targets that have a bound of memory, or
// crashed.
func textPlaces(b *bytes.Buffer, runs []drill.Run) {
	listing(b, "most memory, of its bound, and crashes:", runs, func(r *drill.Run) string {
		var said []string
		for _, p := range placesOf(r) {
			if !p.notable {
				continue
			}
			text := p.Name + " " + p.Memory
			if p.Memory == none {
				text = p.Name
			}
			if p.Crashes != "0" {
				text += ", crashes " + p.Crashes
			}
			said = append(said, text)
		}
		return strings.Join(said, "; ")
	})
}

// textStatuses lists the last replies by status, where any was not 200.
func textStatuses(b *bytes.Buffer, runs []drill.Run) {
	listing(b, "last replies by status:", runs, func(r *drill.Run) string {
		if !told(r) {
			return ""
		}
		text := statuses(r.Totals)
		if n := r.Totals.Wrong; n > 0 {
			text += "; wrong " + count(n)
		}
		return text
	})
}

// textSummary has a line for a scenario and a column for a contender, a few
// contenders at a time; names that do not fit become numbers.
func textSummary(b *bytes.Buffer, results []*drill.Result) {
	names := contenders(results)
	b.WriteString("summary\n=======\n")
	for at := 0; at < len(names); at += perPart {
		part := names[at:min(at+perPart, len(names))]
		if at > 0 {
			b.WriteString("\n")
		}
		summaryPart(b, results, part, at)
	}
}

func summaryPart(b *bytes.Buffer, results []*drill.Result, names []string, at int) {
	first := 8
	for _, r := range results {
		first = max(first, utf8.RuneCountInString(scenarioOf(r)))
	}
	heads, used := names, 0
	for _, n := range names {
		used += 1 + max(5, utf8.RuneCountInString(n))
	}
	if min(first, 30)+used > columns {
		used = 6 * len(names)
		heads = make([]string, len(names))
		for i, n := range names {
			heads[i] = fmt.Sprint(at + i + 1)
			wrap(b, heads[i]+": ", n)
		}
	}
	first = min(first, columns-used)
	fmt.Fprintf(b, "%-*s", first, "scenario")
	for _, h := range heads {
		fmt.Fprintf(b, " %*s", max(5, utf8.RuneCountInString(h)), h)
	}
	b.WriteString("\n")
	for _, r := range results {
		name := scenarioOf(r)
		if utf8.RuneCountInString(name) > first {
			wrap(b, "", name)
			name = ""
		}
		fmt.Fprintf(b, "%-*s", first, name)
		for i, n := range names {
			fmt.Fprintf(b, " %*s", max(5, utf8.RuneCountInString(heads[i])), verdictOf(r, n))
		}
		b.WriteString("\n")
	}
}

// scenarioOf falls back on the title.
func scenarioOf(r *drill.Result) string {
	if s := clean(r.Scenario); s != "" {
		return s
	}
	return titleOf(r)
}

// cut shortens a string to n runes.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(0, n-3)]) + "..."
}

// Wrap is text behind a prefix, in lines of a terminal's width.
func Wrap(prefix, text string) string {
	var b bytes.Buffer
	wrap(&b, prefix, text)
	return b.String()
}

// wrap writes text behind a prefix, in lines that fit; a word that is longer
// than a line is broken.
func wrap(b *bytes.Buffer, prefix, text string) {
	room := columns - utf8.RuneCountInString(prefix)
	line, used := "", 0
	flush := func() {
		b.WriteString(strings.TrimRight(prefix+line, " ") + "\n")
		prefix = strings.Repeat(" ", columns-room)
		line, used = "", 0
	}
	for _, word := range strings.Fields(text) {
		letters := []rune(word)
		if used > 0 && used+1+len(letters) > room {
			flush()
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		for used+len(letters) > room {
			n := room - used
			line += string(letters[:n])
			letters = letters[n:]
			flush()
		}
		line, used = line+string(letters), used+len(letters)
	}
	flush()
}
