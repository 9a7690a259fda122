package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/collect"
	"github.com/hourthree/hourthree/internal/render"
	"github.com/hourthree/hourthree/internal/retrypath"
	"github.com/hourthree/hourthree/internal/topology"
)

func auditPath() *cobra.Command {
	var in auditInput
	var asJSON bool
	c := &cobra.Command{
		Use: "path WORKLOAD [PATH...]", Short: "Show the ways from a workload to models, and what retries make of one call", Args: cobra.MinimumNArgs(1),
		Long: `Show the ways from a workload to models: every layer that may repeat a call, how
often it does after which failure, and what they make of one call together.
WORKLOAD is NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(c); err != nil {
				return err
			}
			all, err := pathsOf(c.Context(), in.options(c.InOrStdin(), args[1:]), c.ErrOrStderr())
			if err != nil {
				return err
			}
			paths, err := all.Named(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return render.PathsJSON(c.OutOrStdout(), paths)
			}
			var text strings.Builder
			if err := retrypath.Tree(&text, paths, screenOf(c.OutOrStdout()).Width); err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), render.Inert(text.String()))
			return err
		},
	}
	in.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// pathsOf reads the input; its faults and gaps go to notes.
func pathsOf(ctx context.Context, o collect.Options, notes io.Writer) (*retrypath.Paths, error) {
	in, err := collect.Read(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := render.Notes(notes, in.Input); err != nil {
		return nil, err
	}
	return retrypath.New(topology.New(in.Objects, in.Namespace)), nil
}
