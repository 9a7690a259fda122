// Command hourthree is an inference router: serve, and what is needed around
// it. It only turns flags into options and errors into exit codes: 0 good, 1
// findings, 2 usage or configuration, 3 run time.
package main

import (
	"errors"
	"fmt"
	"os"

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

func main() { os.Exit(run()) }

func run() int {
	root := &cobra.Command{
		Use: "hourthree", Short: "An inference router that keeps answering in hour three of a provider outage",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), initCommand(), validateCommand(), configCommand(), limitsCommand(), outagesCommand(), quarantineCommand(), drillCommand(), auditCommand(), incidentsCommand(), mcpCommand(), versionCommand())
	err := root.Execute()
	if err == nil {
		return 0
	}
	var problems config.Problems
	if errors.As(err, &problems) {
		fmt.Fprint(os.Stderr, problems.Report())
	} else if err.Error() != "" {
		fmt.Fprintln(os.Stderr, "hourthree:", err)
	}
	var e exit
	if errors.As(err, &e) {
		return e.code
	}
	return exitUsage
}
