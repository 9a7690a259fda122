package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/drill"
	"github.com/hourthree/hourthree/internal/report"
)

func drillCommand() *cobra.Command {
	c := &cobra.Command{Use: "drill", Short: "Replay an outage in virtual time, against this router and what people use in its place"}
	c.AddCommand(drillList(), drillRun(), drillValidate(), drillCompare(), drillSweep(), drillAblate(), drillSchema())
	return c
}

func drillList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the scenarios and contenders", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := drill.List()
			if err != nil {
				return exit{exitRun, err}
			}
			out := c.OutOrStdout()
			for _, s := range all {
				fmt.Fprint(out, report.Wrap(fmt.Sprintf("%-22s %-8s ", s.Name, s.Incident), s.Title))
			}
			fmt.Fprintln(out)
			fmt.Fprint(out, report.Wrap("contenders: ", strings.Join(drill.Names(), ", ")))
			fmt.Fprint(out, report.Wrap("and without a protection: ", strings.Join(drill.Without(), ", ")))
			return nil
		},
	}
}

func drillValidate() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE...", Short: "Check scenario files", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			bad := false
			for _, f := range files {
				if _, err := load(f); err != nil {
					fmt.Fprintf(c.ErrOrStderr(), "%s: %v\n", f, err)
					bad = true
				}
			}
			if bad {
				return silent(exitUsage)
			}
			fmt.Fprintln(c.OutOrStdout(), "good")
			return nil
		},
	}
}

// load finds a scenario by its name or reads it from a file.
func load(name string) (*drill.Scenario, error) {
	all, err := drill.List()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return nil, fmt.Errorf("there is no scenario %q; hourthree drill list shows them", name)
	}
	if err != nil {
		return nil, err
	}
	return drill.Parse(data)
}

type drillFlags struct {
	against    []string
	seed       uint64
	all        bool
	short      bool
	repeat     int
	patience   time.Duration
	json, html string

	config, model string // of a user
}

func drillRun() *cobra.Command {
	var f drillFlags
	c := &cobra.Command{
		Use: "run [NAME|FILE]...", Short: "Run scenarios; exit 1 when the router misses a criterion",
		RunE: func(c *cobra.Command, names []string) error {
			scenarios, err := f.pick(names)
			if err != nil {
				return exit{exitUsage, err}
			}
			return f.run(c, scenarios)
		},
	}
	c.Flags().StringVarP(&f.config, "config", "c", "", "drill the targets, limits and policies of this configuration `file`")
	c.Flags().StringVar(&f.model, "model", "", "the model of --config whose targets are drilled; default the first by name")
	c.Flags().StringSliceVar(&f.against, "against", drill.Names(), "contenders, by comma")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of everything that is drawn")
	c.Flags().BoolVar(&f.short, "short", false, "fewer requests, and only the contenders that the scenario names")
	c.Flags().DurationVar(&f.patience, "call-timeout", 0, "a modelled gateway's own limit of a call; default half of its caller's")
	c.Flags().IntVar(&f.repeat, "repeat", 1, "play so many times; exit 1 when a verdict differs")
	c.Flags().BoolVar(&f.all, "all", false, "every scenario that comes with the router")
	c.Flags().StringVar(&f.json, "json", "", "write the results to this `file`")
	c.Flags().StringVar(&f.html, "html", "", "write a page with plots to this `file`")
	return c
}

