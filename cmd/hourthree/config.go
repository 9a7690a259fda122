package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/config"
)

func initCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented configuration that starts as it stands", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "hourthree.yaml"
			if len(args) == 1 {
				path = args[0]
			}
			mode := os.O_CREATE | os.O_WRONLY | os.O_EXCL
			if force {
				mode = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
			}
			f, err := os.OpenFile(path, mode, 0o600) // it may come to hold keys
			if errors.Is(err, os.ErrExist) {
				return fmt.Errorf("%s exists; choose another name, or --force", path)
			}
			if err != nil {
				return err
			}
			_, err = f.Write(config.Example())
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s. Try it:\n\n  hourthree serve -c %s\n", path, path)
			return nil
		},
	}
	c.Flags().BoolVar(&force, "force", false, "overwrite the file")
	return c
}

func validateCommand() *cobra.Command {
	var output string
	var strict bool
	c := &cobra.Command{
		Use: "validate FILE", Short: "Check a configuration", Args: cobra.ExactArgs(1),
		Long: `Check a configuration: everything wrong with it at once, each with its place
and the remedy. References to the environment and to files are followed, so
run it where the router will run.

Exit 0: it would be taken; 1: with --strict, there are warnings; 2: it would
be refused.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return errors.New("--output must be text or json")
			}
			_, problems := config.Check(args[0], os.LookupEnv)
			if err := printProblems(cmd.OutOrStdout(), output, problems); err != nil {
				return err
			}
			switch {
			case problems.Fatal():
				return silent(exitUsage)
			case strict && len(problems) > 0:
				return silent(exitFindings)
			case output == "text":
				fmt.Fprintf(cmd.OutOrStdout(), "%s is good.\n", args[0])
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	c.Flags().BoolVar(&strict, "strict", false, "exit 1 when there are warnings")
	return c
}

func printProblems(out io.Writer, form string, problems config.Problems) error {
	if form == "json" {
		if problems == nil {
			problems = config.Problems{} // [] and not null
		}
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(problems)
	}
	report := problems.Report()
	if report != "" && !problems.Fatal() {
		report += "\n"
	}
	_, err := io.WriteString(out, report)
	return err
}

func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "About the configuration"}
	c.AddCommand(hashKeyCommand(), &cobra.Command{
		Use: "schema", Short: "Print the JSON schema for editors", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	})
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "hourthree", version())
			return err
		},
	}
}

// version is the module's version, or the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	v := "devel"
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v
}
