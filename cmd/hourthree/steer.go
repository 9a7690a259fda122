package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// ordered is what a command shows of an action.
type ordered struct {
	ID, Kind, Subject, Target, By, Why, For, Undo string
	Factor, Share                                 *float64
	At, Until                                     time.Time
	Ended                                         *time.Time
	EndedBy                                       string `json:"ended_by"`
	EndedWhy                                      string `json:"ended_why"`
	Warnings, Resumes                             []string
}

// steerCommands are those that order something of a running router.
func steerCommands() []*cobra.Command {
	return []*cobra.Command{drainCommand(), forceCommand(), shedCommand(), budgetCommand(), pinCommand(), undoCommand(), actionsCommand()}
}

// order is an action that a command asks for.
type order struct {
	router    operatorListener
	why, last string
}

func (o *order) flags(c *cobra.Command, usual string) {
	o.router.flags(c)
	c.Flags().StringVar(&o.why, "why", "", "`reason`, for those who read the log (required)")
	c.Flags().StringVar(&o.last, "for", usual, "how long it holds, 1m to 24h: it ends by itself")
}

// send orders it and says what came of it.
func (o *order) send(c *cobra.Command, asked map[string]any) error {
	asked["why"], asked["who"], asked["for"] = o.why, operator(), o.last
	text, err := o.router.send(c.Context(), http.MethodPost, "/api/v1/actions", asked)
	if err != nil {
		return err
	}
	var a ordered
	if err := json.Unmarshal(text, &a); err != nil || a.ID == "" {
		return exit{exitRun, fmt.Errorf("%s does not say what it did; is it the operator's listener of a router of this version?", o.router.base())}
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "%s: %s, for %s\nundo: %s\n", a.ID, harmless(a.words()), harmless(a.For), harmless(a.Undo))
	for _, w := range a.Warnings {
		fmt.Fprintf(out, "note: %s\n", harmless(w))
	}
	return nil
}

// words say what an action is.
func (a *ordered) words() string {
	switch {
	case a.Target != "":
		return a.Kind + " " + a.Subject + " to " + a.Target
	case a.Factor != nil:
		return a.Kind + " " + a.Subject + " by " + strconv.FormatFloat(*a.Factor, 'g', -1, 64)
	case a.Share != nil:
		return a.Kind + " " + a.Subject + " to " + strconv.FormatFloat(*a.Share, 'g', -1, 64)
	}
	return a.Kind + " " + a.Subject
}

// exactly asks for so many arguments, in words.
func exactly(n int, say string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return errors.New(say)
		}
		return nil
	}
}

func drainCommand() *cobra.Command {
	var o order
	c := &cobra.Command{
		Use: "drain TARGET", Short: "Let a target of a running router get no new requests",
		Long: "Let a target of a running router get no new requests and no probes. Those in\n" +
			"flight run on to their end, and nothing of it counts as a failure. It ends by\n" +
			"itself; a target that was not asked for long gets its traffic back bit by bit.",
		Args:              exactly(1, "name one target: hourthree drain TARGET; the router's dashboard lists them"),
		ValidArgsFunction: o.router.complete(0, targetsOf),
		RunE: func(c *cobra.Command, args []string) error {
			return o.send(c, map[string]any{"kind": "drain", "subject": args[0]})
		},
	}
	o.flags(c, "1h")
	return c
}

func forceCommand() *cobra.Command {
	var o order
	c := &cobra.Command{
		Use: "force open|closed TARGET", Short: "Hold the breaker of a target open or closed",
		Long: "Hold the breaker of a target of a running router.\n\n" +
			"open: it gets nothing, not even a probe. Behind it one call tries first.\n" +
			"closed: it gets its calls whatever its breaker and its cool-downs say. Its limits\n" +
			"and the allowance of extra attempts hold. Behind it the breaker counts again.\n\n" +
			"Without --for: 1h open, 30m closed.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "open" && args[0] != "closed" {
				return errors.New("say which way, and name one target: hourthree force open TARGET, or hourthree force closed TARGET")
			}
			return nil
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"open", "closed"}, cobra.ShellCompDirectiveNoFileComp
			}
			return o.router.complete(1, targetsOf)(c, args, part)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.send(c, map[string]any{"kind": "force-" + args[0], "subject": args[1]})
		},
	}
	o.flags(c, "")
	return c
}

