// Package store keeps what must outlive the process: small documents, the audit log
// and the points of the history, in one SQLite file of this process alone. It
// decides what is done about a file that is damaged, newer, or in use, and that the
// audit log is only ever added to. It knows nothing of what the documents mean, and
// the path of a request never comes here.
//
// A write that has returned without error is on the disk. A write that fails is
// counted, and logged once until one works again; what to do without it is up to
// the caller.
package store

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// Memory is the path of a store that keeps nothing.
	Memory = ":memory:"
	// MaxBody bounds a document and a line of the audit log, in bytes.
	MaxBody = 1 << 20
	// maxName bounds a kind and an id, in bytes.
	maxName = 256
	// patience is how long a file in use is waited for: a process that is ending
	// lets go of it.
	patience = 2 * time.Second
)

// Reasons why a store is not opened.
var (
	// ErrInUse is that of a file which another process has open.
	ErrInUse = errors.New("another process has the file open")
	// ErrNewer is that of a file written by a newer version of this program.
	ErrNewer = errors.New("a newer version has written the file")
	// ErrForeign is that of a file that is no store.
	ErrForeign = errors.New("the file is not a store of this program")
)

// ErrTooLarge is that of a document or a line that is beyond its bound.
var ErrTooLarge = errors.New("too large for the store")

var errClosed = errors.New("the store is closed")

// Options are what a store is made of.
type Options struct {
	Path string       // of the file, or Memory
	Log  *slog.Logger // nil for none
}

// Store is safe for concurrent use: one operation runs at a time.
type Store struct {
	path  string
	log   *slog.Logger
	aside *Aside

	mu     sync.Mutex // held through an operation, however long the disk takes
	db     *sql.DB    // nil for one in memory that was not asked yet
	closed bool
	streak int64 // failures since one worked

	counting sync.Mutex       // never held while the disk is waited for
	failed   map[string]int64 // by operation, since the start
}

// operations are those whose failures are counted.
var operations = [...]string{"put", "get", "list", "delete", "append", "entries", "verify", "save_points", "load_points"}

// Open opens the store in a file, which it creates with mode 0600 where there is
// none, or one in memory where the path is Memory.
func Open(path string) (*Store, error) { return New(Options{Path: path}) }

// New opens a store. A damaged file is set aside, see Aside, and a new one begun. The
// error is, or wraps, ErrInUse, ErrNewer, ErrForeign, or that of the file system.
func New(o Options) (*Store, error) {
	s := &Store{path: o.Path, log: o.Log, failed: map[string]int64{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, op := range operations {
		s.failed[op] = 0
	}
	if o.Path == Memory {
		return s, nil // it is made when it is first asked for something
	}
	err := s.open()
	var d *damage
	if errors.As(err, &d) {
		if s.aside, err = setAside(o.Path, d.reason); err != nil {
			return nil, fmt.Errorf("store %s: damaged (%s), and cannot be set aside: %w", o.Path, d.reason, err)
		}
		s.log.Error("the store was damaged and is set aside; a new one is begun, and what was in the old one is missing",
			"component", "store", "path", o.Path, "reason", d.reason, "aside", s.aside.Path)
		err = s.open()
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", o.Path, err)
	}
	return s, nil
}

// Close lets go of the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.db == nil {
		return nil
	}
	return s.db.Close()
}

// Path is that of the file, or Memory.
func (s *Store) Path() string { return s.path }

// Aside is the damaged file in place of which this store was begun, nil for none.
func (s *Store) Aside() *Aside { return s.aside }

// Failures counts the operations that have failed, by name. It does not wait for one
// that runs.
func (s *Store) Failures() map[string]int64 {
	s.counting.Lock()
	defer s.counting.Unlock()
	return maps.Clone(s.failed)
}

// do runs an operation alone, and counts and logs how it ends. A log that was changed
// is no failure of the store.
func (s *Store) do(op string, f func(*sql.DB) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case s.closed:
		err = errClosed
	case s.db == nil:
		err = s.open()
	}
	if err == nil {
		err = f(s.db)
	}
	switch {
	case err == nil:
		if s.streak > 0 {
			s.log.Info("the store works again", "component", "store", "path", s.path, "failures", s.streak)
			s.streak = 0
		}
		return nil
	case errors.Is(err, ErrChain):
		return err
	}
	s.counting.Lock()
	s.failed[op]++
	s.counting.Unlock()
	if s.streak++; s.streak == 1 {
		s.log.Error("the store fails; serving goes on without it, and this is logged once until it works again",
			"component", "store", "path", s.path, "operation", op, "error", err)
	}
	return fmt.Errorf("store: %s: %w", op, err)
}

// tx runs a transaction, which holds the file from its first statement on.
func tx(db *sql.DB, f func(*sql.Tx) error) error {
	t, err := db.Begin()
	if err != nil {
		return err
	}
	if err := f(t); err != nil {
		_ = t.Rollback() // the first error is the one that counts
		return err
	}
	return t.Commit()
}

// code is SQLite's primary result code of an error, 0 for another error.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// damaged says whether an error is about the content of the file.
func damaged(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_CORRUPT || c == sqlite3.SQLITE_NOTADB
}
