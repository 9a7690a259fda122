package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/workload"
)

// two is a router with two workloads, team and other.
func two(u *fake) setup {
	return setup{upstreams: []*fake{u}, more: "  other: {keys: [" + otherKey + "]}\n"}
}

func (r *rig) lane(name string) workload.Placement { return r.app.workload(name).Placement() }

// TestStormIsQuarantined: a workload whose callers repeat every request 48 times
// at once, because their part of the upstream fails, is moved to its own lane
// within a minute, and the log of changes says why. The other one does not notice.
// It comes back when its callers are calm at the load that they came with.
func TestStormIsQuarantined(t *testing.T) {
	u1 := upstream("u1", after(50*time.Millisecond, answers("fine")))
	run(t, two(u1), func(r *rig) {
		storm := func(d time.Duration, copies int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				for i := range copies {
					r.do(ask{headers: []string{"X-Stainless-Retry-Count", strconv.Itoa(i)}})
				}
			}
		}
		others := func(d time.Duration) (failed int, slowest time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				a := r.do(ask{key: otherKey})
				if a.status != 200 {
					failed++
				}
				slowest = max(slowest, a.took)
			}
			return failed, slowest
		}
		var wg sync.WaitGroup
		wg.Go(func() { storm(2*time.Minute, 49) })
		failed, slowest := others(2 * time.Minute)
		wg.Wait()
		if failed > 0 || slowest > 250*time.Millisecond {
			t.Errorf("the other workload: %d failed, slowest %v", failed, slowest)
		}
		p := r.lane("team")
		if p.Lane != workload.Quarantine || p.By != byRule || p.Since == nil || !strings.Contains(p.Why, "inbound for each distinct request") {
			t.Fatalf("%+v", p)
		}
		if took := p.Since.Sub(r.app.start); took > 75*time.Second {
			t.Errorf("moved after %v", took)
		}
		if c := r.app.changes(); len(c) != 1 || c[0].Who != byRule || c[0].What != "quarantine" || c[0].Subject != "team" {
			t.Errorf("changes %+v", c)
		}
		r.failed(r.do(ask{headers: []string{"X-Stainless-Retry-Count", "1"}}), 429, "capacity") // no repeats at all
		r.good(r.do(ask{}), "fine")

		wg.Go(func() { others(13 * time.Minute) })
		storm(13*time.Minute, 1)
		wg.Wait()
		if p := r.lane("team"); p.Lane != workload.Normal {
			t.Errorf("calm at its load, it is still held: %+v", p)
		}
		if c := r.app.changes(); len(c) != 2 || c[0].What != "release" {
			t.Errorf("changes %+v", c)
		}
	})
}

