package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
)

func quarantineCommand() *cobra.Command {
	var router operatorListener
	var why, last string
	var share float64
	var release bool
	c := &cobra.Command{
		Use:   "quarantine WORKLOAD",
		Short: "Move a workload to its own lane in a running router, or back",
		Long: "Move a workload of a running router to the quarantine lane: a fixed share of\n" +
			"concurrency and memory, no extra attempts, no repeats. It holds from the next\n" +
			"request on, without a restart, for 4h or until --release. hourthree actions lists it.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one workload: hourthree quarantine WORKLOAD; hourthree limits lists them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if strings.TrimSpace(why) == "" {
				return errors.New("say why, with --why \"...\": it is kept with the change")
			}
			order := map[string]any{"who": operator(), "why": why}
			method, said := http.MethodPut, "in quarantine"
			if release {
				method, said = http.MethodDelete, "released"
			}
			if c.Flags().Changed("share") {
				order["share"] = share
			}
			if last != "" && !release {
				order["for"] = last
			}
			if _, err := router.send(c.Context(), method, pathTo("/api/v1/workloads/%s/quarantine", args[0]), order); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", args[0], said)
			return nil
		},
	}
	router.flags(c)
	c.Flags().StringVar(&why, "why", "", "`reason`, for those who read the log (required)")
	c.Flags().StringVar(&last, "for", "", "how long it holds, 1m to 24h: it ends by itself (default 4h)")
	c.Flags().Float64Var(&share, "share", 0.05, "share of concurrency and memory, 0 to 1; 0 lets nothing in")
	c.Flags().BoolVar(&release, "release", false, "move it back")
	return c
}

// operator is who runs the command.
func operator() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
