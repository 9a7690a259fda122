package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/memnet"
)

// receiver takes messages and answers as it is told.
type receiver struct {
	mu     sync.Mutex
	got    []received
	answer func(n int, w http.ResponseWriter) // n from 1
}

type received struct {
	at     time.Time
	path   string
	header http.Header
	body   string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	text, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.got = append(r.got, received{time.Now(), req.URL.RequestURI(), req.Header, string(text)})
	n, answer := len(r.got), r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(n, w)
	}
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rig runs a notifier in virtual time with one webhook, hook, at a receiver.
func rig(t *testing.T, r *receiver, s Settings, test func(*Notifier, *lines)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network, log := memnet.New(), new(lines)
		srv := &http.Server{Handler: r}
		l := network.Listen("hook.test")
		go func() { _ = srv.Serve(l) }() // ends with Close
		n, err := New(Options{Version: "1.0", Random: func() float64 { return 1 }, Dial: network.Dial, Log: slog.New(slog.NewJSONHandler(log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		n.Use(map[string]Settings{"hook": s})
		test(n, log)
		n.Close()
		_ = srv.Close()
	})
}

func settings(f Format) Settings {
	return Settings{URL: "http://hook.test/services/T0/B0/secret-of-the-path", Format: f, Timeout: 5 * time.Second, Retries: 5, Router: "router-1", Headers: map[string]string{"Authorization": "Bearer token-of-the-hook"}}
}

func TestDelivers(t *testing.T) {
	r := new(receiver)
	rig(t, r, settings(Generic), func(n *Notifier, log *lines) {
		n.Noticed(detect.Notice{At: time.Now(), Outage: "O-1", What: "finding", State: detect.Degraded, Text: "fails"})
		synctest.Wait()
		if s := n.Stats(); len(s) != 1 || s[0].Delivered != 1 || s[0].Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if log.String() != "" {
			t.Errorf("logged: %s", log)
		}
	})
	got := r.all()
	if len(got) != 1 || got[0].path != "/services/T0/B0/secret-of-the-path" {
		t.Fatalf("%+v", got)
	}
	var d document
	if err := json.Unmarshal([]byte(got[0].body), &d); err != nil || d.Event != "opened" || d.Outage.ID != "O-1" || d.Router.Name != "router-1" || d.Schema != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	h := got[0].header
	if h.Get("Authorization") != "Bearer token-of-the-hook" || h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "hourthree/1.0" || h.Get("Hourthree-Delivery") != d.ID {
		t.Errorf("%v", h)
	}
}

// TestRepeats: what may help is tried again, no sooner than was asked for, under the
// same number; a streak of failures is one line in the log, without a secret.
func TestRepeats(t *testing.T) {
	r := &receiver{answer: func(n int, w http.ResponseWriter) {
		switch n {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			w.WriteHeader(http.StatusRequestTimeout)
		}
	}}
	rig(t, r, settings(Slack), func(n *Notifier, log *lines) {
		n.Tell(Test(time.Now()))
		time.Sleep(2 * time.Minute)
		if s := n.Stats()[0]; s.Delivered != 1 || s.Failed != 0 {
			t.Errorf("%+v", s)
		}
		if text := log.String(); strings.Count(text, "webhook fails") != 1 || strings.Count(text, "works again") != 1 || strings.Contains(text, "secret-of") || strings.Contains(text, "token-of") {
			t.Errorf("log: %s", text)
		}
	})
	got := r.all()
	if len(got) != 4 {
		t.Fatalf("%d tries", len(got))
	}
	for i, want := range []time.Duration{time.Second, 30 * time.Second, 4 * time.Second} {
		if d := got[i+1].at.Sub(got[i].at); d != want {
			t.Errorf("try %d comes after %s, want %s", i+2, d, want)
		}
		if got[i+1].header.Get("Hourthree-Delivery") != got[0].header.Get("Hourthree-Delivery") {
			t.Errorf("try %d has another number", i+2)
		}
	}
}

// TestRefusals: what the receiver refuses is not tried again, and a redirect is not
// followed.
func TestRefusals(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 410, 302, 307, 308} {
		r := &receiver{answer: func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", "http://hook.test/elsewhere")
			w.WriteHeader(code)
		}}
		rig(t, r, settings(Generic), func(n *Notifier, _ *lines) {
			n.Tell(Test(time.Now()))
			time.Sleep(time.Hour)
			if s := n.Stats()[0]; s.Refused != 1 || s.Delivered != 0 {
				t.Errorf("%d: %+v", code, s)
			}
		})
		if got := r.all(); len(got) != 1 {
			t.Errorf("%d: %d requests", code, len(got))
		}
	}
}

// TestHangs: a webhook that takes and says nothing holds up nobody, and ends with the
// router within its time.
func TestHangs(t *testing.T) {
	var forever chan struct{} // of the bubble
	r := &receiver{answer: func(int, http.ResponseWriter) { <-forever }}
	s := settings(Generic)
	s.Timeout = time.Minute
	rig(t, r, s, func(n *Notifier, log *lines) {
		forever = make(chan struct{})
		began := time.Now()
		for i := range 1000 {
			n.Tell(action(fmt.Sprint(i), time.Now()))
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("telling took %s", d)
		}
		synctest.Wait()
		if s := n.Stats()[0]; s.Waiting > room+1 || s.Dropped < 900 {
			t.Errorf("%+v", s)
		}
		began = time.Now()
		n.Close()
		if d := time.Since(began); d > flushFor {
			t.Errorf("the end took %s", d)
		}
		close(forever)
	})
}

