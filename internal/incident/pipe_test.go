//go:build unix

package incident

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNoRegularFile: what is no file is not opened; a pipe would hold the
// program for ever.
func TestNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "ACME-0001.yaml"), 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(os.DevNull, filepath.Join(dir, vocabularyFile)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(os.DirFS(dir))
	for _, want := range []string{"ACME-0001.yaml: cannot be read: it is no regular file", "vocabulary.yaml: cannot be read: it is no regular file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
