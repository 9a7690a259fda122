package store

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childOf names the file in which a child of a test appends until it is killed.
const childOf = "HOURTHREE_STORE_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childOf); path != "" {
		appendForever(path)
	}
	os.Exit(m.Run())
}

func appendForever(path string) {
	s, err := Open(path)
	for i := 0; err == nil; i++ {
		e, fault := s.Append(entry(i))
		if err = fault; err == nil {
			_, err = fmt.Println(e.ID) // acknowledged
		}
	}
	fmt.Println(err)
	os.Exit(3)
}

// child starts a process that appends, and returns once it has begun.
func child(t *testing.T, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childOf+"="+path)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the child said nothing")
	}
	return c, lines
}

// TestKilled: what was acknowledged before the process was killed is there, and the
// chain is whole. The lock goes with the process.
func TestKilled(t *testing.T) {
	path := file(t)
	last := int64(0)
	for round := range 5 {
		c, lines := child(t, path)
		for range 20 * round {
			lines.Scan()
		}
		must(t, c.Process.Signal(syscall.SIGKILL))
		for more := true; more; more = lines.Scan() {
			n, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Fatalf("the child said %q", lines.Text())
			}
			last = n
		}
		_ = c.Wait()
		s := open(t, path)
		must(t, s.VerifyLog())
		page, err := s.Entries(0, 1)
		must(t, err)
		if page[0].ID < last || page[0].ID > last+1 || s.Aside() != nil {
			t.Fatalf("the last line is %d, %d was acknowledged, aside %v", page[0].ID, last, s.Aside())
		}
		must(t, s.Close())
	}
	t.Logf("%d lines over 5 kills", last)
}

// TestInUse: a file that another process has is refused with that reason, and comes
// to no harm.
func TestInUse(t *testing.T) {
	path := file(t)
	c, lines := child(t, path)
	go func() { // so that it goes on
		for lines.Scan() {
		}
	}()
	if s, err := Open(path); !errors.Is(err, ErrInUse) || s != nil {
		t.Errorf("opened a file in use: %v, %v", s, err)
	}
	must(t, c.Process.Kill())
	_ = c.Wait()
	must(t, open(t, path).VerifyLog())
}

// filled is a store's file with something in it.
func filled(t *testing.T, path string) []byte {
	t.Helper()
	s := open(t, path)
	for i := range 200 {
		must(t, s.Put("k", fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, 400)))
	}
	must(t, s.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	return whole
}

// TestDamaged: a file that is broken or cut short is kept beside the new one, said so
// loudly, and the store works.
func TestDamaged(t *testing.T) {
	whole := filled(t, file(t))
	noise := bytes.Clone(whole)
	for i := 4096; i < len(noise); i += 3 {
		noise[i] ^= 0x5a
	}
	for name, body := range map[string][]byte{
		"noise": noise, "cut": whole[:len(whole)/2], "cut in the header": whole[:50], "zeros": make([]byte, 8192), "text": []byte("hello, this is no database"),
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			must(t, os.WriteFile(path, body, 0o600))
			var log bytes.Buffer
			s, err := New(Options{Path: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
			must(t, err)
			defer s.Close()
			must(t, s.Put("k", "0", nil))
			a := s.Aside()
			if a == nil {
				t.Fatal("nothing was set aside")
			}
			kept, err := os.ReadFile(a.Path)
			must(t, err)
			if !bytes.Equal(kept, body) || a.Reason == "" || !strings.HasPrefix(a.Path, path+".damaged-") {
				t.Errorf("aside %+v holds %d bytes of %d", a, len(kept), len(body))
			}
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "damaged-") {
				t.Errorf("log: %s", log.String())
			}
			t.Log(a.Reason)
		})
	}
}

// TestAsideWithItsLog: what SQLite has written beside a file goes with it.
func TestAsideWithItsLog(t *testing.T) {
	path := file(t)
	for _, end := range []string{"", "-wal", "-journal"} {
		must(t, os.WriteFile(path+end, []byte("the last lines"+end), 0o600))
	}
	a := open(t, path).Aside()
	for _, end := range []string{"", "-wal", "-journal"} {
		if kept, err := os.ReadFile(a.Path + end); err != nil || string(kept) != "the last lines"+end {
			t.Errorf("%s: %q, %v", end, kept, err)
		}
	}
}

