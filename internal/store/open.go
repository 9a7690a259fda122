package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// application marks a file as ours: "Hr 3" in SQLite's header.
const application = 0x48722033

// magic begins every SQLite file.
var magic = []byte("SQLite format 3\x00")

// Aside is a damaged file that was set aside.
type Aside struct {
	Path   string // where it is now
	Reason string // what SQLite says of it
}

// damage is why a file cannot be used although nobody else has it.
type damage struct{ reason string }

func (d *damage) Error() string { return "damaged: " + d.reason }

// open opens the file, takes its lock, and brings its schema up to date.
func (s *Store) open() error {
	if s.path != Memory {
		if err := prepare(s.path); err != nil {
			return err
		}
	}
	db, err := sql.Open("sqlite", source(s.path))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // it holds the lock, and what is in memory
	db.SetMaxIdleConns(1)
	if err := begin(db); err != nil {
		_ = db.Close() // the first error is the one that counts
		switch {
		case code(err) == sqlite3.SQLITE_BUSY:
			return ErrInUse
		case damaged(err):
			return &damage{err.Error()}
		}
		return err
	}
	s.db = db
	if s.path != Memory {
		s.private()
	}
	return nil
}

// private takes from everybody but the owner the right to read what is ours by now: a
// file that was there may be as open as whoever made it left it.
func (s *Store) private() {
	for _, path := range []string{s.path, s.path + "-wal"} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(path, info.Mode().Perm()&^0o077); err != nil {
			s.log.Warn("others may read the store, and that cannot be changed", "component", "store", "path", path, "error", err)
		}
	}
}

// prepare sees to it that there is a file, with a lasting entry in its directory,
// that only its owner reads, and that it may be ours.
func prepare(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is no regular file", ErrForeign)
	}
	if info.Size() == 0 {
		// SQLite would delete the log of a file that is gone: of one that was being set
		// aside when the process was killed, for instance.
		if err := moved(path, asideName(path), "-wal"); err != nil {
			return err
		}
		return syncDir(filepath.Dir(path))
	}
	head := make([]byte, len(magic))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	head = head[:n]
	// A crash of the machine may leave zeros, which the log may still mend. What is
	// not called a database and does not begin like one may be somebody's text: it
	// stays. What is called one goes aside before SQLite tidies up around it.
	if bytes.HasPrefix(magic, head) || len(bytes.Trim(head, "\x00")) == 0 {
		return nil
	}
	if !strings.HasSuffix(path, ".db") {
		return fmt.Errorf("%w: it does not begin like a database", ErrForeign)
	}
	return &damage{"it does not begin like a database"}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrInvalid) {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// source is the data source: what is set here must hold from the first statement
// on. Locking is exclusive, so that a second process is told, and WAL needs no
// shared memory.
func source(path string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(" + strconv.FormatInt(patience.Milliseconds(), 10) + ")",
		"locking_mode(exclusive)", "synchronous(full)", "recursive_triggers(on)", "trusted_schema(off)", "cell_size_check(on)",
	}}
	if path == Memory {
		return "file::memory:?" + q.Encode()
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// begin looks whether the file is ours, which changes nothing in it, takes the lock,
// looks whether it is whole, and migrates it.
func begin(db *sql.DB) error {
	var app, version, tables int
	for q, to := range map[string]*int{"PRAGMA application_id": &app, "PRAGMA user_version": &version, "SELECT count(*) FROM sqlite_schema": &tables} {
		if err := db.QueryRow(q).Scan(to); err != nil {
			return err
		}
	}
	switch {
	case app != application && (app != 0 || version != 0 || tables > 0):
		return fmt.Errorf("%w: it is a database of something else", ErrForeign)
	case version > len(migrations):
		return fmt.Errorf("%w: its schema is %d, this version knows %d; start the newer version, or name another file", ErrNewer, version, len(migrations))
	}
	if _, err := db.Exec("PRAGMA journal_mode = wal"); err != nil {
		return err
	}
	if err := tx(db, func(*sql.Tx) error { return nil }); err != nil { // the lock
		return err
	}
	var whole string
	if err := db.QueryRow("PRAGMA quick_check(1)").Scan(&whole); err != nil {
		return err
	}
	if whole != "ok" {
		return &damage{strings.TrimSpace(whole)}
	}
	return migrate(db, version)
}

// migrate takes a file from a version of its schema to the newest, one by one, each
// whole or not at all.
func migrate(db *sql.DB, version int) error {
	for v := version; v < len(migrations); v++ {
		err := tx(db, func(t *sql.Tx) error {
			if _, err := t.Exec(migrations[v]); err != nil {
				return err
			}
			_, err := t.Exec(fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", v+1, application))
			return err
		})
		if err != nil {
			return fmt.Errorf("migrate the schema to %d: %w", v+1, err)
		}
	}
	return nil
}

// setAside renames a damaged file, its log included, so that nothing is lost that
// somebody may still read.
func setAside(path, reason string) (*Aside, error) {
	to := asideName(path)
	if err := os.Rename(path, to); err != nil {
		return nil, err
	}
	if err := moved(path, to, "-wal", "-journal", "-shm"); err != nil {
		return nil, err
	}
	return &Aside{Path: to, Reason: reason}, nil
}

func asideName(path string) string {
	return path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000Z")
}

// moved renames what there is beside a file.
func moved(path, to string, beside ...string) error {
	for _, more := range beside {
		if err := os.Rename(path+more, to+more); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
