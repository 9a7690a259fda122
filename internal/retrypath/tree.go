package retrypath

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hourthree/hourthree/internal/layers"
)

// Widths of the tree.
const (
	defaultWidth = 80
	leastWidth   = 40
)

// Tree writes paths for a terminal, as wide as asked for (80 for 0, at least
// 40), the one that becomes most calls first.
func Tree(out io.Writer, paths []Path, width int) error {
	if width <= 0 {
		width = defaultWidth
	}
	t := &tree{width: max(width, leastWidth)}
	list := append([]Path{}, paths...)
	worstFirst(list)
	for i := 0; i < len(list); {
		if i > 0 {
			t.line("", "", "")
		}
		same := i + 1
		for same < len(list) && alike(list[i], list[same]) {
			same++
		}
		t.path(list[i], list[i+1:same])
		i = same
	}
	if len(list) == 0 {
		t.line("", "", "no path to a model was found")
	}
	if _, err := io.WriteString(out, t.text.String()); err != nil {
		return fmt.Errorf("write the tree of paths: %w", err)
	}
	return nil
}

// alike says whether two paths differ in where they end and in nothing else.
func alike(a, b Path) bool {
	return a.Client == b.Client && a.Container == b.Container && a.From == b.From && a.Host == b.Host && slices.Equal(a.Notes, b.Notes) &&
		slices.EqualFunc(a.Layers, b.Layers, func(x, y Layer) bool {
			return x.Name == y.Name && x.Place == y.Place && x.Path == y.Path && maps.Equal(x.Attempts, y.Attempts) && x.Fallbacks == y.Fallbacks &&
				x.Budget == y.Budget && x.Timeout == y.Timeout && x.PerTry == y.PerTry
		})
}

// tree is text of a width.
type tree struct {
	text  strings.Builder
	width int
}

// path writes a path, and where others end that are like it.
func (t *tree) path(p Path, others []Path) {
	title := p.Client.String()
	if !p.Known {
		title = "unknown client of " + title
	}
	t.line("", "", title)
	how := p.Host
	if p.From != "" {
		how += " (" + p.From
		if p.Container != "" {
			how += " of container " + p.Container
		}
		how += ")"
	}
	t.line("", "  ", "calls "+how)
	for _, l := range p.Layers {
		t.layer(l)
	}
	for i, end := range append([]Path{p}, others...) {
		mark := "├─ "
		if i == len(others) {
			mark = "└─ "
		}
		t.line(mark, "   ", "to "+end.To)
	}
	t.table(p)
	for _, f := range p.Nesting {
		t.line("   ! ", "     ", "limits do not nest: "+f.Text)
	}
	for _, n := range p.Notes {
		t.line("   ~ ", "     ", n)
	}
}

func (t *tree) layer(l Layer) {
	mark := ""
	if l.Assumed != "" {
		mark = " (assumed)"
	}
	t.line("├─ ", "│  ", l.Name+mark)
	t.line("│    ", "│    ", AttemptsText(l))
	if limits := limitsText(l); limits != "" {
		t.line("│    ", "│    ", limits)
	}
	if l.Place.File != "" {
		t.line("│    ", "│    ", fmt.Sprintf("%s:%d", l.Place.File, l.Place.Line))
	}
}

// AttemptsText says how often a layer tries, classes with the same number
// together.
func AttemptsText(l Layer) string {
	var numbers []int
	by := map[int][]string{}
	for _, c := range layers.Classes() {
		n := l.Attempts[c]
		if by[n] == nil {
			numbers = append(numbers, n)
		}
		by[n] = append(by[n], string(c))
	}
	if len(numbers) == 1 {
		if numbers[0] == 1 {
			return "one try" + more(l)
		}
		return fmt.Sprintf("x%d after any failure%s", numbers[0], more(l))
	}
	var parts []string
	for _, n := range numbers {
		if n > 1 {
			parts = append(parts, fmt.Sprintf("x%d after %s", n, strings.Join(by[n], ", ")))
		}
	}
	return strings.Join(parts, "; ") + more(l)
}

func more(l Layer) string {
	text := ""
	if l.Fallbacks > 0 {
		text += fmt.Sprintf(", on %d targets in turn", l.Fallbacks+1)
	}
	if l.Budget > 0 {
		text += fmt.Sprintf(", budget %s %%", Number(l.Budget*100))
	}
	return text
}

func limitsText(l Layer) string {
	var parts []string
	if l.PerTry > 0 {
		parts = append(parts, "a try "+Number(l.PerTry)+" s")
	}
	if l.Timeout > 0 {
		parts = append(parts, "all "+Number(l.Timeout)+" s")
	}
	if len(parts) == 0 {
		return ""
	}
	return "limits: " + strings.Join(parts, ", ")
}

// table shows the products of the classes.
func (t *tree) table(p Path) {
	t.line("   ", "", fmt.Sprintf("%-8s %9s %11s %9s", "failure", "calls", "per target", "steady"))
	for _, product := range p.Products {
		row := fmt.Sprintf("%-8s %9s %11s %9s", product.Class, count(product.Calls), count(product.PerTarget), Number(product.Steady))
		mark := "   "
		if product.Class == p.Worst.Class && product.Calls > 1 {
			mark = " * "
		}
		t.line(mark, "   ", row)
	}
	if len(p.Worst.Budgets) > 0 {
		t.line("   ", "   ", "steady: bounded by the budget of "+strings.Join(p.Worst.Budgets, " and of "))
	}
	if len(p.Repeated) > 0 {
		var classes []string
		for _, c := range p.Repeated {
			classes = append(classes, string(c))
		}
		t.line("   ", "   ", "more than one layer repeats: "+strings.Join(classes, ", "))
	}
}

// count is a number of calls; the largest that is told apart stands for more.
func count(n int) string {
	if n >= layers.Most {
		return "1e9+"
	}
	return fmt.Sprint(n)
}

// Number has two decimals at most.
func Number(f float64) string {
	if f >= layers.Most {
		return "1e9+"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", f), "0"), ".")
}

// line writes text behind a prefix, and what does not fit on further lines behind
// another. Words that are longer than a line are cut. What a terminal would take
// for a command is left out: names come from whoever wrote the objects.
func (t *tree) line(first, next, text string) {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, text)
	prefix := first
	for {
		room := t.width - utf8.RuneCountInString(prefix)
		runes := []rune(text)
		if len(runes) <= room {
			t.text.WriteString(strings.TrimRight(prefix+text, " ") + "\n")
			return
		}
		cut := room
		for i := room; i > room/2; i-- {
			if runes[i] == ' ' {
				cut = i
				break
			}
		}
		t.text.WriteString(strings.TrimRight(prefix+string(runes[:cut]), " ") + "\n")
		prefix, text = next, strings.TrimLeft(string(runes[cut:]), " ")
	}
}
