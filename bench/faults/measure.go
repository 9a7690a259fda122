package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hourthree/hourthree/bench/internal/load"
	"github.com/hourthree/hourthree/bench/internal/report"
	"github.com/hourthree/hourthree/bench/internal/stat"
	"github.com/hourthree/hourthree/bench/internal/upstream"
)

// row is what one contender did in one case. "During" is every request that
// began while the fault was there, or every call that reached an upstream then.
type row struct {
	Case      string `json:"case"`
	Contender string `json:"contender"`

	Requests    int                  `json:"requests_during"`
	Success     report.Figure        `json:"success_percent_during"`
	JSONSuccess report.Figure        `json:"success_percent_json_during"`
	SSESuccess  report.Figure        `json:"success_percent_streams_during"`
	Outcomes    map[load.Outcome]int `json:"outcomes_during"`
	P50         report.Figure        `json:"p50_ms_during"`
	P99         report.Figure        `json:"p99_ms_during"`
	AddedP50    report.Figure        `json:"added_p50_ms_during"` // good answers against those before, the worse of JSON and streams
	HealthyP99  report.Figure        `json:"p99_ms_before"`
	Slow        int                  `json:"over_2s_during"`
	Hidden      int                  `json:"hidden_truncations"`
	RetryAfter  report.Figure        `json:"refusals_with_retry_after_percent"`

	Amplification report.Figure `json:"attempts_per_request_during"`
	Primary       int           `json:"primary_calls_during"`
	UntilLeft     int           `json:"primary_calls_until_a_quiet_second"`
	InFlight      int           `json:"primary_most_in_flight_during"`
	InFlightLate  int           `json:"primary_most_in_flight_last_third"`

	SuccessAfter report.Figure `json:"success_percent_after"`
	Service      report.Figure `json:"seconds_to_full_service"`
	Burst        int           `json:"primary_peak_per_100ms_after"`
	Back         report.Figure `json:"seconds_to_80_percent_of_traffic"`
	ShareAtEnd   report.Figure `json:"primary_share_percent_at_end"`
}

// steady is the calls in 100 ms when all is well.
const steady = rate / 10

func measure(c scenario, contender string, w window, r load.Result, primary, backup upstream.Books) row {
	out := row{Case: c.id, Contender: contender, Outcomes: map[load.Outcome]int{}}
	out.client(w, r.Samples)
	attempts := primary.Calls(w.struck, w.healed)
	out.Primary = attempts
	if contender != none {
		attempts += backup.Calls(w.struck, w.healed)
	}
	out.Amplification = report.Figure(float64(attempts) / float64(max(out.Requests, 1)))
	out.UntilLeft = primary.UntilQuiet(w.struck, w.healed)
	out.InFlight = primary.MostInFlight(w.struck, w.healed)
	out.InFlightLate = primary.MostInFlight(w.healed.Add(-w.healed.Sub(w.struck)/3), w.healed)
	out.Burst = primary.Peak(w.healed, w.healed.Add(5*time.Second))
	back, ok := primary.Back(w.healed, w.end, rate*8/10)
	if out.Back = report.Figure(back.Seconds()); !ok {
		out.Back = report.Figure(stat.Median(nil))
	}
	last := w.end.Add(-2 * time.Second)
	out.ShareAtEnd = report.Figure(stat.Percent(primary.Calls(last, w.end), 2*rate))
	return out
}

// client fills in what clients saw.
func (out *row) client(w window, samples []load.Sample) {
	var during []time.Duration
	var fine, healthy [2][]time.Duration // by kind, as the next
	var ok, of [2]int
	var refused, told, after, good int
	lastBad := w.healed
	for _, s := range samples {
		if s.Outcome == load.Hidden {
			out.Hidden++
		}
		switch {
		case s.Due.Before(w.struck):
			// A request that the fault struck in flight is no healthy one.
			if s.Outcome == load.OK && s.Due.Add(s.Took).Before(w.struck) {
				healthy[s.Kind] = append(healthy[s.Kind], s.Took)
			}
		case s.Due.Before(w.healed):
			during = append(during, s.Took)
			out.Outcomes[s.Outcome]++
			of[s.Kind]++
			if s.Outcome == load.OK {
				ok[s.Kind]++
				fine[s.Kind] = append(fine[s.Kind], s.Took)
			}
			if s.Took > slow {
				out.Slow++
			}
			if s.Outcome == load.Refused {
				refused++
				if s.RetryAfter {
					told++
				}
			}
		default:
			after++
			if s.Outcome == load.OK {
				good++
			} else if s.Due.After(lastBad) {
				lastBad = s.Due
			}
		}
	}
	out.Requests = len(during)
	out.Success = report.Figure(stat.Percent(ok[0]+ok[1], len(during)))
	out.JSONSuccess = report.Figure(stat.Percent(ok[load.JSON], of[load.JSON]))
	out.SSESuccess = report.Figure(stat.Percent(ok[load.Stream], of[load.Stream]))
	out.SuccessAfter = report.Figure(stat.Percent(good, after))
	out.RetryAfter = report.Figure(stat.Percent(told, refused))
	out.Service = report.Figure(lastBad.Sub(w.healed).Seconds())
	q := stat.Quantiles(during, 0.5, 0.99)
	out.P50, out.P99 = millis(q[0]), millis(q[1])
	out.HealthyP99 = millis(stat.Quantile(slices.Concat(healthy[0], healthy[1]), 0.99))
	out.AddedP50 = millis(max(
		stat.Quantile(fine[load.JSON], 0.5)-stat.Quantile(healthy[load.JSON], 0.5),
		stat.Quantile(fine[load.Stream], 0.5)-stat.Quantile(healthy[load.Stream], 0.5)))
}

func millis(d time.Duration) report.Figure {
	return report.Figure(float64(d) / float64(time.Millisecond))
}

func printCase(w io.Writer, c scenario, rows []row) {
	table := [][]string{{"", "ok%", "p50", "p99", ">2s", "amp", "dead", "first", "hid", "full", "burst", "back"}}
	for _, r := range rows {
		table = append(table, []string{
			r.Contender, num(r.Success, 1), num(r.P50, 0), num(r.P99, 0), fmt.Sprint(r.Slow), num(r.Amplification, 2),
			fmt.Sprint(r.InFlight), fmt.Sprint(r.UntilLeft), fmt.Sprint(r.Hidden), num(r.Service, 1),
			fmt.Sprint(r.Burst), num(r.Back, 1),
		})
	}
	report.Table(w, c.name+": "+c.what, table)
}

func num(f report.Figure, digits int) string { return report.Number(float64(f), digits) }