// TestLastWords: what waits is sent when the router stops, also what is held back.
func TestLastWords(t *testing.T) {
	r := new(receiver)
	rig(t, r, settings(Generic), func(n *Notifier, _ *lines) {
		for range 2 {
			n.Noticed(detect.Notice{At: time.Now(), Outage: "O-1", What: "state", State: detect.Degraded, Text: "degraded"})
			time.Sleep(time.Second)
		}
		n.Close()
	})
	if got := r.all(); len(got) != 2 {
		t.Errorf("%d messages", len(got))
	}
}

// TestUse: a webhook that changes keeps what waits for it; one that goes is sent it.
func TestUse(t *testing.T) {
	r := &receiver{answer: func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }}
	s := settings(Generic)
	rig(t, r, s, func(n *Notifier, _ *lines) {
		n.Tell(action("a", time.Now()))
		synctest.Wait()
		r.mu.Lock()
		r.answer = nil
		r.mu.Unlock()
		s.Format, s.URL, s.Kinds = Slack, "http://hook.test/new", []Kind{OfRollout}
		n.Use(map[string]Settings{"hook": s, "other": settings(Generic)})
		time.Sleep(time.Minute)
		if got := r.all(); len(got) != 2 || got[1].path != "/new" || !strings.Contains(got[1].body, "blocks") {
			t.Errorf("%+v", got)
		}
		n.Tell(action("b", time.Now())) // the first does not want it any more
		time.Sleep(time.Second)
		if got := r.all(); len(got) != 3 || got[2].path == "/new" {
			t.Errorf("%+v", got)
		}
		n.Tell(action("b", time.Now().Add(time.Second))) // held back for a minute
		n.Use(nil)
		time.Sleep(time.Second)
		if got := r.all(); len(got) != 4 {
			t.Errorf("what waited for one that went: %+v", got)
		}
	})
}

// TestNoSecretInErrors: whatever goes wrong, the address and the headers are in no
// reason.
func TestNoSecretInErrors(t *testing.T) {
	s := settings(Slack)
	opt := Options{Version: "1.0"}
	for name, dial := range map[string]dialer{
		"refused": func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("dial /services/T0/B0/secret-of-the-path with Bearer token-of-the-hook: refused")
		},
		"closed": func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			b.Close()
			return a, nil
		},
	} {
		opt.Dial = dial
		d := Send(t.Context(), opt, s, Test(start))
		if d.Delivered || d.Reason == "" || strings.Contains(d.Reason, "secret-of") || strings.Contains(d.Reason, "token-of") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	opt.Dial = nil
	s.URL = "http://127.0.0.1:1/\x7fsecret-of"
	if d := Send(t.Context(), opt, s, Test(start)); d.Delivered || strings.Contains(d.Reason, "secret-of") {
		t.Errorf("%+v", d)
	}
}

// TestBoundedAnswer: of an answer without an end only so much is read.
func TestBoundedAnswer(t *testing.T) {
	var written atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			n, err := w.Write(make([]byte, 32<<10))
			if err != nil {
				return
			}
			written.Add(int64(n))
		}
	}))
	s := settings(Generic)
	s.URL = srv.URL
	if d := Send(t.Context(), Options{Version: "1.0"}, s, Test(start)); !d.Delivered {
		t.Errorf("%+v", d)
	}
	srv.Close()
	if n := written.Load(); n > 64<<20 { // what the system takes for the reader counts too
		t.Errorf("%d bytes were taken", n)
	}
}

// TestAlertsStand: an open outage is sent every minute, with an end ahead, and its end
// once.
func TestAlertsStand(t *testing.T) {
	r, began := new(receiver), time.Time{}
	rig(t, r, settings(Alertmanager), func(n *Notifier, _ *lines) {
		began = time.Now()
		n.Noticed(detect.Notice{At: began, Onset: began, Outage: "O-1", What: "finding", State: detect.Degraded, Text: "fails"})
		time.Sleep(10*time.Minute + time.Second)
		n.Noticed(detect.Notice{At: time.Now(), Onset: began, Outage: "O-1", What: "closed", State: detect.Verified, Text: "verified"})
		time.Sleep(10 * time.Minute)
	})
	got := r.all()
	if len(got) != 12 {
		t.Fatalf("%d messages", len(got))
	}
	for i, g := range got {
		var alerts []alert
		if err := json.Unmarshal([]byte(g.body), &alerts); err != nil || len(alerts) != 1 || !strings.HasSuffix(g.path, alertPath) {
			t.Fatalf("%s: %s, %v", g.path, g.body, err)
		}
		open := alerts[0].EndsAt.After(g.at.Add(3 * time.Minute))
		if last := i == len(got)-1; open == last || !alerts[0].StartsAt.Equal(began.UTC()) {
			t.Errorf("message %d: from %s to %s at %s", i, alerts[0].StartsAt, alerts[0].EndsAt, g.at)
		}
	}
}
