package app

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/steer"
)

// inbox takes messages of a webhook.
type inbox struct {
	mu  sync.Mutex
	got []message
}

type message struct {
	Kind, Event, Subject, Text, Who string
	Outage                          *struct{ State string }
}

func (i *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var m message
	_ = json.Unmarshal(text, &m) // one that is not understood is missed
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, m)
}

func (i *inbox) said() (out []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range i.got {
		out = append(out, strings.TrimSpace(m.Kind+" "+m.Event+" "+m.Subject))
	}
	return out
}

func notifying(i http.Handler, u *fake, more string) setup {
	s := two(u)
	s.hosts = map[string]http.Handler{"hook.test": i}
	s.more += "notify: {router: router-1, webhooks: {ops: {url: 'http://hook.test/path-is-a-secret', insecure: true" + more + "}}}\n"
	return s
}

// TestWebhookTells: of an outage, of what an operator does, of a configuration that is
// refused and of one that is taken; and no secret is in the log.
func TestWebhookTells(t *testing.T) {
	box := new(inbox)
	s := notifying(box, upstream("u1"), "")
	run(t, s, func(r *rig) {
		r.app.noticed(detect.Notice{At: time.Now(), Outage: "O-1", What: "finding", State: detect.Degraded, Text: "fails"})
		if err := r.app.Quarantine("team", admin.Quarantine{Who: "ann", Why: "repeats"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.configure(setup{whole: "listen: ["})
		if r.app.Reload() == nil {
			t.Error("a bad configuration is taken")
		}
		synctest.Wait()
		r.configure(s)
		if err := r.app.Reload(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if said := strings.Join(box.said(), "; "); !strings.HasPrefix(said, "outage opened O-1; action quarantine team; configuration refused "+r.file+"; configuration taken ") {
			t.Errorf("told: %s", said)
		}
		if strings.Contains(r.logs.String(), "path-is-a-secret") {
			t.Error("the address is in the log")
		}
		if c := box.got[1]; c.Who != "ann" || c.Text != "repeats" {
			t.Errorf("%+v", c)
		}
	})
}

// TestWebhookTellsHowARolloutEnded: by itself, and by hand whatever is said for it.
func TestWebhookTellsHowARolloutEnded(t *testing.T) {
	box := new(inbox)
	old, next := upstream("old", answers("of old")), upstream("new", answers("of new"))
	more := "notify: {webhooks: {ops: {url: 'http://hook.test/x', insecure: true, events: [rollout]}}}\n"
	v1, v2 := pair{workloads: 10, to: "old", stages: quick, more: more}, pair{workloads: 10, to: "new", stages: quick, more: more}
	run(t, setup{upstreams: []*fake{old, next}, whole: v1.yaml(), hosts: map[string]http.Handler{"hook.test": box}}, func(r *rig) {
		r.flow(10, 50*time.Millisecond, lasting(2*time.Minute))
		r.take(v2)
		if err := r.app.PromoteRollout(ada, "the last was reverted by mistake"); err != nil { // a stage
			t.Fatal(err)
		}
		r.flow(10, 50*time.Millisecond, r.over(time.Hour))
		second := r.rolled().Version
		r.take(v1)
		third := r.rolled().Version
		if err := r.app.HaltRollout(ada, "promoted too soon, to be reverted"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got, want := strings.Join(box.said(), "; "), "rollout promoted "+second+"; rollout halted "+third; got != want {
			t.Errorf("told: %s, want %s", got, want)
		}
	})
}

// TestWebhookHangs: requests, a reload and the end of the router do not wait for one
// that hangs.
func TestWebhookHangs(t *testing.T) {
	var forever chan struct{} // of the bubble
	hang := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-forever })
	s := notifying(hang, upstream("u1", after(time.Second, answers("hello"))), ", timeout: 1m")
	run(t, s, func(r *rig) {
		forever = make(chan struct{})
		began := time.Now()
		for range 100 {
			r.app.changed(steer.Entry{At: time.Now(), Who: "ann", What: "drain", Subject: "u1/real"}, detect.Change{})
		}
		if err := r.app.Reload(); err != nil {
			t.Error(err)
		}
		r.good(r.do(ask{}), "hello")
		if d := time.Since(began); d > 1100*time.Millisecond {
			t.Errorf("took %s", d)
		}
		began = time.Now()
		if err := r.app.Stop(); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 6*time.Second {
			t.Errorf("the end took %s", d)
		}
		close(forever)
	})
}

// TestWebhookMetrics: what becomes of messages is counted.
func TestWebhookMetrics(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	run(t, notifying(refuse, upstream("u1"), ""), func(r *rig) {
		r.app.changed(steer.Entry{At: time.Now(), Who: "ann", What: "drain", Subject: "u1/real"}, detect.Change{})
		synctest.Wait()
		text := r.operator("/metrics")
		for _, want := range []string{`hourthree_webhook_deliveries_total{result="refused",webhook="ops"} 1`, `hourthree_webhook_deliveries_total{result="delivered",webhook="ops"} 0`, `hourthree_webhook_waiting{webhook="ops"} 0`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not there", want)
			}
		}
		if strings.Contains(text, "path-is-a-secret") {
			t.Error("the address is in the metrics")
		}
	})
}

// TestRefusedReasonHasNoSecret: what is told of a refused configuration has none of
// its values.
func TestRefusedReasonHasNoSecret(t *testing.T) {
	box := new(inbox)
	run(t, notifying(box, upstream("u1"), ""), func(r *rig) {
		good, err := os.ReadFile(r.file)
		if err != nil {
			t.Fatal(err)
		}
		r.configure(setup{whole: strings.Replace(string(good), "http://hook.test/path-is-a-secret", "ftp://hook.test/another-secret", 1)})
		if err := r.app.Reload(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", errors.Unwrap(err))
		}
		synctest.Wait()
		if len(box.got) != 1 || !strings.Contains(box.got[0].Text, "notify.webhooks.ops.url") || strings.Contains(box.got[0].Text, "secret") {
			t.Errorf("%+v", box.got)
		}
	})
}