// TestQuarantineByHand: over the admin API a workload is moved at once, without a
// restart; a reload leaves it there; the rule does not release it.
func TestQuarantineByHand(t *testing.T) {
	u1 := upstream("u1", answers("fine"))
	run(t, two(u1), func(r *rig) {
		tell := func(method, name, body string, headers ...string) (int, string) {
			req, err := http.NewRequest(method, "http://127.0.0.1:8081/api/v1/workloads/"+name+"/quarantine", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(headers); i += 2 {
				req.Header.Set(headers[i], headers[i+1])
			}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(text)
		}
		for name, tc := range map[string]struct {
			method, workload, body string
			headers                []string
			status                 int
			says                   string
		}{
			"unknown":     {"PUT", "nobody", "{}", nil, 404, "no workload"},
			"not JSON":    {"PUT", "team", "{}", []string{"Content-Type", "text/plain"}, 415, "application/json"},
			"bad share":   {"PUT", "team", `{"share":2}`, nil, 400, "between 0 and 1"},
			"misspelt":    {"PUT", "team", `{"shares":1}`, nil, 400, "shares"},
			"other site":  {"PUT", "team", "{}", []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
			"not held":    {"DELETE", "team", "{}", nil, 409, "not in quarantine"},
			"other host":  {"PUT", "team", "{}", []string{"Host", "evil.example"}, 204, ""}, // net/http takes Host from the request itself
			"no such way": {"POST", "team", "{}", nil, 405, ""},
		} {
			if status, body := tell(tc.method, tc.workload, tc.body, tc.headers...); status != tc.status || !strings.Contains(body, tc.says) {
				t.Errorf("%s: %d %s, want %d and %q", name, status, body, tc.status, tc.says)
			}
			_ = r.app.Release("team", admin.Quarantine{})
		}
		if status, body := tell("PUT", "team", `{"share":0,"who":"ada","why":"too\nloud"}`); status != 204 {
			t.Fatalf("%d %s", status, body)
		}
		r.failed(r.do(ask{}), 429, "capacity")
		r.good(r.do(ask{key: otherKey}), "fine")
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if p := r.lane("team"); p.Lane != workload.Quarantine || p.By != "ada" || p.Why != "too loud" {
			t.Errorf("%+v", p)
		}
		if status, _ := tell("DELETE", "team", ""); status != 204 {
			t.Fatal(status)
		}
		r.good(r.do(ask{}), "fine")
		if err := r.app.Quarantine("nobody", admin.Quarantine{}); !errors.Is(err, admin.ErrUnknown) {
			t.Error(err)
		}
	})
}

// TestTheRuleAndTheOperator: what an operator has placed is left alone whatever the
// operator is called, and a release holds as long as no new evidence comes.
func TestTheRuleAndTheOperator(t *testing.T) {
	u1 := upstream("u1", answers("fine"))
	run(t, two(u1), func(r *rig) {
		calls := func(d time.Duration, copies int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				r.do(ask{key: otherKey})
				for i := range copies {
					r.do(ask{headers: []string{"X-Stainless-Retry-Count", strconv.Itoa(i)}})
				}
			}
		}
		if err := r.app.Quarantine("team", admin.Quarantine{Who: byRule}); err != nil {
			t.Fatal(err)
		}
		calls(15*time.Minute, 1)
		if p := r.lane("team"); p.Lane != workload.Quarantine {
			t.Errorf("the rule released what an operator had placed: %+v", p)
		}
		_ = r.app.Release("team", admin.Quarantine{})

		calls(30*time.Second, 20)
		if p := r.lane("team"); p.Lane != workload.Quarantine || !p.ByRule {
			t.Fatalf("not moved by the rule: %+v", p)
		}
		if err := r.app.Release("team", admin.Quarantine{Who: "ada"}); err != nil {
			t.Fatal(err)
		}
		calls(time.Minute, 1)
		if p := r.lane("team"); p.Lane != workload.Normal {
			t.Errorf("moved again without new evidence: %+v", p)
		}
	})
}

// TestTheLaneIsNoOverload: a workload that is refused for its own share of a
// target says nothing about the router's room.
func TestTheLaneIsNoOverload(t *testing.T) {
	u1 := upstream("u1", after(time.Second, answers("fine")))
	s := two(u1)
	s.target = map[string]string{"u1": "limits: {concurrency: 20}"}
	run(t, s, func(r *rig) {
		if err := r.app.Quarantine("team", admin.Quarantine{}); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, a := range r.each(10, func(int) ask { return ask{} }) {
			if a.status != 200 {
				refused++
			}
		}
		if n := r.app.gateway.Shed(); refused != 9 || n != 0 {
			t.Errorf("%d of 10 refused, %d of them for want of room", refused, n)
		}
	})
}

// TestListsAreNoWork: a caller that also asks for the list of models all the time
// hides no storm behind that.
func TestListsAreNoWork(t *testing.T) {
	u1 := upstream("u1", answers("fine"))
	run(t, two(u1), func(r *rig) {
		for range 100 {
			r.do(ask{method: http.MethodGet, path: "/v1/models", bare: true})
			r.do(ask{headers: []string{"X-Stainless-Retry-Count", "1"}})
		}
		if a := r.app.workload("team").Traffic(time.Now()); a.Inbound != 100 || a.Repeats != 100 {
			t.Errorf("%+v", a)
		}
	})
}

// TestARefusalDoesNotWaitForTheBody: a body that was announced and does not come
// keeps nobody from reading why it is not wanted.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	u1 := upstream("u1", answers("fine"))
	run(t, two(u1), func(r *rig) {
		for _, key := range []string{callerKey, "nobody's"} {
			share := 0.0
			if err := r.app.Quarantine("team", admin.Quarantine{Share: &share}); err != nil {
				t.Fatal(err)
			}
			c := r.dialRaw()
			start := time.Now()
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", key)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 1500*time.Millisecond || resp.StatusCode < 400 {
				t.Errorf("%s: %d after %v", key, resp.StatusCode, took)
			}
			c.Close()
		}
	})
}
