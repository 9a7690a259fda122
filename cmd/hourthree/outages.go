package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// outageReport is what the command shows of /api/v1/outages.
type outageReport struct {
	Outages []struct {
		ID       string
		Words    string
		State    string
		Onset    time.Time
		Ended    *time.Time
		Waves    int
		Scope    []named
		Suspects []suspect
		Changes  []suspect
		Similar  []struct {
			ID     string
			Title  string
			Drills []string
		}
	}
}

type named struct{ Kind, Name string }

type suspect struct {
	named
	Score float64
	Text  string
}

func outagesCommand() *cobra.Command {
	var router operatorListener
	var asJSON bool
	c := &cobra.Command{
		Use: "outages", Short: "List what a running router finds wrong, and what it suspects", Args: cobra.NoArgs,
		Long: "List the outages that a running router has noticed: since when, what they concern,\n" +
			"who is suspected with which score, whether they are over and how that is known,\n" +
			"and public incidents that look like them.\n\nExit 0 also when something is wrong; 3: no router answers.",
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := router.get(c.Context(), "/api/v1/outages")
			if err != nil {
				return err
			}
			if asJSON {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			var r outageReport
			if err := json.Unmarshal(text, &r); err != nil {
				return exit{exitRun, fmt.Errorf("read the outages of %s: %w; is it the operator's listener of a router of this version?", router.base(), err)}
			}
			_, err = io.WriteString(c.OutOrStdout(), r.text())
			return err
		},
	}
	router.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func (r *outageReport) text() string {
	if len(r.Outages) == 0 {
		return "No outage has been noticed.\n"
	}
	var b strings.Builder
	for i, o := range r.Outages {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s  %s  since %s", o.ID, o.State, o.Onset.UTC().Format("2006-01-02 15:04:05 MST"))
		if o.Ended != nil {
			fmt.Fprintf(&b, " to %s", o.Ended.UTC().Format("2006-01-02 15:04:05"))
		}
		fmt.Fprintf(&b, "  %d wave(s)\n", o.Waves)
		if o.Words != "" {
			fmt.Fprintf(&b, "  %s\n", o.Words)
		}
		for _, s := range o.Scope {
			fmt.Fprintf(&b, "  concerns  %s %s\n", s.Kind, s.Name)
		}
		for _, s := range append(o.Suspects[:min(3, len(o.Suspects))], o.Changes[:min(2, len(o.Changes))]...) {
			fmt.Fprintf(&b, "  suspect   %.2f  %s %s: %s\n", s.Score, s.Kind, s.Name, s.Text)
		}
		for _, s := range o.Similar {
			fmt.Fprintf(&b, "  like      %s  %s", s.ID, s.Title)
			if len(s.Drills) > 0 {
				fmt.Fprintf(&b, "  (hourthree drill run %s)", s.Drills[0])
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
