package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/drill"
)

func drillAblate() *cobra.Command {
	var seed uint64
	c := &cobra.Command{
		Use: "ablate", Short: "Switch each of the router's protections off in turn; exit 1 when no drill fails without it",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := drill.List()
			if err != nil {
				return exit{exitRun, err}
			}
			table, err := drill.Ablate(all, seed, progress(c.ErrOrStderr(), "ablate"))
			if err != nil {
				return exit{exitRun, err}
			}
			if !ablations(c.OutOrStdout(), table) {
				return silent(exitFindings)
			}
			return nil
		},
	}
	c.Flags().Uint64Var(&seed, "seed", 1, "seed of everything that is drawn")
	return c
}

// ablations prints the table and reports that every protection is proven.
func ablations(out io.Writer, table []drill.Ablation) bool {
	good := true
	for _, a := range table {
		fmt.Fprintf(out, "without %s: %s\n", a.Protection, a.About)
		if len(a.Proofs) == 0 {
			fmt.Fprintln(out, "  NOT PROVEN: no drill is to fail")
		}
		for _, p := range a.Proofs {
			fmt.Fprintf(out, "  %s\n", p.Scenario)
			for _, name := range p.Missed {
				fmt.Fprintf(out, "    missed  %s\n", name)
			}
			for _, name := range p.Met {
				fmt.Fprintf(out, "    MET     %s\n", name)
			}
		}
		good = good && a.Proven()
	}
	return good
}
