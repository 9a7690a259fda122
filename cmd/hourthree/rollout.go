package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/rollout"
)

// watchRollout is how often --watch looks.
const watchRollout = 2 * time.Second

func rolloutCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rollout", Short: "See and steer how a new configuration reaches a running router's callers",
		Long: "See and steer how a new configuration reaches the callers of a running router:\n" +
			"a few of them first, more as long as it is not worse than the one before.\n" +
			"It is taken back by itself when it is. docs/rollout.md tells how.",
	}
	c.AddCommand(
		rolloutStatusCommand(),
		steerRolloutCommand("promote", "Go to the next stage now", "goes to the next stage"),
		steerRolloutCommand("halt", "Take the new configuration back", "everything is served by the configuration before"),
		steerRolloutCommand("retry", "Roll out again what was taken back", "is rolled out again, from the first stage"),
	)
	return c
}

func rolloutStatusCommand() *cobra.Command {
	var router operatorListener
	var asJSON, watch bool
	c := &cobra.Command{
		Use: "status", Short: "Show the newest rollout: how far it is, what was measured, what it changes", Args: cobra.NoArgs,
		Long: "Show the newest rollout of a running router: its stages, whom it serves, each\n" +
			"measure of the new configuration next to the one before at the same time, what\n" +
			"has happened, and the settings that differ.\n\n" +
			"Exit 0: there is none, it is on its way, or it is through; 1: it was taken back;\n" +
			"3: no router answers.",
		RunE: func(c *cobra.Command, _ []string) error {
			for {
				s, err := showRollout(c, &router, asJSON)
				switch {
				case err != nil:
					return err
				case watch && s.State == rollout.Baking:
				case s.State == rollout.Halted || s.State == rollout.Reverted:
					return silent(exitFindings)
				default:
					return nil
				}
				select {
				case <-c.Context().Done():
					return nil
				case <-time.After(watchRollout):
				}
			}
		},
	}
	router.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.Flags().BoolVar(&watch, "watch", false, "show it again every two seconds until it has ended")
	return c
}

func showRollout(c *cobra.Command, router *operatorListener, asJSON bool) (s rollout.Status, err error) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	if asJSON {
		text, err := router.get(ctx, "/api/v1/rollout")
		if err == nil {
			_, err = c.OutOrStdout().Write(text)
		}
		if err != nil {
			return s, err
		}
		return s, router.into(ctx, "/api/v1/rollout", &s)
	}
	if err := router.into(ctx, "/api/v1/rollout", &s); err != nil {
		return s, err
	}
	_, err = fmt.Fprint(c.OutOrStdout(), harmless(rolloutText(s, time.Now())))
	return s, err
}

func steerRolloutCommand(do, short, said string) *cobra.Command {
	var router operatorListener
	var why string
	c := &cobra.Command{
		Use: do, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(why) == "" {
				return errors.New("say why, with --why \"...\": it is kept with the change")
			}
			order := map[string]any{"who": operator(), "why": why}
			if _, err := router.send(c.Context(), http.MethodPost, "/api/v1/rollout/"+do, order); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "the configuration: %s\n", said)
			return err
		},
	}
	router.flags(c)
	c.Flags().StringVar(&why, "why", "", "reason, for the list of changes; needed")
	return c
}

// rolloutWidth is that of a terminal that nobody has made wider.
const rolloutWidth = 80

// rolloutText is a rollout for a person.
func rolloutText(s rollout.Status, now time.Time) string {
	if s.State == "none" {
		return "There has been no rollout since the router started.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s in place of %s: %s\n", s.Version, s.Before, s.State)
	wrapped(&b, "  ", s.Why)
	b.WriteString("\n  stages    ")
	for i, st := range s.Stages {
		text := percentOf(st.Share)
		if len(st.Regions) > 0 {
			text = strings.Join(st.Regions, "+")
		}
		if i == s.Stage {
			text = "[" + text + "]"
		}
		b.WriteString(text + "  ")
	}
	fmt.Fprintf(&b, "\n  serves    %.1f %% of the requests of the last minute\n", 100*s.Exposure)
	if len(s.Exposed) > 0 {
		wrapped(&b, "  whole     ", strings.Join(s.Exposed, ", "))
	}
	if s.Split != "" {
		fmt.Fprintf(&b, "  in part   %s\n", s.Split)
	}
	fmt.Fprintf(&b, "  since     %s (%s)\n", clock(s.Since), now.Sub(s.Since).Round(time.Second))
	if s.Next != nil {
		fmt.Fprintf(&b, "  next      %s at the earliest\n", clock(*s.Next))
	}
	b.WriteString("\n  verdict       measure             of new  of before\n")
	for _, m := range s.Measures {
		fmt.Fprintf(&b, "  %-13s %-17s %8d %10d\n", m.Verdict, m.Name, m.N, m.M)
		wrapped(&b, "                ", m.Text)
	}
	b.WriteString("\n  what happened\n")
	for _, m := range s.Timeline {
		by := ""
		if m.By != "" {
			by = " (" + m.By + ")"
		}
		wrapped(&b, "    "+clock(m.At)+"  ", m.What+by)
	}
	b.WriteString("\n  what differs\n")
	for _, d := range s.Diff {
		wrapped(&b, "    ", d)
	}
	return b.String()
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func percentOf(share float64) string { return fmt.Sprintf("%.4g%%", 100*share) }

// wrapped writes a text behind its lead, in lines that fit, cut between words; a
// word that fits in none stands by itself.
func wrapped(b *strings.Builder, lead, text string) {
	line, empty := lead, true
	for word := range strings.FieldsSeq(text) {
		if !empty && len([]rune(line))+1+len([]rune(word)) > rolloutWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, empty = strings.Repeat(" ", len([]rune(lead))), true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

func configDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff BEFORE AFTER", Short: "List the settings in which two configurations differ, without secrets", Args: cobra.ExactArgs(2),
		Long: "List the settings in which two configuration files differ, by path and without\n" +
			"secrets: what a rollout of the second in place of the first would say.\n\n" +
			"Exit 0: they are the same; 1: they differ; 2: one of them would be refused.",
		RunE: func(c *cobra.Command, args []string) error {
			var both [2]*config.Config
			for i, path := range args {
				var err error
				if both[i], err = config.Load(path, os.LookupEnv); err != nil {
					return err
				}
			}
			diff := config.Diff(both[0], both[1])
			for _, line := range diff {
				fmt.Fprintln(c.OutOrStdout(), line)
			}
			if len(diff) > 0 {
				return silent(exitFindings)
			}
			return nil
		},
	}
}
