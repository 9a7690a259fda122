package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/drill"
	"github.com/hourthree/hourthree/internal/report"
)

func drillCompare() *cobra.Command {
	var html string
	c := &cobra.Command{
		Use: "compare OLD.json NEW.json", Args: cobra.ExactArgs(2),
		Short: "Compare two files of drill run --json; exit 1 when a criterion that was met is missed",
		RunE: func(c *cobra.Command, files []string) error {
			old, err := results(files[0])
			if err != nil {
				return exit{exitUsage, err}
			}
			now, err := results(files[1])
			if err != nil {
				return exit{exitUsage, err}
			}
			compared, err := report.Compare(old, now)
			if err != nil {
				return exit{exitUsage, fmt.Errorf("%s: %w (%s)", files[1], err, files[0])}
			}
			page, err := open(html)
			if err != nil {
				return err
			}
			defer page.drop()
			if err := report.CompareText(c.OutOrStdout(), compared); err != nil {
				return exit{exitRun, err}
			}
			if err := page.write(func(w io.Writer) error { return report.CompareHTML(w, compared) }); err != nil {
				return exit{exitRun, err}
			}
			if len(compared.Worse()) > 0 {
				return silent(exitFindings)
			}
			return nil
		},
	}
	c.Flags().StringVar(&html, "html", "", "write a page to this `file`")
	return c
}

// results reads a file of drill run --json.
func results(file string) ([]*drill.Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out, err := report.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

func drillSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of a scenario file", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(drill.Schema())
			return err
		},
	}
}
