package app

import (
	"context"
	"time"

	"github.com/hourthree/hourthree/internal/fault"
)

// Stop drains: not ready at once, no new connections, running requests get
// until the drain limit, the rest is told in-band that it is cut off. It is safe to call twice.
func (a *App) Stop() error {
	if a.draining.Swap(true) {
		return nil
	}
	limit := a.opt.Drain
	if limit == 0 {
		limit = a.current.Load().config.HTTP.Drain.Duration()
	}
	a.log.Info("draining", "component", "app", "in_flight", a.gateway.InFlight(), "limit", limit.String())
	a.builder.forsake()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := a.clients.Shutdown(ctx); err != nil {
		a.log.Warn("cutting off what still runs", "component", "app", "in_flight", a.gateway.InFlight(), "limit", limit.String())
		a.cutOff(fault.ErrDraining)
		a.gateway.Interrupt()
		last, done := context.WithTimeout(context.Background(), lastWords)
		defer done()
		if a.clients.Shutdown(last) != nil {
			a.clients.Close()
			a.wait(last)
		}
	}
	a.stopPoll()
	a.admins.Close()
	a.wg.Wait()
	a.builder.close()
	if a.export != nil {
		a.export.Close()
	}
	a.notify.Close()
	a.lastWrites()
	a.log.Info("stopped", "component", "app")
	a.flush()
	return nil
}

// lastWrites brings to the store what is left, unless its disk hangs: the process ends
// nevertheless, and says so.
func (a *App) lastWrites() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.saves.Wait()
		a.lastPoints(time.Now())
		a.journal.stop()
		a.closeStore()
	}()
	late := time.NewTimer(storeWords)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		a.log.Error("the store does not answer: what it has not taken is lost, the log lines have it", "component", "store", "path", a.store.Path())
	}
}

// wait lets the handlers of closed connections say their last.
func (a *App) wait(ctx context.Context) {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	for a.gateway.InFlight() > 0 && bound.Err() == nil {
		select {
		case <-bound.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// flush writes the last log lines, unless nobody takes them.
func (a *App) flush() {
	done := make(chan struct{})
	go func() {
		a.lines.Flush()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(lastWords):
	}
}
