package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/steer"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "h?r #3%20.db") }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// raw opens the file as somebody with another program would.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", source(path))
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

// TestDocuments: what was put is there after the file was closed and opened, oldest
// first, and the file is its owner's alone.
func TestDocuments(t *testing.T) {
	path := file(t)
	s := open(t, path)
	for i := range 12 {
		must(t, s.Put("a", fmt.Sprint("id", i), []byte{byte(i)}))
	}
	must(t, s.Put("b", "id0", nil))
	must(t, s.Put("a", "id3", []byte("again")))
	must(t, s.Delete("a", "id4"))
	must(t, s.Delete("a", "never"))
	must(t, s.Close())

	s = open(t, path)
	list, err := s.List("a")
	must(t, err)
	if len(list) != 11 || list[0].ID != "id0" || list[3].ID != "id3" || string(list[3].Body) != "again" || list[10].ID != "id11" || list[0].At.IsZero() {
		t.Errorf("list %v", list)
	}
	if body, found, err := s.Get("b", "id0"); err != nil || !found || len(body) != 0 {
		t.Errorf("b id0: %q, %v, %v", body, found, err)
	}
	if _, found, err := s.Get("a", "id4"); err != nil || found {
		t.Errorf("a deleted document: %v, %v", found, err)
	}
	if list, err := s.List("none"); err != nil || list == nil || len(list) != 0 {
		t.Errorf("of no kind: %v, %v", list, err)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// TestBounds: what is too large is the caller's mistake and no failure of the store.
func TestBounds(t *testing.T) {
	s := open(t, Memory)
	must(t, s.Put("a", "most", make([]byte, MaxBody)))
	if err := s.Put("a", "more", make([]byte, MaxBody+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a byte more: %v", err)
	}
	if _, err := s.Append(steer.Entry{Why: strings.Repeat("x", MaxBody), Who: "y"}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a long line: %v", err)
	}
	for _, name := range []string{"", strings.Repeat("x", maxName+1)} {
		if s.Put(name, "x", nil) == nil || s.Put("x", name, nil) == nil {
			t.Errorf("a name of %d bytes was taken", len(name))
		}
	}
	for op, n := range s.Failures() {
		if n != 0 {
			t.Errorf("%d failures of %s", n, op)
		}
	}
}

func entry(i int) steer.Entry {
	return steer.Entry{At: time.Date(2026, 5, 29, 9, 0, i, 7, time.FixedZone("x", 3600)), Who: "ada", Role: "operate", What: "drain", Subject: fmt.Sprint("t", i), Why: "slow", Action: "A-1", Undo: "hourthree undo A-1"}
}

// TestLog: lines count from one on, across a restart; they come back as they were
// given out, newest first, page by page.
func TestLog(t *testing.T) {
	path := file(t)
	s := open(t, path)
	var want []steer.Entry
	for i := range 7 {
		if i == 4 {
			must(t, s.Close())
			s = open(t, path)
		}
		e, err := s.Append(entry(i))
		must(t, err)
		if e.ID != int64(i+1) || len(e.Digest) != 64 {
			t.Fatalf("line %d: %+v", i, e)
		}
		want = append(want, e)
	}
	must(t, s.VerifyLog())
	page, err := s.Entries(0, 3)
	must(t, err)
	if len(page) != 3 || page[0] != want[6] || page[2] != want[4] {
		t.Errorf("first page %+v", page)
	}
	page, err = s.Entries(page[2].ID, 0)
	must(t, err)
	if len(page) != 4 || page[0] != want[3] || page[3] != want[0] {
		t.Errorf("second page %+v", page)
	}
}

// TestAppendOnly: the file itself refuses a change of the log, also one that replaces
// or goes back; who takes the rules away is found out.
func TestAppendOnly(t *testing.T) {
	path := file(t)
	s := open(t, path)
	for i := range 5 {
		_, err := s.Append(entry(i))
		must(t, err)
	}
	for _, q := range []string{
		"UPDATE audit SET who = 'eve' WHERE id = 2", "DELETE FROM audit WHERE id = 5", "DELETE FROM audit",
		"INSERT OR REPLACE INTO audit SELECT id, at, 'eve', role, via, what, subject, why, action, undo, digest FROM audit WHERE id = 2",
		"INSERT INTO audit SELECT 0, at, who, role, via, what, subject, why, action, undo, digest FROM audit WHERE id = 2",
	} {
		if _, err := s.db.Exec(q); err == nil || !strings.Contains(err.Error(), "only added to") {
			t.Errorf("%s: %v", q, err)
		}
	}
	must(t, s.VerifyLog())
	must(t, s.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	for q, line := range map[string]string{
		"UPDATE audit SET who = 'eve' WHERE id = 2": "line 2 ", "DELETE FROM audit WHERE id = 3": "line 3 ",
		"DELETE FROM audit WHERE id = 1": "line 1 ", "DELETE FROM audit WHERE id = 5": "line 5 ", "DELETE FROM audit": "line 1 ",
		"UPDATE audit SET at = 'noon' WHERE id = 4":                                    "line 4 ",
		"UPDATE audit SET who = 'a', role = 'daoperate' WHERE id = 2":                  "line 2 ",
		"UPDATE audit SET digest = (SELECT digest FROM audit WHERE id=1) WHERE id = 5": "line 5 ",
	} {
		must(t, os.WriteFile(path, whole, 0o600))
		db := raw(t, path)
		_, err := db.Exec("DROP TRIGGER audit_update; DROP TRIGGER audit_delete; " + q)
		must(t, err)
		must(t, db.Close())
		s = open(t, path)
		if err := s.VerifyLog(); !errors.Is(err, ErrChain) || !strings.Contains(err.Error(), line) {
			t.Errorf("%s: %v, want %s", q, err, line)
		}
		if s.Failures()["verify"] != 0 {
			t.Errorf("%s counts as a failure of the store", q)
		}
		must(t, s.Close())
	}
}

// TestChain: a line that was changed with its digest does not fit the next one.
func TestChain(t *testing.T) {
	path := file(t)
	s := open(t, path)
	for i := range 4 {
		_, err := s.Append(entry(i))
		must(t, err)
	}
	page, err := s.Entries(0, 0)
	must(t, err)
	forged, before := page[2], page[3].Digest
	forged.Who = "eve"
	_, err = s.db.Exec("DROP TRIGGER audit_update")
	must(t, err)
	_, err = s.db.Exec("UPDATE audit SET who = 'eve', digest = ? WHERE id = 2", digest(&forged, before))
	must(t, err)
	if err := s.VerifyLog(); !errors.Is(err, ErrChain) || !strings.Contains(err.Error(), "line 3 ") {
		t.Errorf("%v, want line 3", err)
	}
}

// TestConcurrent: whoever appends at the same time gets a line of his own.
func TestConcurrent(t *testing.T) {
	s := open(t, Memory)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 25 {
				if _, err := s.Append(entry(i)); err != nil {
					t.Error(err)
				}
				if err := s.Put("k", fmt.Sprint(g), []byte{byte(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	must(t, s.VerifyLog())
	page, err := s.Entries(0, 1)
	must(t, err)
	if page[0].ID != 100 {
		t.Errorf("the last line is %d", page[0].ID)
	}
}

// TestPoints: of each level those written last are kept, whatever their step.
func TestPoints(t *testing.T) {
	path := file(t)
	s := open(t, path)
	must(t, s.SavePoints([]Point{{0, 900, []byte("ahead")}, {1, 1, []byte("other")}}, 3))
	for i := range int64(3) {
		must(t, s.SavePoints([]Point{{0, i, fmt.Append(nil, i)}}, 3))
	}
	are := func(want string) {
		t.Helper()
		got, err := s.LoadPoints()
		must(t, err)
		var b bytes.Buffer
		for _, p := range got {
			fmt.Fprintf(&b, "%d/%d %s, ", p.Level, p.Step, p.Body)
		}
		if b.String() != want {
			t.Errorf("got %s\nwant %s", b.String(), want)
		}
	}
	are("1/1 other, 0/0 0, 0/1 1, 0/2 2, ")
	must(t, s.SavePoints([]Point{{0, 0, []byte("again")}}, 3))
	must(t, s.Close())
	s = open(t, path)
	are("1/1 other, 0/1 1, 0/2 2, 0/0 again, ")
}
