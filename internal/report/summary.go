package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
)

// Summary is a result without its course: the verdicts and what they rest on.
type Summary struct {
	Scenario string        `json:"scenario"`
	Version  string        `json:"version,omitempty"` // of the router; nothing where it is not known
	Seed     uint64        `json:"seed"`
	Length   time.Duration `json:"length_ns"`
	Runs     []RunSummary  `json:"runs"`
}

// RunSummary is one contender's.
type RunSummary struct {
	Contender string            `json:"contender"`
	Verdict   string            `json:"verdict"` // pass, lacks or FAIL
	Fresh     int               `json:"fresh"`
	Good      int               `json:"good"`
	Upstream  int               `json:"upstream"`
	Inbound   int               `json:"inbound"`
	Crashes   int               `json:"crashes"`
	P99       float64           `json:"worst_p99_ms"`
	Criteria  []drill.Judgement `json:"criteria"`
}

// Summarize reduces results, in their order.
func Summarize(results []*drill.Result) []Summary {
	var out []Summary
	for _, r := range present(results) {
		s := Summary{Scenario: r.Scenario, Seed: r.Seed, Length: r.Length}
		for i := range r.Runs {
			run := &r.Runs[i]
			s.Runs = append(s.Runs, RunSummary{
				Contender: run.Contender, Verdict: verdict(run), Fresh: run.Totals.Fresh, Good: run.Totals.Good,
				Upstream: run.Totals.Upstream, Inbound: run.Totals.Inbound, Crashes: crashes(run),
				P99: worstP99(run), Criteria: run.Criteria,
			})
		}
		out = append(out, s)
	}
	return out
}

// Success is the share of requests that were answered well, as text.
func (r RunSummary) Success() string { return percent(r.Good, r.Fresh) }

// Amplification is calls at targets for one request, as text.
func (r RunSummary) Amplification() string { return ratio(r.Upstream, r.Fresh) }

// Slowest is the worst p99, as text.
func (r RunSummary) Slowest() string { return millis(r.P99) }

// Said is how one of its criteria ended, as text.
func (r RunSummary) Said(j drill.Judgement) (word, said string) { return mark(j, r.Contender) }

// Decode reads what drill run --json writes. Errors name the line and column,
// or the result.
func Decode(data []byte) ([]*drill.Result, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	var results []*drill.Result
	if err := d.Decode(&results); err != nil {
		return nil, located(data, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: something follows the results", lineOf(data, d.InputOffset()))
	}
	if len(results) == 0 {
		return nil, errors.New("has no result")
	}
	seen := map[string]bool{}
	for i, r := range results {
		if r == nil || r.Scenario == "" || len(r.Runs) == 0 {
			return nil, fmt.Errorf("results[%d]: has no scenario or no runs; drill run --json writes both", i)
		}
		if seen[r.Scenario] {
			return nil, fmt.Errorf("results[%d]: scenario %s is there twice", i, clean(r.Scenario))
		}
		seen[r.Scenario] = true
		var names []string
		for k, run := range r.Runs {
			if run.Contender == "" || slices.Contains(names, run.Contender) {
				return nil, fmt.Errorf("results[%d].runs[%d]: a contender of its own name is needed, not %q", i, k, run.Contender)
			}
			names = append(names, run.Contender)
		}
	}
	return results, nil
}

// located puts the line and column before an error of the decoder.
func located(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: no JSON: %w", lineOf(data, syntax.Offset), err)
	case errors.As(err, &kind):
		field := ""
		if kind.Field != "" {
			field = " at " + kind.Field
		}
		return fmt.Errorf("%s: %s%s is not what drill run --json writes", lineOf(data, kind.Offset), kind.Value, field)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: the file ends too early", lineOf(data, int64(len(data))))
	}
	return err
}

func lineOf(data []byte, offset int64) string {
	before := data[:min(max(offset, 0), int64(len(data)))]
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'))
}
