package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/render"
)

func auditChecks() *cobra.Command {
	c := &cobra.Command{
		Use: "checks", Short: "List and explain the checks", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the checks, by group", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return render.ChecksJSON(c.OutOrStdout(), audit.Groups())
			}
			return render.Checks(c.OutOrStdout(), audit.Groups(), screenOf(c.OutOrStdout()))
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "as JSON, with everything that the checks say")
	var folder string
	explain := &cobra.Command{
		Use: "explain ID", Short: "Tell what a check looks for, why, what to do, and which incidents had it", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := audit.Select(args)
			if err != nil {
				return err
			}
			lib, err := openLibrary(folder)
			if err != nil {
				return err
			}
			for i, k := range found {
				if i > 0 {
					fmt.Fprintln(c.OutOrStdout())
				}
				if err := render.Explain(c.OutOrStdout(), k, lib, screenOf(c.OutOrStdout())); err != nil {
					return err
				}
			}
			return nil
		},
	}
	explain.Flags().StringVar(&folder, "library", "", "cite the incidents of this `folder` too")
	c.AddCommand(list, explain)
	return c
}
