package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/app"
	"github.com/hourthree/hourthree/internal/config"
)

func serveCommand() *cobra.Command {
	var o app.Options
	c := &cobra.Command{
		Use: "serve", Short: "Run the router", Args: cobra.NoArgs,
		Long: `Run the router.

Without a configuration it takes providers from the usual environment
variables (OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT with AZURE_OPENAI_API_KEY,
ANTHROPIC_API_KEY, GEMINI_API_KEY, AWS_BEARER_TOKEN_BEDROCK with AWS_REGION);
with none of them it serves simulated providers.

The file is read again when it changes and on SIGHUP. SIGTERM and SIGINT drain:
running requests end, new ones are not taken; a second signal ends at once.`,
		RunE: func(*cobra.Command, []string) error { return serve(o) },
	}
	c.Flags().StringVarP(&o.ConfigPath, "config", "c", "", "configuration file")
	c.Flags().StringVar(&o.Listen, "listen", "", "address for clients, instead of the configured one")
	c.Flags().StringVar(&o.AdminListen, "admin-listen", "", "address for the operator, instead of the configured one")
	return c
}

func serve(o app.Options) error {
	// net/http prints what an upstream sends on an idle connection, which may
	// be the rest of an answer, to the standard logger. Ours is slog.
	log.SetOutput(io.Discard)
	// Within a container the heap keeps to nine tenths of its limit, unless
	// GOMEMLIMIT says otherwise. Without a limit there is nothing to set.
	_, _ = memlimit.Set(memlimit.WithRatio(0.9), memlimit.WithProvider(memlimit.FromCgroup))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal has its usual effect
	hup, reload := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		for range hup {
			select {
			case reload <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	o.Env, o.Stdout, o.Stderr, o.Version, o.Reload = os.LookupEnv, os.Stdout, os.Stderr, version(), reload
	err := app.Run(ctx, o)
	var problems config.Problems
	if err == nil || errors.As(err, &problems) {
		return err
	}
	return exit{exitRun, err}
}
