package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Document is a small thing that is kept by a name.
type Document struct {
	ID   string
	Body []byte
	At   time.Time // when it was first put
}

// Put keeps a document, in place of the one of that name.
func (s *Store) Put(kind, id string, body []byte) error {
	if kind == "" || id == "" || len(kind) > maxName || len(id) > maxName {
		return fmt.Errorf("store: a kind and an id have 1 to %d bytes", maxName)
	}
	if len(body) > MaxBody {
		return fmt.Errorf("store: %s %s has %d bytes, %d are allowed: %w", kind, id, len(body), MaxBody, ErrTooLarge)
	}
	if body == nil {
		body = []byte{} // NULL otherwise
	}
	return s.do("put", func(db *sql.DB) error {
		_, err := db.Exec(`INSERT INTO document (kind, id, at, seq, body)
			VALUES (?1, ?2, ?3, (SELECT coalesce(max(seq), 0) + 1 FROM document WHERE kind = ?1), ?4)
			ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body`, kind, id, stamp(time.Now()), body)
		return err
	})
}

// Get returns a document's body, and whether there is one.
func (s *Store) Get(kind, id string) (body []byte, found bool, err error) {
	err = s.do("get", func(db *sql.DB) error {
		err := db.QueryRow("SELECT body FROM document WHERE kind = ? AND id = ?", kind, id).Scan(&body)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return body, found, err
}

// List returns the documents of a kind, the one that was put first first.
func (s *Store) List(kind string) ([]Document, error) {
	out := []Document{}
	err := s.do("list", func(db *sql.DB) error {
		rows, err := db.Query("SELECT id, at, body FROM document WHERE kind = ? ORDER BY seq", kind)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var d Document
			var at string
			if err := rows.Scan(&d.ID, &at, &d.Body); err != nil {
				return err
			}
			if d.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
				return err
			}
			out = append(out, d)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Delete lets a document go; that there is none is no error.
func (s *Store) Delete(kind, id string) error {
	return s.do("delete", func(db *sql.DB) error {
		_, err := db.Exec("DELETE FROM document WHERE kind = ? AND id = ?", kind, id)
		return err
	})
}

// stamp is a time as it is kept.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
