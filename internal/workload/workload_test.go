package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
)

var noon = time.Date(2026, 5, 29, 12, 0, 0, 0, time.UTC)

func TestIdentify(t *testing.T) {
	sum := sha256.Sum256([]byte("hashed"))
	d, err := NewDirectory([]Spec{
		{Name: "a", Keys: []string{"plain", "other"}, Models: []string{"m"}},
		{Name: "b", Keys: []string{"sha256:" + hex.EncodeToString(sum[:])}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"plain": "a", "other": "a", "hashed": "b", "": "", "nobody": "", "sha256:" + hex.EncodeToString(sum[:]): ""} {
		w := d.Identify(key)
		if got := w; (got == nil) != (want == "") || got != nil && got.Name() != want {
			t.Errorf("%q: %v, want %q", key, got, want)
		}
	}
	if a := d.Identify("plain"); !a.Allows("m") || a.Allows("n") {
		t.Error("model list")
	}
	if b := d.Identify("hashed"); !b.Allows("anything") {
		t.Error("no list allows all")
	}
	if text := fmt.Sprintf("%v %+v", d.byKey, d); strings.Contains(text, "plain") {
		t.Error("a plain key is kept")
	}
}

func TestOpen(t *testing.T) {
	d, err := NewDirectory(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d.Identify("") == nil || d.Identify("anything") != d.Identify("") {
		t.Error("without workloads everybody is served")
	}
}

func TestBadDigest(t *testing.T) {
	for _, key := range []string{"sha256:", "sha256:zz", "sha256:00", ""} {
		if _, err := NewDirectory([]Spec{{Name: "a", Keys: []string{key}}}, nil); err == nil {
			t.Errorf("%q is accepted", key)
		} else if key != "" && strings.Contains(err.Error(), key+"\n") {
			t.Error("the error shows the key")
		}
	}
}

// TestReloadKeepsState: a workload of the same name keeps its counts, an
// unknown one starts afresh, and a directory that cannot be made changes
// nothing.
func TestReloadKeepsState(t *testing.T) {
	first, _ := NewDirectory([]Spec{{Name: "a", Keys: []string{"k"}}, {Name: "b", Keys: []string{"l"}}}, nil)
	w := first.Identify("k")
	w.Begin(time.Now(), true, "")
	if _, err := NewDirectory([]Spec{{Name: "a", Keys: []string{"sha256:bad"}, Models: []string{"m"}}}, first); err == nil {
		t.Fatal("accepted")
	}
	if !w.Allows("n") {
		t.Error("a refused directory changed a workload")
	}
	second, err := NewDirectory([]Spec{{Name: "a", Keys: []string{"new"}, Limits: admit.Limits{Concurrency: 1}}}, first)
	if err != nil {
		t.Fatal(err)
	}
	if second.Identify("new").Workload != w.Workload || second.Identify("k") != nil {
		t.Error("not the same workload, or the old key still works")
	}
	if s := w.State(time.Now()); s.Inbound != 1 || s.Repeats != 1 || s.InFlight != 1 {
		t.Errorf("%+v", s)
	}
}

func TestAmplification(t *testing.T) {
	w := New(Spec{Name: "a"})
	for i := range 4 {
		w.Begin(noon, i >= 2, "")
		w.End(2)
	}
	if s := w.State(noon); s.In != 2 || s.Out != 2 {
		t.Errorf("in %v out %v, want 2 and 2", s.In, s.Out)
	}
}

func TestRestricted(t *testing.T) {
	if New(Spec{Name: "a"}).Restricted() || !New(Spec{Name: "b", Models: []string{"m"}}).Restricted() {
		t.Error("restricted is having a list of models")
	}
}
