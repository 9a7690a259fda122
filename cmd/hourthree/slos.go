package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// sloReport is what the command shows of /api/v1/slos.
type sloReport struct {
	SLOs []struct {
		Name      string
		Model     string
		Workload  string
		Objective float64
		Window    string
		Good, Bad int64
		Known     float64 `json:"known_seconds"`
		Left      float64 `json:"budget_left"`
		Burning   string
		Since     *time.Time
		Outage    string
		Burns     []struct {
			Window string
			Rate   float64 `json:"burn_rate"`
		}
	}
}

func slosCommand() *cobra.Command {
	var router operatorListener
	var asJSON bool
	c := &cobra.Command{
		Use: "slos", Short: "List what is left of the budgets of a running router's SLOs", Args: cobra.NoArgs,
		Long: `List the objectives of a running router: the share of its budget that each has
left over its window, how far back that is known, and how fast it goes now. A
burn rate of 1 uses the budget up just when its window ends.

Exit 0 also when a budget burns; 3: no router answers.`,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := router.get(c.Context(), "/api/v1/slos")
			if err != nil {
				return err
			}
			if asJSON {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			var r sloReport
			if err := json.Unmarshal(text, &r); err != nil {
				return exit{exitRun, fmt.Errorf("read the SLOs of %s: %w; is it the operator's listener of a router of this version?", router.base(), err)}
			}
			_, err = io.WriteString(c.OutOrStdout(), r.text())
			return err
		},
	}
	router.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// text is a table of 80 columns, with what each covers and how it burns below it.
func (r *sloReport) text() string {
	if len(r.SLOs) == 0 {
		return "No SLO is configured. slos in the configuration names them.\n"
	}
	const row = "%-30s%11s%8s%10s%10s%11s\n"
	var b strings.Builder
	fmt.Fprintf(&b, row, "SLO", "objective", "window", "left", "known", "burns")
	for _, s := range r.SLOs {
		state := "-"
		if s.Burning != "" {
			state = s.Burning
		}
		fmt.Fprintf(&b, row, clip(s.Name, 29), strconv.FormatFloat(100*s.Objective, 'f', -1, 32)+" %", s.Window, leftOf(s.Left), sofar(s.Known), state)
		b.WriteString(clip("  of "+covered(s.Model, s.Workload)+fmt.Sprintf(": %d good, %d bad", s.Good, s.Bad), 79) + "\n")
		rates := make([]string, len(s.Burns))
		for i, w := range s.Burns {
			rates[i] = w.Window + " " + burnRate(w.Rate)
		}
		b.WriteString(clip("  burn rate over "+strings.Join(rates, ", "), 79) + "\n")
		if s.Since != nil {
			fmt.Fprintf(&b, "  burns since %s", s.Since.UTC().Format("2006-01-02 15:04:05 MST"))
			if s.Outage != "" {
				fmt.Fprintf(&b, ", outage %s", clip(s.Outage, 20))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// covered says which requests an objective is for.
func covered(model, workload string) string {
	switch {
	case model != "" && workload != "":
		return "requests of workload " + workload + " for model " + model
	case workload != "":
		return "requests of workload " + workload
	case model != "":
		return "requests for model " + model
	}
	return "all requests"
}

// burnRate has three digits.
func burnRate(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

func leftOf(share float64) string {
	if share < -9.99 {
		return "< -999 %"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// sofar is a time in its largest unit.
func sofar(seconds float64) string {
	for _, u := range []struct {
		in   float64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}} {
		if seconds >= u.in {
			return fmt.Sprintf("%.0f%s", seconds/u.in, u.name)
		}
	}
	return fmt.Sprintf("%.0fs", seconds)
}
