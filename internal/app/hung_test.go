package app

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/rollout"
)

// hang has the store answer nothing until mended is called.
func (r *rig) hang() (mended func()) {
	until, hangs := make(chan struct{}), make(chan struct{})
	r.app.journal.add(job{write: func() error { close(hangs); <-until; return nil }})
	<-hangs
	return sync.OnceFunc(func() { close(until) })
}

// TestReadersOfAHungStore: while the disk hangs whoever reads the audit log is told so,
// takes no room from what is to be written, and leaves nothing behind.
func TestReadersOfAHungStore(t *testing.T) {
	run(t, guarded(upstream("u1", answers("fine")), keysOf), func(r *rig) {
		mended := r.hang()
		defer mended()
		var readers sync.WaitGroup
		for range 50 {
			readers.Go(func() {
				if status, text := r.admin(http.MethodGet, "/api/v1/audit", viewKey, ""); status != 500 || !strings.Contains(text, "does not answer") {
					t.Errorf("%d %s", status, text)
				}
			})
		}
		readers.Wait()
		if n := len(r.app.journal.queue); n > 1 {
			t.Errorf("%d readers are in the queue of what is to be written", n)
		}
		mended()
		if status, text := r.admin(http.MethodGet, "/api/v1/audit", viewKey, ""); status != 200 || !strings.Contains(text, `"configuration"`) {
			t.Errorf("%d %s", status, text)
		}
	})
}

// TestStopWithAHungStore: the process ends, and says what is lost.
func TestStopWithAHungStore(t *testing.T) {
	run(t, guarded(upstream("u1", answers("fine")), keysOf), func(r *rig) {
		mended := r.hang()
		defer mended()
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > storeWords+time.Second {
			t.Errorf("it took %v", took)
		}
		if !strings.Contains(r.logs.String(), "what it has not taken is lost") {
			t.Errorf("nothing is said of it: %s", r.logs)
		}
	})
}

// TestRolloutWithAHungStore: the poller, which moves a rollout, does not write itself.
func TestRolloutWithAHungStore(t *testing.T) {
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	db := fmt.Sprintf("store: {path: %q}\n", filepath.Join(t.TempDir(), "h.db"))
	v1, v2 := pair{workloads: 10, to: "old", stages: quick, more: db}, pair{workloads: 10, to: "new", stages: quick, more: db}
	run(t, setup{upstreams: []*fake{old, next}, whole: v1.yaml()}, func(r *rig) {
		defer r.stop()
		r.flow(10, 50*time.Millisecond, lasting(2*time.Minute))
		mended := r.hang()
		defer mended()
		r.take(v2)
		r.flow(10, 50*time.Millisecond, r.over(time.Hour))
		if s := r.rolled(); s.State != rollout.Promoted {
			t.Errorf("%s: %s", s.State, s.Why)
		}
		if _, found, err := r.app.store.Get(keptRollout, newestID); found || err != nil {
			t.Errorf("something has written past the journal: %v %v", found, err)
		}
		mended()
		if err := r.app.journal.read(func() {}); err != nil {
			t.Fatal(err)
		}
		if _, found, err := r.app.store.Get(keptRollout, newestID); !found || err != nil {
			t.Errorf("the rollout is not kept: %v %v", found, err)
		}
	})
}

// TestReloadFromAHungDisk: while the configuration is read nothing is held that the
// poller and the metrics need.
func TestReloadFromAHungDisk(t *testing.T) {
	run(t, guarded(upstream("u1", answers("fine")), keysOf), func(r *rig) {
		if err := os.Remove(r.file); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(r.file, 0o600); err != nil {
			t.Skip(err)
		}
		reloaded := make(chan error)
		go func() { reloaded <- r.app.Reload() }()
		f, err := os.OpenFile(r.file, os.O_WRONLY, 0) // there is a reader from here on
		if err != nil {
			t.Fatal(err)
		}
		if r.app.rolling.mu.TryLock() {
			r.app.rolling.mu.Unlock()
		} else {
			t.Error("the lock of the poller is held while the file is read")
		}
		_, _ = f.WriteString("listen: [")
		_ = f.Close()
		if err := <-reloaded; err == nil {
			t.Error("a bad configuration is taken")
		}
	})
}
