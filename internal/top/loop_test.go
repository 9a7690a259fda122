package top

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestKeys: what each key does, without a terminal.
func TestKeys(t *testing.T) {
	m := model{picture: example(), view: View{Width: 80, Height: 24}}
	press := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			next, _ := m.key(k)
			m = next.(model)
		}
	}
	press("tab", "down", "down", "up")
	if m.view.Part != Targets || m.view.Skip != 1 {
		t.Errorf("%+v", m.view)
	}
	press("right")
	if m.view.Part != Workloads || m.view.Skip != 0 {
		t.Errorf("%+v", m.view)
	}
	press("left", "left", "left")
	if m.view.Part != Rollout {
		t.Errorf("%+v", m.view)
	}
	press("pgdown", "pgdown", "pgdown")
	if m.view.Skip != m.picture.rows(Rollout) {
		t.Errorf("%+v", m.view)
	}
	m.picture.Rollout, m.picture.Actions, m.picture.SLOs = nil, nil, nil
	press("tab")
	press("shift+tab")
	if m.view.Part != Workloads {
		t.Errorf("a part that is not shown is chosen: %+v", m.view)
	}
	press("?")
	if !m.view.Help {
		t.Error("no help")
	}
	next, _ := m.Update(tea.WindowSizeMsg{Width: 33, Height: 11})
	if m = next.(model); m.view.Width != 33 || m.view.Height != 11 {
		t.Errorf("%+v", m.view)
	}
	for _, k := range []string{"q", "esc", "ctrl+c"} {
		if _, cmd := m.key(k); cmd == nil {
			t.Errorf("%s does not leave", k)
		}
	}
}

// screen is what a terminal would be sent.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
	on func(string)
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Write(p)
	if s.on != nil {
		s.on(s.b.String())
	}
	return len(p), nil
}

// TestRun: the loop shows the router, and q ends it and leaves the other screen.
func TestRun(t *testing.T) {
	in, keys := io.Pipe()
	var once sync.Once
	out := &screen{on: func(text string) {
		if strings.Contains(text, "WORKLOADS") {
			once.Do(func() { go func() { _, _ = keys.Write([]byte("q")) }() })
		}
	}}
	a := answers{"/api/v1/state": state(start, 100, 200)}
	done := make(chan error)
	go func() {
		done <- Run(t.Context(), Options{Router: "r", Get: a.get, Every: time.Second, Input: in, Output: out, Env: []string{"TERM=xterm-256color"}, Width: 80, Height: 24})
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("it does not end: %q", out.b.String())
	}
	if text := out.b.String(); !strings.Contains(text, "\x1b[?1049h") || !strings.Contains(text, "\x1b[?1049l") {
		t.Errorf("%q", text)
	}
}
