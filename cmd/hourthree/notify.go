package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/app"
)

func notifyCommand() *cobra.Command {
	c := &cobra.Command{Use: "notify", Short: "About the webhooks that are told what is noticed"}
	c.AddCommand(notifyTestCommand())
	return c
}

func notifyTestCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use: "test WEBHOOK", Short: "Send one message to a webhook of the configuration",
		Long: `Send one message to a webhook of the configuration, once, from where the
command runs, and say what it answers. No router is needed and none is asked.

Exit 0: the message was taken; 2: the configuration would be refused or has no
such webhook; 3: the message was not taken.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one webhook: hourthree notify test WEBHOOK -c FILE")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			conf, err := configured(path)
			if err != nil {
				return err
			}
			d, err := app.TestWebhook(c.Context(), conf, args[0], version())
			switch {
			case err != nil:
				return err
			case !d.Delivered:
				return exit{exitRun, fmt.Errorf("%s: not delivered: %s", args[0], d.Reason)}
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: delivered, answers %s after %s\n", args[0], d.Status, d.Took.Round(time.Millisecond))
			return nil
		},
	}
	c.Flags().StringVarP(&path, "config", "c", "", "configuration file")
	return c
}