func shedCommand() *cobra.Command {
	var o order
	c := &cobra.Command{
		Use: "shed PRIORITY", Short: "Refuse requests that matter less",
		Long: "Refuse the requests of a priority, and of those that matter less, before a byte of\n" +
			"their bodies is read: batch, or interactive, which sheds batch too. What is\n" +
			"critical is never refused. Callers are told when to come back.",
		Args: exactly(1, "name one priority: hourthree shed batch, or hourthree shed interactive"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"batch", "interactive"}, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.send(c, map[string]any{"kind": "shed", "subject": args[0]})
		},
	}
	o.flags(c, "30m")
	return c
}

func budgetCommand() *cobra.Command {
	var o order
	c := &cobra.Command{
		Use: "budget workload:NAME|target:NAME FACTOR", Short: "Multiply the retry allowance of a workload or a target",
		Long: "Multiply the retry allowance of a workload or of a target of a running router, 0 to\n" +
			"10. By 0 no extra attempt is paid for. Attempts at a target that is proven healthy\n" +
			"are not paid for, and go on.",
		Args: exactly(2, "say whose and by how much: hourthree budget workload:NAME FACTOR, or hourthree budget target:NAME FACTOR"),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := strconv.ParseFloat(args[1], 64)
			if err != nil || f != f {
				return fmt.Errorf("%q is no number: give one from 0, for no extra attempt, to 10", args[1])
			}
			return o.send(c, map[string]any{"kind": "budget", "subject": args[0], "factor": f})
		},
		ValidArgsFunction: o.router.complete(0, allowancesOf),
	}
	o.flags(c, "1h")
	return c
}

func pinCommand() *cobra.Command {
	var o order
	c := &cobra.Command{
		Use: "pin MODEL TARGET", Short: "Send a model's requests to one of its targets alone",
		Long: "Send a model's requests to one of its targets alone. The target's breaker and\n" +
			"limits hold, and so do the model's degraded answer and its content-policy list.",
		Args: exactly(2, "name a model and one of its targets: hourthree pin MODEL TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.send(c, map[string]any{"kind": "pin", "subject": args[0], "target": args[1]})
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return o.router.complete(0, modelsOf)(c, args, part)
			}
			return o.router.complete(1, targetsOf)(c, args, part)
		},
	}
	o.flags(c, "1h")
	return c
}

