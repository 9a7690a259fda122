package render

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// document is the JSON output, described by docs/audit.schema.json.
type document struct {
	Schema   string             `json:"$schema"`
	Version  int                `json:"schema_version"`
	Tool     tool               `json:"tool"`
	Summary  summary            `json:"summary"`
	Coverage audit.Coverage     `json:"coverage"`
	Findings []finding          `json:"findings"`
	Open     []audit.Open       `json:"not_evaluated"`
	Problems []manifest.Problem `json:"problems"`
	Roles    []topology.RoleOf  `json:"roles"`
	Baseline *baseline          `json:"baseline,omitempty"`
}

type tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type summary struct {
	Critical int `json:"critical"`
	High     int `json:"high"`
	Medium   int `json:"medium"`
	Low      int `json:"low"`
	Waived   int `json:"waived"`
}

// finding is one with what its check says.
type finding struct {
	audit.Finding
	Why       string      `json:"why"`
	Fix       string      `json:"fix"`
	Patch     string      `json:"patch,omitempty"`
	Caution   string      `json:"caution,omitempty"`
	Causes    []string    `json:"causes"`
	Help      string      `json:"help"`
	Incidents []precedent `json:"incidents"`
}

// precedent is an incident that had the condition.
type precedent struct {
	ID    string `json:"id"`
	Title string `json:"title,omitempty"`
}

type baseline struct {
	New       int `json:"new"`
	Unchanged int `json:"unchanged"`
	*audit.Diff
}

// json is the same for the same report, byte for byte: it has no times.
func (v *view) json(w io.Writer) error {
	d := document{
		Schema: pages + "audit.schema.json", Version: audit.SchemaVersion, Tool: tool{"hourthree", v.Version},
		Summary: summary{
			v.count(audit.Fail, audit.Critical), v.count(audit.Fail, audit.High),
			v.count(audit.Fail, audit.Medium), v.count(audit.Fail, audit.Low), v.waived(),
		},
		Coverage: v.Report.Coverage, Findings: []finding{}, Open: list(v.open), Problems: list(v.problems), Roles: list(v.roles),
	}
	for i := range v.findings {
		d.Findings = append(d.Findings, v.finding(&v.findings[i]))
	}
	if v.Diff != nil {
		d.Baseline = &baseline{v.Diff.New, v.Diff.Unchanged, v.Diff}
	}
	return indented(w, d)
}

func (v *view) finding(f *audit.Finding) finding {
	c := v.check(f)
	out := finding{
		Finding: *f, Why: c.Why, Fix: c.Fix, Patch: c.Patch, Caution: c.Caution,
		Causes: list(c.Causes), Help: helpURI(f.ID), Incidents: []precedent{},
	}
	out.Related = list(f.Related)
	for _, id := range f.Incidents {
		out.Incidents = append(out.Incidents, precedent{id, v.title(id)})
	}
	return out
}

// list is never null in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// indented writes JSON as it is made: the whole of a large report is not in
// memory a second time.
func indented(w io.Writer, d any) error {
	e := &escaped{to: w}
	err := jsonv2.MarshalWrite(e, d, jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(true), jsontext.WithIndent("  "))
	if err == nil {
		err = e.end()
	}
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// escaped writes JSON on, with what can change a terminal's state or the
// direction of writing as escapes. JSON has such characters in texts alone, and
// itself escapes only those below the space.
type escaped struct {
	to   io.Writer
	tail []byte // a character that is not whole yet
	out  []byte
}

func (e *escaped) Write(p []byte) (int, error) {
	in := append(e.tail, p...)
	e.tail, e.out = nil, e.out[:0]
	for len(in) > 0 {
		if c := in[0]; c < 0x7f {
			e.out, in = append(e.out, c), in[1:]
			continue
		}
		if !utf8.FullRune(in) {
			e.tail = append([]byte{}, in...)
			break
		}
		r, n := utf8.DecodeRune(in)
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				e.out = fmt.Appendf(e.out, `\u%04x`, unit)
			}
		} else {
			e.out = append(e.out, in[:n]...)
		}
		in = in[n:]
	}
	if _, err := e.to.Write(e.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (e *escaped) end() error {
	_, err := e.to.Write(append(e.tail, '\n'))
	return err
}
