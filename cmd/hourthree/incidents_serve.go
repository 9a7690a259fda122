package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/library"
)

// maxKeyFile bounds what is read of a key's file.
const maxKeyFile = 4 << 10

func incidentsServe(o *shelf) *cobra.Command {
	var s library.ServerOptions
	var keyFile string
	var origins []string
	c := &cobra.Command{
		Use: "serve", Short: "Serve the library alone, as pages and over REST", Args: cobra.NoArgs,
		Long: `Serve the library alone: pages at /incidents, REST at /api/incidents, described at
/api/incidents/openapi.json. hourthree serve has the same on its operator's
listener. On another address than loopback a key is asked of every request.`,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if s.Key, err = readKey(keyFile); err != nil {
				return err
			}
			if err := errors.Join(s.Validate(), checkOrigins(origins)); err != nil {
				return err
			}
			l, err := o.open()
			if err != nil {
				return err
			}
			s.Handler = library.Handler(func() (*library.Library, error) { return l, nil }, library.Options{Origins: origins})
			s.Preflights = len(origins) > 0
			s.Ready = func(a net.Addr) {
				fmt.Fprintf(c.OutOrStdout(), "%d incidents at http://%s/incidents, REST at http://%s/api/incidents\n", len(l.All()), a, a)
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			context.AfterFunc(ctx, stop) // the second signal has its usual effect
			if err := library.Serve(ctx, s); err != nil {
				return exit{exitRun, err}
			}
			return nil
		},
	}
	c.Flags().StringVar(&s.Listen, "listen", "127.0.0.1:8082", "address")
	c.Flags().StringVar(&keyFile, "key-file", "", "file with the key that is asked of every request")
	c.Flags().StringArrayVar(&origins, "cors-origin", nil, "origin whose pages may read the REST interface, such as https://runbook.example; may be given again")
	return c
}

// readKey reads a key, nothing without a file.
func readKey(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	key := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the key: %w", err)
	case len(data) > maxKeyFile || len(key) < library.LeastKey || strings.ContainsAny(key, " \t\r\n"):
		return "", fmt.Errorf("%s holds no key: it has to be one line of %d characters or more, without spaces", path, library.LeastKey)
	}
	return key, nil
}

// checkOrigins refuses what no browser sends as an origin.
func checkOrigins(origins []string) error {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.Scheme+"://"+u.Host != o {
			return fmt.Errorf("--cors-origin %q is not an origin: write it as https://runbook.example, without a path", o)
		}
	}
	return nil
}
