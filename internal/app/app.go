// Package app puts the router together: it turns a configuration into a
// snapshot, owns the listeners, the poller, reload and the drain, and is the
// only place that ends the process's work. Nothing imports it but the command
// and tests.
package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"reflect"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/attempt"
	"github.com/hourthree/hourthree/internal/breaker"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/event"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/notify"
	"github.com/hourthree/hourthree/internal/otlp"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/route"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/store"
	"github.com/hourthree/hourthree/internal/telemetry"
	"github.com/hourthree/hourthree/internal/watch"
)

const (
	// maxConns bounds client connections (algorithm notes, 12.1 stage 0).
	maxConns = 10_000
	// pollEvery is how often waiting calls are looked at.
	pollEvery = 100 * time.Millisecond
	// idleConn closes a kept-alive connection that asks for nothing.
	idleConn = 2 * time.Minute
	// lastWords is how long the error event of a cut answer may take.
	lastWords = 2 * time.Second
	// storeWords is how long the last writes to the store may take.
	storeWords = 10 * time.Second
)

// Options is what the command line decides.
type Options struct {
	ConfigPath string // "" takes the environment
	// Config is the configuration in place of a file, for drills; nil for none.
	Config      func() (*config.Config, error)
	Env         func(string) (string, bool)
	Listen      string // overrides the configuration, "" for none
	AdminListen string
	Stdout      io.Writer
	Stderr      io.Writer
	Version     string
	// Reload asks for the configuration to be read again; nil for never.
	Reload <-chan struct{}
	// Drain bounds the end of running streams; 0 takes the configuration's.
	Drain time.Duration

	// Random draws from [0,1), for concurrent use; nil for the system's. A drill
	// draws the same each time.
	Random func() float64
	// Breaker changes the rules of every target's breaker, for drills; nil for not.
	Breaker func(*breaker.Config)
	// Noticed hears what is noticed of outages; nil for nobody.
	Noticed func(detect.Notice)
	// Moved hears every change of a target's breaker; nil for nobody.
	Moved func(event.Transition)
	// Rolled hears where a rollout stands whenever something happens; nil for nobody.
	Rolled func(rollout.State, time.Time)
	// Network is what the router listens and dials on; the system's where empty.
	Network Network

	trip http.RoundTripper // in place of connections to upstreams, for a benchmark
}

// Network stands in for the system's, for drills and tests. Dial also gets the
// calls to upstreams.
type Network struct {
	Listen func(network, addr string) (net.Listener, error)
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
}

// App is a running router.
type App struct {
	opt     Options
	log     *slog.Logger
	lines   *telemetry.Log // where log writes
	metrics *telemetry.Metrics
	watch   *watch.Watch
	gateway *gateway.Gateway
	builder *builder
	export  *otlp.Exporter // nil for none
	store   *store.Store
	past    *recorder // nil in a drill
	notify  *notify.Notifier
	start   time.Time

	ready    atomic.Bool
	draining atomic.Bool
	refused  atomic.Pointer[string]
	current  atomic.Pointer[loaded]
	lanes    lanes
	rolling  rolling
	steering *steering
	journal  *journal

	guard       *access.Guard
	certificate *certificate // nil without TLS

	incidents func() (*library.Library, error) // opened once

	clients, admins *http.Server
	clientAddr      net.Addr
	adminAddr       net.Addr
	stopPoll        context.CancelFunc
	cutOff          context.CancelCauseFunc // ends every running request
	wg              sync.WaitGroup
	reloading       sync.Mutex     // held while the configuration is read and taken: one at a time
	saves           sync.WaitGroup // of the history, which may hang with the store
}

// loaded is one configuration in force.
type loaded struct {
	config *config.Config
	source string
	id     string
	notes  []string
	text   []byte // of the file, nil for none
	at     time.Time
}