func undoCommand() *cobra.Command {
	var router operatorListener
	var why string
	c := &cobra.Command{
		Use: "undo ACTION", Short: "Take an action back before it ends by itself",
		Long: "Take an action of an operator back, by its ID. What it had taken the place of holds\n" +
			"again, unless it would be over by now.",
		Args: exactly(1, "name one action: hourthree undo A-7; hourthree actions lists them"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := router.send(c.Context(), http.MethodDelete, "/api/v1/actions/"+url.PathEscape(args[0]), map[string]any{"why": why, "who": operator()})
			if err != nil {
				return err
			}
			var a ordered
			if err := json.Unmarshal(text, &a); err != nil || a.ID == "" {
				return exit{exitRun, fmt.Errorf("%s does not say what it did; is it the operator's listener of a router of this version?", router.base())}
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: undone (%s)\n", a.ID, harmless(a.words()))
			for _, id := range a.Resumes {
				fmt.Fprintf(c.OutOrStdout(), "note: %s holds again\n", harmless(id))
			}
			return nil
		},
	}
	router.flags(c)
	c.Flags().StringVar(&why, "why", "", "`reason`, for those who read the log (required)")
	return c
}

func actionsCommand() *cobra.Command {
	var router operatorListener
	var asJSON bool
	c := &cobra.Command{
		Use: "actions", Short: "List what operators have ordered of a running router", Args: cobra.NoArgs,
		Long: "List the actions in force and those that have lately ended. hourthree actions log\n" +
			"shows who did what, and why.",
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := router.get(c.Context(), "/api/v1/actions")
			if err != nil {
				return err
			}
			if asJSON {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			var list struct {
				InForce []ordered `json:"in_force"`
				Ended   []ordered
			}
			if err := json.Unmarshal(text, &list); err != nil {
				return exit{exitRun, fmt.Errorf("read the actions of %s: %w; is it the operator's listener of a router of this version?", router.base(), err)}
			}
			_, err = io.WriteString(c.OutOrStdout(), actionsTable(time.Now(), list.InForce, list.Ended))
			return err
		},
	}
	router.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.AddCommand(actionsLogCommand())
	return c
}

// maxEnded is how many actions that have ended are listed.
const maxEnded = 10

// actionsTable is at most 80 columns wide.
func actionsTable(now time.Time, inForce, ended []ordered) string {
	var b strings.Builder
	if len(inForce) == 0 {
		b.WriteString("No action is in force.\n")
	}
	row := func(a ordered, left string) {
		fmt.Fprintf(&b, "%-6s %-50s %-12s %9s\n", a.ID, cell(a.words(), 50), cell(a.By, 12), left)
		if a.Why != "" {
			fmt.Fprintf(&b, "       %s\n", cell(a.Why, 72))
		}
	}
	if len(inForce) > 0 {
		fmt.Fprintf(&b, "%-6s %-50s %-12s %9s\n", "", "in force", "by", "left")
	}
	for _, a := range inForce {
		row(a, remaining(a.Until.Sub(now)))
	}
	if len(ended) > 0 {
		fmt.Fprintf(&b, "\n%-6s %-50s %-12s %9s\n", "", "ended", "by", "")
	}
	for _, a := range ended[:min(len(ended), maxEnded)] {
		row(a, "")
		if a.EndedBy != "" {
			fmt.Fprintf(&b, "       %s\n", cell("ended: "+strings.TrimSuffix(a.EndedBy+", "+a.EndedWhy, ", "), 72))
		}
	}
	return b.String()
}

// cell is a text of others in a table: one line, for a second could look like the next
// row, and bounded in width.
func cell(s string, most int) string {
	return clip(harmless(strings.Join(strings.Fields(s), " ")), most)
}

// remaining is a time that is left, in whole minutes, the last one begun counting.
func remaining(d time.Duration) string {
	m := int((d + time.Minute - 1) / time.Minute)
	if m >= 60 {
		return fmt.Sprintf("%dh%02dm", m/60, m%60)
	}
	return fmt.Sprintf("%dm", max(0, m))
}

func actionsLogCommand() *cobra.Command {
	var router operatorListener
	var before int64
	var most int
	var asJSON bool
	c := &cobra.Command{
		Use: "log", Short: "Show the audit log: who did what, when and why", Args: cobra.NoArgs,
		Long: "Show the audit log of a running router, the newest line first: every action and its\n" +
			"end, configurations, and who signed in. Lines are only ever added.",
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := router.get(c.Context(), fmt.Sprintf("/api/v1/audit?before=%d&limit=%d", before, most))
			if err != nil {
				return err
			}
			if asJSON {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			var page struct {
				Entries []struct {
					ID                                   int64
					At                                   time.Time
					Who, Via, What, Subject, Why, Action string
				}
				Before int64
			}
			if err := json.Unmarshal(text, &page); err != nil {
				return exit{exitRun, fmt.Errorf("read the audit log of %s: %w; is it the operator's listener of a router of this version?", router.base(), err)}
			}
			var b strings.Builder
			for _, e := range page.Entries {
				what := strings.TrimSpace(e.What + " " + e.Subject)
				if e.Action != "" {
					what = e.Action + " " + what
				}
				fmt.Fprintf(&b, "%5d %s %s\n", e.ID, e.At.UTC().Format(time.DateTime), cell(e.Who+": "+what, 53))
				if e.Why != "" {
					fmt.Fprintf(&b, "      %s\n", cell(e.Why, 73))
				}
			}
			if page.Before > 0 {
				fmt.Fprintf(&b, "Older lines: --before %d\n", page.Before)
			}
			_, err = io.WriteString(c.OutOrStdout(), b.String())
			return err
		},
	}
	router.flags(c)
	c.Flags().Int64Var(&before, "before", 0, "only lines below this `number`; 0 begins with the newest")
	c.Flags().IntVar(&most, "limit", 30, "at most so many lines, 1 to 1000")
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// routerState is what completion needs of /api/v1/state.
type routerState struct {
	Models, Targets, Workloads []struct{ Name string }
}

func namesOf(list []struct{ Name string }, before string) (names []string) {
	for _, one := range list {
		names = append(names, before+one.Name)
	}
	return names
}

func targetsOf(s routerState) []string { return namesOf(s.Targets, "") }
func modelsOf(s routerState) []string  { return namesOf(s.Models, "") }
func allowancesOf(s routerState) []string {
	return append(namesOf(s.Workloads, "workload:"), namesOf(s.Targets, "target:")...)
}

// completeWait bounds how long a shell waits for a router's names.
const completeWait = time.Second

// complete offers names of the router for the n-th argument. Without a router there are
// none.
func (o *operatorListener) complete(n int, names func(routerState) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		parent := c.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completeWait)
		defer cancel()
		var s routerState
		if o.into(ctx, "/api/v1/state", &s) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(s), cobra.ShellCompDirectiveNoFileComp
	}
}
