package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/mcpserver"
	"github.com/hourthree/hourthree/internal/steer"
)

// listen opens the listeners, and serves.
func (a *App) listen(c *config.Config, reg *prometheus.Registry) error {
	client, err := a.opt.Network.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for clients on %s: %w; choose another address with --listen", c.Listen, err)
	}
	adm, err := a.opt.Network.Listen("tcp", c.Admin.Listen)
	if err != nil {
		client.Close()
		return fmt.Errorf("listen for the operator on %s: %w; choose another address with --admin-listen", c.Admin.Listen, err)
	}
	a.clientAddr, a.adminAddr = client.Addr(), adm.Addr()
	operators, err := a.adminTLS(netutil.LimitListener(&crowd{Listener: adm}, maxOperatorConns), c)
	if err != nil {
		client.Close()
		adm.Close()
		return err
	}
	quiet := log.New(panics{a.log}, "", 0)
	unread := func(err error) {
		a.log.Error("the incident library cannot be read", "component", "library", "error", err)
	}
	base, cutOff := context.WithCancelCause(context.Background())
	a.cutOff = cutOff
	a.clients = &http.Server{
		BaseContext: func(net.Listener) context.Context { return base },
		Handler:     a.gateway.Handler(), ReadHeaderTimeout: c.HTTP.HeaderTimeout.Duration(), IdleTimeout: idleConn,
		MaxHeaderBytes: int(c.HTTP.MaxHeader), ErrorLog: quiet,
	}
	a.admins = &http.Server{
		Handler: admin.Handler(admin.Options{
			State: a.state, Limits: a.limits, Outages: a.watch.Report, SLOs: a.watch.Budgets, Changed: a.changedElsewhere, History: a.past.answers(), Totals: a.past.sums(), Ready: a.notReady,
			Access: a.guard, Steering: a.steeringAPI(),
			Rollout:   admin.Rollout{Status: a.RolloutStatus, Promote: a.PromoteRollout, Halt: a.HaltRollout, Retry: a.RetryRollout},
			Metrics:   promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}),
			Incidents: library.Handler(a.incidents, library.Options{Failed: unread}),
			MCP:       mcpserver.Handler(a.tools(a.incidents), unread),
			Dashboard: a.dashboard(),
		}),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: idleConn, MaxHeaderBytes: 16 << 10, ErrorLog: quiet,
	}
	a.serve(a.clients, netutil.LimitListener(client, maxConns))
	a.serve(a.admins, operators)
	a.journal.start(a.unwritten)
	a.audit(steer.Entry{At: time.Now(), Who: byRouter, What: "configuration", Subject: a.current.Load().id, Why: "start " + a.current.Load().source})
	ctx, cancel := context.WithCancel(context.Background())
	a.stopPoll = cancel
	a.wg.Go(func() { a.poll(ctx) })
	a.saving(ctx.Done())
	if a.export != nil {
		a.export.Start()
	}
	a.ready.Store(true)
	return nil
}

// tools makes a server of the library's tools. Those of the audit are not
// offered here: what they read is up to whoever starts `hourthree mcp`.
func (a *App) tools(open func() (*library.Library, error)) func() (*mcpserver.Server, error) {
	return func() (*mcpserver.Server, error) {
		l, err := open()
		if err != nil {
			return nil, err
		}
		return mcpserver.New(mcpserver.Options{Library: l, Version: a.opt.Version, Log: a.log})
	}
}

// panics takes what net/http has to say, which is mostly about clients, and keeps
// the faults of the router's own.
type panics struct{ log *slog.Logger }

func (p panics) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("http: panic serving")) {
		p.log.Error("a request ended in a panic", "component", "app", "stack", string(line))
	}
	return len(line), nil
}

func (a *App) serve(s *http.Server, l net.Listener) {
	a.wg.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("listener ended", "component", "app", "address", l.Addr().String(), "error", err)
		}
	})
}
