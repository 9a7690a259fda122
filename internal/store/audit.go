package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/hourthree/hourthree/internal/steer"
)

// ErrChain is that of an audit log with a line that does not fit the one before.
var ErrChain = errors.New("the audit log was changed")

// mostEntries bounds one answer of Entries.
const mostEntries = 1000

const columns = "id, at, who, role, via, what, subject, why, action, undo, digest"

// Append adds a line to the audit log and returns it as it was written: with its ID,
// one above the last, its digest, and the time in UTC.
func (s *Store) Append(e steer.Entry) (steer.Entry, error) {
	size := 0
	for _, text := range texts(&e) {
		size += len(*text)
	}
	if size > MaxBody {
		return e, fmt.Errorf("store: a line of the audit log has %d bytes, %d are allowed: %w", size, MaxBody, ErrTooLarge)
	}
	e.At = e.At.Round(0).UTC()
	err := s.do("append", func(db *sql.DB) error {
		return tx(db, func(t *sql.Tx) error {
			var before string
			err := t.QueryRow("SELECT id, digest FROM audit ORDER BY id DESC LIMIT 1").Scan(&e.ID, &before)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			if err != nil {
				e.ID = 0
			}
			e.ID++
			e.Digest = digest(&e, before)
			_, err = t.Exec("INSERT INTO audit ("+columns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				e.ID, stamp(e.At), e.Who, e.Role, e.Via, e.What, e.Subject, e.Why, e.Action, e.Undo, e.Digest)
			return err
		})
	})
	return e, err
}

// Entries returns lines of the audit log below an ID, the newest first; before 0 is
// from the newest. At most 1,000 come, and so many where most is not above 0.
func (s *Store) Entries(before int64, most int) ([]steer.Entry, error) {
	if most <= 0 || most > mostEntries {
		most = mostEntries
	}
	out := []steer.Entry{}
	err := s.do("entries", func(db *sql.DB) error {
		return entries(db, "WHERE ?1 = 0 OR id < ?1 ORDER BY id DESC LIMIT ?2", []any{before, most}, func(e *steer.Entry) error {
			out = append(out, *e)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// VerifyLog computes every digest of the audit log again. The error wraps ErrChain
// and names the first line that does not fit: one that was changed, or that follows
// a missing one. It says nothing of a file in which somebody has written the whole
// chain anew: compare the digests with those in the log lines for that.
func (s *Store) VerifyLog() error {
	return s.do("verify", func(db *sql.DB) error {
		var last int64
		before := ""
		err := entries(db, "ORDER BY id", nil, func(e *steer.Entry) error {
			if e.ID != last+1 {
				return fmt.Errorf("line %d is missing: %w", last+1, ErrChain)
			}
			if e.Digest != digest(e, before) {
				return fmt.Errorf("line %d does not fit: it or its digest is not what was written: %w", e.ID, ErrChain)
			}
			last, before = e.ID, e.Digest
			return nil
		})
		if err != nil {
			return err
		}
		var given int64 // SQLite's own count of the lines
		err = db.QueryRow("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit'").Scan(&given)
		if err == nil && given > last {
			return fmt.Errorf("line %d is missing: %w", last+1, ErrChain)
		}
		return err
	})
}

// entries passes lines on, one by one.
func entries(db *sql.DB, where string, args []any, each func(*steer.Entry) error) error {
	rows, err := db.Query("SELECT "+columns+" FROM audit "+where, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e steer.Entry
		var at string
		if err := rows.Scan(&e.ID, &at, &e.Who, &e.Role, &e.Via, &e.What, &e.Subject, &e.Why, &e.Action, &e.Undo, &e.Digest); err != nil {
			return err
		}
		if e.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return fmt.Errorf("line %d does not fit: its time is none: %w", e.ID, ErrChain)
		}
		if err := each(&e); err != nil {
			return err
		}
	}
	return rows.Err()
}

func texts(e *steer.Entry) []*string {
	return []*string{&e.Who, &e.Role, &e.Via, &e.What, &e.Subject, &e.Why, &e.Action, &e.Undo}
}

// digest is of a line and of the digest before it. Each text has its length before
// it, so that none can be taken for another.
func digest(e *steer.Entry, before string) string {
	h := sha256.New()
	var n [8]byte
	put := func(text string) {
		binary.BigEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:])
		h.Write([]byte(text))
	}
	put(before)
	binary.BigEndian.PutUint64(n[:], uint64(e.ID))
	h.Write(n[:])
	put(stamp(e.At))
	for _, text := range texts(e) {
		put(*text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