// New reads the configuration and opens the listeners. Nothing is served yet.
func New(opt Options) (_ *App, err error) {
	a := &App{opt: opt, start: time.Now(), lines: telemetry.NewLog(opt.Stderr), steering: newSteering(), journal: newJournal()}
	a.rolling.seen, a.rolling.spare = new(rollout.Seen), new(rollout.Seen)
	a.log = slog.New(slog.NewJSONHandler(a.lines, nil))
	if a.opt.Network.Listen == nil {
		a.opt.Network.Listen = net.Listen
	}
	if a.opt.Random == nil {
		a.opt.Random = rand.Float64
	}
	l, err := a.load()
	if err != nil {
		return nil, err
	}
	if a.store, err = a.openStore(l.config); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = a.store.Close() // the error is the one that counts
		}
	}()
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.metrics = telemetry.New(reg, a.lines)
	a.lines.Register(reg)
	a.incidents = sync.OnceValues(library.Embedded)
	a.watch, a.guard = a.watcher(), a.newGuard()
	if err := a.notifier(reg); err != nil {
		return nil, err
	}
	if a.export, err = a.exporter(l.config.Telemetry.OTLP); err != nil {
		return nil, err
	}
	a.past = a.recorder(time.Now())
	listener := a.listener()
	a.gateway = &gateway.Gateway{
		Ledger: admit.NewLedger(memoryLimit(l.config)), Listener: listener, Clients: fault.DefaultClients(), Random: a.opt.Random,
		Line:   attempt.NewLine(queueOf(l.config)),
		Runner: &attempt.Runner{Listener: listener, Random: a.opt.Random},
	}
	a.builder = newBuilder(a.moved(listener), func(t *route.Target) { attempt.Freed(a.gateway.Line, t) })
	a.builder.dial, a.builder.trip, a.builder.agent = opt.Network.Dial, opt.trip, "hourthree/"+opt.Version
	a.builder.breaker = opt.Breaker
	telemetry.Gauges(reg, a.reading)
	telemetry.Rollouts(reg, a.rolloutReading)
	a.exports(reg)
	telemetry.StoreErrors(reg, a.store.Failures)
	if err := a.restore(); err != nil {
		return nil, err
	}
	if err := a.begins(l); err != nil {
		return nil, err
	}
	return a, a.listen(l.config, reg)
}

// moved passes a target's breaker transitions on as events.
func (a *App) moved(l *event.Listener) func(string, []breaker.Transition) {
	return func(name string, ts []breaker.Transition) {
		for _, t := range ts {
			fact := event.Transition{Target: name, From: t.From.String(), To: t.To.String(), Reason: t.Reason, At: t.At}
			l.Moved(fact)
			if a.opt.Moved != nil {
				a.opt.Moved(fact)
			}
		}
	}
}

// load reads the configuration without using it.
func (a *App) load() (*loaded, error) {
	l := &loaded{at: time.Now(), source: "from the environment"}
	if a.opt.Config != nil {
		c, err := a.opt.Config()
		if err != nil {
			return nil, err
		}
		l.config, l.source = c, "of the drill"
	} else if a.opt.ConfigPath == "" {
		l.config, l.notes = config.FromEnv(a.opt.Env)
	} else {
		c, text, err := config.LoadText(a.opt.ConfigPath, a.opt.Env)
		if err != nil {
			return nil, err
		}
		l.config, l.source, l.text = c, a.opt.ConfigPath, text
	}
	if a.opt.Listen != "" {
		l.config.Listen = a.opt.Listen
	}
	if a.opt.AdminListen != "" {
		l.config.Admin.Listen = a.opt.AdminListen
	}
	if err := l.config.CheckListeners(); err != nil { // a flag must not open what the file may not
		return nil, err
	}
	l.id = l.config.ID()
	return l, nil
}

// take makes a configuration the one in force. On error nothing has changed.
func (a *App) take(l *loaded) error {
	s, err := a.builder.build(l.config)
	if err != nil {
		return err
	}
	if err := a.admit(l.config); err != nil {
		return err
	}
	a.inForce(l, s)
	return nil
}

// inForce serves what the builder has put in force, and takes the settings that are
// the process's.
func (a *App) inForce(l *loaded, s *gateway.Snapshot) {
	a.serveFrom(s)
	a.notify.Use(webhooks(l.config.Notify))
	a.watch.Use(topology(a.builder.list(), s))
	a.watch.Objectives(objectives(l.config))
	a.gateway.Line.Reconfigure(queueOf(l.config))
	a.gateway.Ledger.SetLimit(memoryLimit(l.config))
	if a.export != nil {
		a.export.Use(upstreamsOf(l.config))
	}
	a.current.Store(l)
	a.rolling.on.Store(l.config.Rollout != nil)
}

// Reload reads the configuration again. A bad one is refused with its reason
// and the old one stays. A good one is taken at once, or rolled out where it says so.
func (a *App) Reload() error {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	l, err := a.load() // whoever polls, or asks for metrics, does not wait for its disk
	a.rolling.mu.Lock()
	defer a.rolling.mu.Unlock()
	return a.reload(l, err)
}

