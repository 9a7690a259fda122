// Command hourthree is an inference router: serve, and what is needed around
// it. It only turns flags into options and errors into exit codes: 0 good, 1
// findings, 2 usage or configuration, 3 run time.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/config"
)

const (
	exitFindings = 1
	exitUsage    = 2
	exitRun      = 3
)

// exit is an error with its code.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string { return e.err.Error() }
func (e exit) Unwrap() error { return e.err }

// silent ends with a code after everything has been said.
func silent(code int) error { return exit{code, errors.New("")} }

// harmless is a text without what changes a terminal's state: errors quote
// servers and files of others.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func main() { os.Exit(run()) }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "hourthree", Short: "An inference router that keeps answering in hour three of a provider outage",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), initCommand(), validateCommand(), configCommand(), limitsCommand(), outagesCommand(), quarantineCommand(), whoamiCommand(), drillCommand(), auditCommand(), incidentsCommand(), mcpCommand(), versionCommand())
	root.AddCommand(steerCommands()...)
	refuseUnknown(root)
	return root
}

func run() int {
	err := rootCommand().Execute()
	if err == nil {
		return 0
	}
	var problems config.Problems
	if errors.As(err, &problems) {
		fmt.Fprint(os.Stderr, problems.Report())
	} else if err.Error() != "" {
		fmt.Fprintln(os.Stderr, "hourthree:", harmless(err.Error()))
	}
	var e exit
	if errors.As(err, &e) {
		return e.code
	}
	return exitUsage
}

// refuseUnknown makes a command that only has others refuse a name that none of
// them has: cobra would print its help, and exit as if that had been asked.
func refuseUnknown(c *cobra.Command) {
	for _, sub := range c.Commands() {
		refuseUnknown(sub)
	}
	if !c.HasParent() || !c.HasSubCommands() || c.Runnable() {
		return
	}
	c.Args, c.SuggestionsMinimumDistance = cobra.ArbitraryArgs, 2
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		err := fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
		}
		return fmt.Errorf("%w; %s --help lists them", err, c.CommandPath())
	}
}