func (f *drillFlags) pick(names []string) ([]*drill.Scenario, error) {
	if f.all && len(names) > 0 {
		return nil, errors.New("--all is every scenario: name none with it")
	}
	if f.all {
		return drill.List()
	}
	if len(names) == 0 {
		return nil, errors.New("name a scenario, or --all; hourthree drill list shows them")
	}
	var out []*drill.Scenario
	for _, n := range names {
		s, err := load(n)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (f *drillFlags) run(c *cobra.Command, scenarios []*drill.Scenario) error {
	mine, err := f.mine()
	if err == nil && f.repeat < 1 {
		err = errors.New("--repeat: must be 1 or more")
	}
	if err == nil && f.patience < 0 {
		err = errors.New("--call-timeout: must not be below 0")
	}
	if err == nil && f.model != "" && f.config == "" {
		err = errors.New("--model: is one of --config, which is missing")
	}
	if err == nil && f.json != "" && f.json == f.html {
		err = errors.New("--json and --html: need a file each")
	}
	if err == nil {
		err = checkAgainst(f.against)
	}
	if err != nil {
		return exit{exitUsage, err}
	}
	data, err := open(f.json)
	if err != nil {
		return err
	}
	defer data.drop()
	page, err := open(f.html)
	if err != nil {
		return err
	}
	defer page.drop()
	// Thousands of small calls, of which little stays.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	plays := make([]played, len(scenarios))
	for i, s := range scenarios {
		p := &plays[i]
		p.scenario, p.options = s, drill.Options{Contenders: f.against, Seed: f.seed, Config: mine, Patience: f.patience, Progress: progress(c.ErrOrStderr(), s.Name)}
		if f.short && !c.Flags().Changed("against") {
			p.options.Contenders = s.Against()
		}
		if mine != nil {
			if p.scenario, err = mine.Fit(s); err != nil {
				return exit{exitUsage, err}
			}
			f.say(c.OutOrStdout(), p.scenario, p.scenario.Assumptions[len(s.Assumptions):])
		}
		if f.short {
			p.scenario = p.scenario.Short()
		}
	}
	var running sync.WaitGroup
	for i := range plays {
		running.Go(func() { plays[i].play(f.repeat) })
	}
	running.Wait()
	var results []*drill.Result
	good := true
	for i := range plays {
		p := &plays[i]
		if p.err != nil {
			return exit{exitUsage, p.err}
		}
		results = append(results, p.result)
		good = judged(c.ErrOrStderr(), p.result) && good
		for _, d := range p.differs {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", p.scenario.Name, d)
			good = false
		}
		if f.repeat > 1 && len(p.differs) == 0 {
			fmt.Fprintf(c.OutOrStdout(), "%s: the same verdicts in %d plays\n", p.scenario.Name, f.repeat)
		}
	}
	err = report.Text(c.OutOrStdout(), results)
	if err == nil {
		err = errors.Join(data.json(results), page.write(func(w io.Writer) error { return report.HTML(w, results) }))
	}
	if err != nil {
		return exit{exitRun, err}
	}
	if !good {
		return silent(exitFindings)
	}
	return nil
}

// judged reports that the router met its criteria, and that nobody met what it
// was to miss.
func judged(out io.Writer, r *drill.Result) bool {
	good := true
	for i := range r.Runs {
		run := &r.Runs[i]
		if names := run.Toothless(); len(names) > 0 {
			fmt.Fprintf(out, "%s: %s was to miss, and met: %s\n", r.Scenario, run.Contender, strings.Join(names, "; "))
			good = false
		}
		good = good && (run.Contender != "router" || run.Passed())
	}
	return good
}

// played is a scenario that is played, maybe more than once.
type played struct {
	scenario *drill.Scenario
	options  drill.Options
	result   *drill.Result // of the first play
	differs  []string      // verdicts of the others
	err      error
}

func (p *played) play(times int) {
	for n := range times {
		r, err := drill.Play(p.scenario, p.options)
		if err != nil {
			p.err = err
			return
		}
		if n == 0 {
			p.result = r
			continue
		}
		for _, d := range p.result.Differs(r) {
			p.differs = append(p.differs, fmt.Sprintf("play %d of %d: %s", n+1, times, d))
		}
	}
}

// mine is the user's configuration, nil for none. Nothing of it is called and
// no secret is needed: what stands for one may be unset.
func (f *drillFlags) mine() (*drill.Mine, error) {
	if f.config == "" {
		return nil, nil
	}
	cfg, err := config.Load(f.config, func(name string) (string, bool) {
		if v := os.Getenv(name); v != "" {
			return v, true
		}
		return "unset-" + strings.ToLower(name), false // a stand-in
	})
	if err != nil {
		return nil, err
	}
	return drill.NewMine(cfg, f.model)
}

// say tells what a drill of the user's configuration takes for granted.
func (f *drillFlags) say(out io.Writer, s *drill.Scenario, assumed []string) {
	fmt.Fprintf(out, "%s with %s:\n", s.Name, f.config)
	for _, a := range assumed {
		fmt.Fprint(out, report.Wrap("- ", a))
	}
	fmt.Fprintln(out)
}

// progress shows the virtual clock on a terminal's line.
func progress(out io.Writer, scenario string) func(string, time.Duration, time.Duration) {
	if file, ok := out.(*os.File); !ok || !terminal(file) {
		return nil
	}
	return func(contender string, at, of time.Duration) {
		fmt.Fprintf(out, "\r\033[K%s  %s  %s of %s", scenario, contender, at.Round(time.Second), of)
		if at+time.Second >= of {
			fmt.Fprint(out, "\r\033[K")
		}
	}
}

func terminal(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}