// reload takes what was read, or says why it cannot be. The lock of rolling is held.
func (a *App) reload(l *loaded, err error) error {
	defer a.settleOrders()
	if err == nil {
		now := a.current.Load().config
		for setting, changed := range map[string]bool{
			"listen": l.config.Listen != now.Listen, "admin.listen": l.config.Admin.Listen != now.Admin.Listen,
			"admin.tls":           (l.config.Admin.TLS == nil) != (now.Admin.TLS == nil),
			"http.header_timeout": l.config.HTTP.HeaderTimeout != now.HTTP.HeaderTimeout, "http.max_header": l.config.HTTP.MaxHeader != now.HTTP.MaxHeader,
			"store.path":     l.config.Store.Path != now.Store.Path,
			"telemetry.otlp": !reflect.DeepEqual(l.config.Telemetry.OTLP, now.Telemetry.OTLP),
		} {
			if changed {
				a.log.Warn("the setting changes with a restart only", "component", "config", "setting", setting)
			}
		}
		// What counts is where the router listens, not where the file would.
		l.config.Listen, l.config.Admin.Listen, l.config.Telemetry, l.config.Store = now.Listen, now.Admin.Listen, now.Telemetry, now.Store
		if (l.config.Admin.TLS == nil) != (now.Admin.TLS == nil) {
			l.config.Admin.TLS = now.Admin.TLS
		}
		if err = l.config.CheckListeners(); err == nil {
			err = a.offer(l)
		}
	}
	a.metrics.Reloaded(err)
	if err != nil {
		reason := err.Error()
		a.refused.Store(&reason)
		a.log.Error("configuration refused, the old one stays", "component", "config", "reason", reason)
		a.audit(steer.Entry{At: time.Now(), Who: byRouter, What: "configuration", Subject: a.opt.ConfigPath, Why: "refused: " + bounded(reason)})
		a.notify.Tell(notify.Refused(time.Now(), a.current.Load().source, err))
		return err
	}
	a.refused.Store(nil)
	return nil
}

// poll lets time pass for the targets: slow and silent calls, leases.
func (a *App) poll(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			a.builder.poll(now)
			a.expire(now)
			a.judge(now)
			a.watch.Poll(now)
			a.past.poll(now, a.reading)
			a.roll(now)
		}
	}
}

// Buffered is the number of bytes that the ledger has granted.
func (a *App) Buffered() int64 { return a.gateway.Ledger.Reserved() }

// Addr is where clients are served.
func (a *App) Addr() net.Addr { return a.clientAddr }

// AdminAddr is where the operator is served.
func (a *App) AdminAddr() net.Addr { return a.adminAddr }

func (a *App) notReady() error {
	switch {
	case a.draining.Load():
		return errors.New("draining")
	case !a.ready.Load():
		return errors.New("starting")
	}
	return nil
}

// Run serves until ctx ends, then drains.
func Run(ctx context.Context, opt Options) error {
	a, err := New(opt)
	if err != nil {
		return err
	}
	a.welcome()
	changed := a.watchFile(ctx)
	for {
		select {
		case <-ctx.Done():
			return a.Stop()
		case <-opt.Reload:
		case <-changed:
		}
		_ = a.Reload() // the reason is logged, counted and shown
	}
}

// watchFile reports that the configuration file has changed: by its time or
// size, looked at once a second, which also sees a mounted secret swapped by
// a symbolic link.
func (a *App) watchFile(ctx context.Context) <-chan struct{} {
	if a.opt.ConfigPath == "" {
		return nil
	}
	changed := make(chan struct{})
	last, _ := os.Stat(a.opt.ConfigPath) // it has just been read
	a.wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now, err := os.Stat(a.opt.ConfigPath)
			if err != nil || last != nil && now.ModTime().Equal(last.ModTime()) && now.Size() == last.Size() {
				continue
			}
			last = now
			select {
			case changed <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	})
	return changed
}

// memoryLimit is the budget for buffered bytes.
func memoryLimit(c *config.Config) int64 {
	if n := c.Memory.Limit.Bytes(); n > 0 {
		return n
	}
	most, err := memlimit.FromCgroup()
	if err != nil || most >= 1<<60 {
		most, err = memlimit.FromSystem()
	}
	if err != nil {
		most = 0
	}
	return admit.MemoryLimit(debug.SetMemoryLimit(-1), int64(most))
}
