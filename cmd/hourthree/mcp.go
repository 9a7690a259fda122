package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/collect"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/mcpserver"
)

func mcpCommand() *cobra.Command {
	var m mcpFlags
	c := &cobra.Command{
		Use: "mcp", Short: "Offer the incident library and the audit to agents (Model Context Protocol)", Args: cobra.NoArgs,
		Long: `Offer the incident library and the audit to agents, over the Model Context
Protocol: on standard input and output, or with --listen over HTTP at /mcp. All
tools only read.

What the audit may read is said here and by nobody else: the cluster of one
context, or files below --root. Without either it audits what an agent sends.

hourthree serve offers the tools of the library alone, at /mcp of its operator's
listener.`,
		RunE: func(c *cobra.Command, _ []string) error { return m.run(c) },
	}
	f := c.Flags()
	f.StringVar(&m.context, "context", "", "audit the cluster of this context of the kubeconfig")
	f.StringVar(&m.kubeconfig, "kubeconfig", "", "audit the cluster of this kubeconfig `file`")
	f.BoolVar(&m.cluster, "cluster", false, "audit the cluster of the current context, or the one this runs in")
	f.StringSliceVarP(&m.namespaces, "namespace", "n", nil, "read no other namespaces of the cluster")
	f.StringVar(&m.root, "root", "", "let files below this `folder` be audited")
	f.StringArrayVar(&m.shelf.folders, "library", nil, "`folder` with records of your own; may be given again")
	f.StringVar(&m.listen, "listen", "", "serve over HTTP at this `address`, such as 127.0.0.1:8091")
	f.StringVar(&m.keyFile, "key-file", "", "`file` with the key that is asked of every request; with --listen")
	f.BoolVar(&m.check, "check", false, "list the tools and exit")
	return c
}

type mcpFlags struct {
	context, kubeconfig string
	cluster             bool
	namespaces          []string
	root                string
	shelf               shelf
	listen, keyFile     string
	check               bool
}

func (m *mcpFlags) run(c *cobra.Command) error {
	s, err := m.open(c.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal has its usual effect
	switch {
	case m.check:
		return listTools(c.OutOrStdout(), s)
	case m.listen != "":
		return m.serve(ctx, c.ErrOrStderr(), s)
	case m.keyFile != "":
		return errors.New("--key-file is for --listen: over standard input there is nobody else to keep out")
	}
	return s.Run(ctx, os.Stdin, os.Stdout)
}

// open makes the server. Whatever is wrong with what it may read is said now
// and not at the first call.
func (m *mcpFlags) open(stderr io.Writer) (*mcpserver.Server, error) {
	m.shelf.format = "table"
	l, err := m.shelf.open()
	if err != nil {
		return nil, err
	}
	a := &mcpserver.Audit{Kubeconfig: m.kubeconfig, Context: m.context, Namespaces: m.namespaces, Root: m.root}
	if m.cluster || m.context != "" || m.kubeconfig != "" {
		a.Cluster = collect.FromKubeconfig
	} else if len(m.namespaces) > 0 {
		return nil, errors.New("--namespace: needs a cluster; name one with --cluster, --context or --kubeconfig")
	}
	return mcpserver.New(mcpserver.Options{Library: l, Audit: a, Version: version(), Log: slog.New(slog.NewTextHandler(stderr, nil))})
}

func listTools(w io.Writer, s *mcpserver.Server) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, tool := range s.Tools() {
		fmt.Fprintf(t, "%s\t%s\n", tool.Name, tool.Title)
	}
	return t.Flush()
}

func (m *mcpFlags) serve(ctx context.Context, stderr io.Writer, s *mcpserver.Server) error {
	key, err := readKey(m.keyFile)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcpserver.Handler(func() (*mcpserver.Server, error) { return s, nil }, nil))
	return library.Serve(ctx, library.ServerOptions{Listen: m.listen, Key: key, Handler: mux, Ready: func(a net.Addr) {
		fmt.Fprintf(stderr, "%d tools at http://%s/mcp\n", len(s.Tools()), a)
	}})
}
