// Package report prints the benchmarks' tables, at most 80 columns wide, and
// writes their figures as JSON. It decides nothing about them.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"unicode/utf8"
)

// Width is the widest line a table may have.
const Width = 80

// Table prints a title, a header and rows, the first column to the left and
// the others to the right unless all are text. The last column is cut where
// the line would be longer than Width.
func Table(w io.Writer, title string, rows [][]string) {
	if title != "" {
		fmt.Fprintf(w, "\n%s\n", title)
	}
	if len(rows) == 0 {
		return
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for n, r := range rows {
		var b strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i == 0 {
				b.WriteString(c + pad)
			} else {
				b.WriteString("  " + pad + c)
			}
		}
		line := b.String()
		if utf8.RuneCountInString(line) > Width {
			line = string([]rune(line)[:Width])
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
		if n == 0 {
			fmt.Fprintln(w, strings.Repeat("-", min(Width, utf8.RuneCountInString(line))))
		}
	}
}

// Number formats x with digits after the point, and "-" when it was not
// measured.
func Number(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// Figure is a float that JSON has as null when it was not measured.
type Figure float64

// MarshalJSON writes four significant digits after the point at most.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(math.Round(float64(f)*1e4) / 1e4)
}

// Check is one target held against what was measured.
type Check struct {
	ID       string `json:"id"`
	Target   string `json:"target"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// Checks prints the table of targets, wrapping long cells.
func Checks(w io.Writer, title string, checks []Check) {
	const id, target, measured = 5, 36, 28
	line := func(a, b, c, d string) {
		for first := true; first || b != "" || c != ""; first = false {
			var x, y string
			x, b = wrap(b, target)
			y, c = wrap(c, measured)
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s %-*s %-*s %s", id, a, target, x, measured, y, d), " "))
			a, d = "", ""
		}
	}
	fmt.Fprintf(w, "\n%s\n", title)
	line("", "target", "measured", "met")
	fmt.Fprintln(w, strings.Repeat("-", Width))
	for _, c := range checks {
		met := "yes"
		if !c.Met {
			met = "NO"
		}
		line(c.ID, c.Target, c.Measured, met)
	}
}

// wrap splits s after at most width runes, at a space if there is one.
func wrap(s string, width int) (head, rest string) {
	r := []rune(s)
	if len(r) <= width {
		return s, ""
	}
	at := width
	for i := width; i > 0; i-- {
		if r[i] == ' ' {
			at = i
			break
		}
	}
	return string(r[:at]), strings.TrimSpace(string(r[at:]))
}

// Machine describes where a run was made; figures of two machines do not
// compare.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
	Nginx string `json:"nginx,omitempty"`
	Load  string `json:"load_average_before"`
}

// ThisMachine looks it up.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: "unknown"}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(data), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		m.CPU = strings.Trim(line, "\t :")
	}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(data), " ")
	}
	if out, err := exec.Command("nginx", "-v").CombinedOutput(); err == nil {
		_, m.Nginx, _ = strings.Cut(strings.TrimSpace(string(out)), "nginx/")
	}
	return m
}

// String is one line for the head of a report.
func (m Machine) String() string {
	return fmt.Sprintf("%d x %s, %s, load before %s", m.Cores, m.CPU, m.Go, m.Load)
}

// WriteJSON writes v, indented, to the file path.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
