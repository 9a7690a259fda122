package app

import (
	"fmt"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/store"
)

// defaultStore is where the store is where a file configures the router and says
// nothing of it.
const defaultStore = "hourthree.db"

// openStore opens the store. One that is configured must be there; without the
// default one the router goes on with what it remembers itself, and says so.
func (a *App) openStore(c *config.Config) (*store.Store, error) {
	path := c.Store.Path
	switch {
	case path == config.StoreInMemory, path == "" && a.passing():
		if a.opt.Config == nil && a.opt.ConfigPath == "" {
			a.log.Info("the store is in memory: what is in it ends with this process; a configuration file has a place for it, store.path", "component", "store")
		}
		path = store.Memory
	case path != "":
		s, err := store.New(store.Options{Path: path, Log: a.log})
		if err != nil {
			return nil, fmt.Errorf("store.path: %w; name another file, or memory to keep nothing on disk", err)
		}
		return a.checked(s), nil
	default:
		s, err := store.New(store.Options{Path: defaultStore, Log: a.log})
		if err == nil {
			return a.checked(s), nil
		}
		a.log.Warn("the store is in memory: what is in it ends with this process; set store.path to a file that can be written, or to memory",
			"component", "store", "reason", err.Error())
		path = store.Memory
	}
	return store.New(store.Options{Path: path, Log: a.log})
}

// passing says whether the router runs for a moment only, as far as it knows: in a
// drill, a test, or without a configuration file. No file is left behind then.
func (a *App) passing() bool {
	return a.opt.Config != nil || a.opt.ConfigPath == "" || a.opt.trip != nil || a.opt.Network.Dial != nil
}

// checked says whether the audit log of a store is what was written.
func (a *App) checked(s *store.Store) *store.Store {
	if err := s.VerifyLog(); err != nil {
		a.log.Error("the audit log is not what was written", "component", "store", "path", s.Path(), "reason", err.Error())
	}
	return s
}

func (a *App) closeStore() {
	if err := a.store.Close(); err != nil {
		a.log.Error("the store did not close", "component", "store", "path", a.store.Path(), "error", err)
	}
}
