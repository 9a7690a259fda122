package app

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/store"
)

// A restart is not to do what a rollout would not: the file may hold a configuration
// that was taken back, or one that few requests have seen. So the configuration in
// force and the rollout are kept in the store. What is kept of the configuration is
// the text of its file, references to secrets as they are written: no secret that
// the file does not hold itself.

// The documents.
const (
	keptConfiguration = "configuration"
	inForceID         = "in-force"
	keptRollout       = "rollout"
	newestID          = "newest"
)

// inForceText is the configuration in force as it is kept.
type inForceText struct {
	Version string `json:"version"`
	Source  string `json:"source"`
	Text    []byte `json:"text"`
}

// lasts reports that what the store keeps is there after a restart.
func (a *App) lasts() bool { return a.store != nil && a.store.Path() != store.Memory }

// keepInForce keeps the configuration in force. Where none is rolled out nothing is
// kept: what was would be older than the file.
func (a *App) keepInForce() {
	l := a.current.Load()
	switch {
	case !a.lasts():
		return
	case l.text == nil || l.config.Rollout == nil:
		a.journal.keep(keptConfiguration, func() error { return a.store.Delete(keptConfiguration, inForceID) })
		return
	}
	a.keepText(l)
}

// keepText keeps a configuration as the one in force.
func (a *App) keepText(l *loaded) {
	if !a.lasts() || l.text == nil {
		return
	}
	data, err := json.Marshal(inForceText{l.id, l.source, l.text})
	a.keep(keptConfiguration, inForceID, "the configuration in force", data, err)
}

// keepRollout keeps where the newest rollout stands.
func (a *App) keepRollout() {
	if a.rolling.run == nil || !a.lasts() {
		return
	}
	data, err := a.rolling.run.Marshal()
	a.keep(keptRollout, newestID, "the rollout", data, err)
}

// keep has a document written, in place of what is not written yet of it. Nothing
// waits for that: it is the poller that goes on with a rollout.
func (a *App) keep(kind, id, what string, data []byte, err error) {
	a.journal.keep(kind, func() error {
		if err == nil {
			if err := a.store.Put(kind, id, data); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		}
		a.log.Error("what a restart goes by is not kept", "component", "rollout", "what", what, "error", err)
		return nil
	})
}

// begins takes the first configuration: the file's, or where that was not through
// when the process ended, the one before, with the rollout where it stood.
func (a *App) begins(file *loaded) error {
	a.rolling.mu.Lock()
	defer a.rolling.mu.Unlock()
	defer a.settleOrders()
	if file.config.Rollout != nil && !a.lasts() {
		a.log.Warn("the configuration file is taken as it is: without a store nothing is known of what was in force before, or taken back", "component", "rollout", "remedy", "set store.path")
	}
	before, err := a.lastInForce(file)
	switch {
	case file.config.Rollout == nil || !a.lasts():
	case err != nil:
		a.log.Error("the configuration file is taken as it is: the one that was in force cannot be", "component", "rollout", "error", err)
	case before != nil && config.Staged(before.config, file.config).ID() != before.config.ID():
		if err = a.take(before); err == nil {
			return a.resume(file)
		}
		a.log.Error("the configuration file is taken as it is: the one that was in force cannot be", "component", "rollout", "error", err)
	}
	if err := a.take(file); err != nil {
		return err
	}
	a.keepInForce()
	return nil
}

// lastInForce is the configuration that was in force when the process ended, nil for
// none. What belongs to the process, its addresses among it, is as the file says now.
func (a *App) lastInForce(file *loaded) (*loaded, error) {
	data, found, err := a.store.Get(keptConfiguration, inForceID)
	if err != nil || !found {
		return nil, err
	}
	var k inForceText
	if err := json.Unmarshal(data, &k); err != nil {
		return nil, fmt.Errorf("read what is kept of it: %w", err)
	}
	c, problems := config.Parse("the configuration "+k.Version+" in the store", k.Text, a.opt.Env)
	if problems.Fatal() {
		return nil, problems
	}
	l := &loaded{config: config.Staged(file.config, c), source: k.Source, id: k.Version, text: k.Text, at: time.Now()}
	return l, l.config.CheckListeners()
}

// resume goes on with the rollout of the file where it stood, never further; one that
// was taken back stays so; and a file that has changed meanwhile begins anew.
func (a *App) resume(file *loaded) error {
	r := &a.rolling
	now := time.Now()
	data, found, err := a.store.Get(keptRollout, newestID)
	if err != nil || !found {
		return a.begin(now, file)
	}
	run, err := rollout.Restore(plan(file.config.Rollout, a.traffic(now)), data, now)
	if err != nil {
		a.log.Error("the rollout begins anew: where it stood cannot be read", "component", "rollout", "error", err)
		return a.begin(now, file)
	}
	switch s := run.Status(now); {
	case s.Version != file.id || s.State == rollout.Promoted || s.State == rollout.Replaced:
		return a.begin(now, file)
	case s.State != rollout.Baking:
		r.run, r.ended = run, file.id
		a.log.Warn("the configuration file was taken back before the restart and is not in force", "component", "rollout", "version", file.id, "in_force", a.current.Load().id, "why", s.Why, "remedy", "change the file, or hourthree rollout retry")
		return nil
	}
	x, err := a.builder.stage(file.config)
	if err != nil {
		return err
	}
	a.builder.use(x)
	r.run, r.way = run, &onItsWay{x, file, new(gateway.Rollout)}
	a.expose()
	a.moments(file.id, last(run.Status(now)))
	return nil
}