// TestRefused: what is not ours, or newer, or cannot be written is left as it is,
// with its reason.
func TestRefused(t *testing.T) {
	newer, foreign, text := file(t), file(t), filepath.Join(t.TempDir(), "hourthree.yaml")
	must(t, open(t, newer).Close())
	db := raw(t, newer)
	_, err := db.Exec("PRAGMA user_version = 99")
	must(t, err)
	must(t, db.Close())
	db = raw(t, foreign)
	_, err = db.Exec("CREATE TABLE theirs (x)")
	must(t, err)
	must(t, db.Close())
	must(t, os.WriteFile(text, []byte("listen: 127.0.0.1:8080\n"), 0o600))
	for path, want := range map[string]error{newer: ErrNewer, foreign: ErrForeign, text: ErrForeign, t.TempDir(): nil, filepath.Join(t.TempDir(), "no", "x.db"): os.ErrNotExist} {
		before, _ := os.ReadFile(path)
		s, err := Open(path)
		if s != nil || err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", path)
		}
		if left, _ := filepath.Glob(filepath.Dir(path) + "/*damaged*"); len(left) > 0 {
			t.Errorf("%s was set aside", path)
		}
	}
}

// TestFails: a store that can write no more says so once and counts it; with room
// again it goes on. The room is a bound on the file's pages.
func TestFails(t *testing.T) {
	var log bytes.Buffer
	s, err := New(Options{Path: file(t), Log: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	defer s.Close()
	pages := func(n int) {
		_, err := s.db.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n))
		must(t, err)
	}
	pages(40)
	failed := 0
	for i := range 200 {
		if s.Put("k", fmt.Sprint(i), make([]byte, 2000)) != nil {
			failed++
		}
	}
	if n := s.Failures()["put"]; failed < 100 || n != int64(failed) {
		t.Errorf("%d failures, %d counted", failed, n)
	}
	pages(1 << 20)
	must(t, s.Put("k", "again", nil))
	if e, i := strings.Count(log.String(), "level=ERROR"), strings.Count(log.String(), "level=INFO"); e != 1 || i != 1 {
		t.Errorf("%d errors and %d notes are logged: %s", e, i, log.String())
	}
}

// TestLogWithoutItsFile: where a kill came while a file was set aside, its log is kept
// too.
func TestLogWithoutItsFile(t *testing.T) {
	path := file(t)
	log := bytes.Repeat([]byte("the last lines"), 1000)
	must(t, os.WriteFile(path+"-wal", log, 0o600))
	s, err := Open(path)
	must(t, err)
	defer s.Close()
	must(t, s.Put("k", "x", nil))
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, e := range entries {
		if got, _ := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name())); strings.Contains(e.Name(), ".damaged-") && bytes.Equal(got, log) {
			return
		}
	}
	t.Errorf("the log is gone: %v", entries)
}

// TestPrivate: only the owner reads the file and its log, whoever made it; what is not
// ours is left as it is.
func TestPrivate(t *testing.T) {
	path := file(t)
	must(t, os.WriteFile(path, nil, 0o644))
	for range 2 {
		s, err := Open(path)
		must(t, err)
		must(t, s.Put("k", "x", nil))
		for _, each := range []string{path, path + "-wal"} {
			if info, err := os.Stat(each); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v %v", filepath.Base(each), info.Mode(), err)
			}
		}
		must(t, s.Close())
		must(t, os.Chmod(path, 0o664)) // as a volume's group may have it
	}
	other := filepath.Join(t.TempDir(), "notes")
	must(t, os.WriteFile(other, []byte("somebody's text"), 0o644))
	if _, err := Open(other); err == nil {
		t.Fatal("it is taken")
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// TestHungDisk: who counts failures does not wait for a disk that takes for ever, as
// the metrics of everything else come with that count.
func TestHungDisk(t *testing.T) {
	s := open(t, Memory)
	hung, mended := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		done <- s.do("put", func(*sql.DB) error { close(hung); <-mended; return errors.New("lost") })
	}()
	<-hung
	told := make(chan map[string]int64)
	go func() { told <- s.Failures() }()
	select {
	case n := <-told:
		if n["put"] != 0 {
			t.Errorf("%d failures before the first", n["put"])
		}
	case <-time.After(10 * time.Second):
		t.Error("the count waits for the disk")
	}
	close(mended)
	if <-done == nil || s.Failures()["put"] != 1 {
		t.Errorf("%d failures are counted of one", s.Failures()["put"])
	}
}

// TestEnding: a process that starts while another ends gets the file.
func TestEnding(t *testing.T) {
	path := file(t)
	c, lines := child(t, path)
	done := make(chan error)
	go func() {
		s, err := Open(path)
		if err == nil {
			err = s.Close()
		}
		done <- err
	}()
	deadline := time.Now().Add(patience / 4)
	for time.Now().Before(deadline) && lines.Scan() { // it works meanwhile
	}
	must(t, c.Process.Kill())
	_ = c.Wait()
	must(t, <-done)
}
