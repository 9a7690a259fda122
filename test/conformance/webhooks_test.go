//go:build conformance

package conformance

import (
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/notify"
)

// alertmanager starts Debian's Alertmanager and returns its address.
func alertmanager(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("prometheus-alertmanager", "--config.file="+file, "--storage.path="+dir, "--web.listen-address="+addr, "--cluster.listen-address=")
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatalf("%v: run `make test-setup`", err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	base := "http://" + addr
	until(t, 30*time.Second, "Alertmanager is ready", func() bool {
		resp, err := http.Get(base + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return base
}

type amAlert struct {
	Labels, Annotations map[string]string
	EndsAt              time.Time
	GeneratorURL        string
	Status              struct{ State string }
}

func amAlerts(t *testing.T, base string) (out []amAlert) {
	t.Helper()
	resp, err := http.Get(base + "/api/v2/alerts")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// until waits for something to become so.
func until(t *testing.T, most time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("within %s it is not so that %s", most, what)
		}
	}
}

// TestAlertmanager: the real one takes what a webhook of its kind is sent, shows an
// outage as one alert however it changes, and ends it when the outage ends. Hostile
// names are taken too.
func TestAlertmanager(t *testing.T) {
	base := alertmanager(t)
	n, err := notify.New(notify.Options{Version: "1.0", Random: rand.Float64, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	n.Use(map[string]notify.Settings{"am": {
		URL: base, Format: notify.Alertmanager, Timeout: 5 * time.Second, Router: "router-1", Labels: map[string]string{"team": "ml"}, Dashboard: "https://hourthree.example",
	}})
	began := time.Now().Add(-time.Minute)
	tell := func(what string, state detect.State, source string) {
		n.Noticed(detect.Notice{At: time.Now(), Onset: began, Outage: "O-1", What: what, State: state, Text: "text", Source: detect.Subject{Kind: detect.Workload, Name: source}, Score: 0.9,
			Scope: []detect.Subject{{Kind: detect.Model, Name: "m\x1b[31m\u202e<!channel>" + strings.Repeat("x", 400)}}})
	}
	tell("finding", detect.Degraded, "suite")
	until(t, 10*time.Second, "the outage is there", func() bool { return len(amAlerts(t, base)) == 1 })
	tell("source", detect.Degraded, "other\xff")
	until(t, 10*time.Second, "its suspect is the newest", func() bool {
		a := amAlerts(t, base)
		return len(a) == 1 && a[0].Annotations["suspect"] == "workload other?"
	})
	a := amAlerts(t, base)[0]
	if a.Labels["alertname"] != "HourthreeOutage" || a.Labels["team"] != "ml" || a.Status.State != "active" || a.GeneratorURL != "https://hourthree.example" || time.Until(a.EndsAt) < 3*time.Minute {
		t.Errorf("%+v", a)
	}
	tell("closed", detect.Verified, "suite")
	until(t, 10*time.Second, "it is over", func() bool { return len(amAlerts(t, base)) == 0 })
	c, _ := notify.Change{At: time.Now(), Who: "ann", What: "quarantine", Subject: "suite", Why: "repeats"}.Notice()
	n.Tell(c)
	until(t, 10*time.Second, "an action is there", func() bool {
		a := amAlerts(t, base)
		return len(a) == 1 && a[0].Labels["alertname"] == "HourthreeAction" && a[0].Labels["subject"] == "suite"
	})
	if r := n.Stats()[0]; r.Delivered != 4 || r.Refused+r.Failed+r.Dropped != 0 {
		t.Errorf("%+v", r)
	}
	out, err := exec.Command("amtool", "--alertmanager.url="+base, "alert", "query", "-o", "json", "alertname=HourthreeAction").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "router-1") {
		t.Errorf("amtool: %v, %s", err, out)
	}
}
