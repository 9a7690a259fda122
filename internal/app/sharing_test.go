package app

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// byBody waits for as long as a call whose text says "long" takes.
func byBody(long time.Duration) step {
	return func(t *talk) bool {
		if strings.Contains(t.seen.body, "long") {
			return wait(long)(t)
		}
		return wait(200 * time.Millisecond)(t)
	}
}

// TestK08OneWorkloadLeavesASlot: five hundred long calls of one workload want
// the ten slots of a target, another makes a call a second: it waits for none of
// them. Those that find no slot are refused and told when to come back.
func TestK08OneWorkloadLeavesASlot(t *testing.T) {
	u1 := upstream("u1", append(script{byBody(40 * time.Second)}, answers("hi")...))
	run(t, setup{upstreams: []*fake{u1}, target: map[string]string{"u1": "limits: {concurrency: 10}"}, more: "  others: {keys: [key-of-the-others]}\n"}, func(r *rig) {
		other := ask{key: "key-of-the-others"}
		r.good(r.do(other), "hi")
		long := ask{body: strings.Replace(chatAsk(false), "hello", "long", 1)}
		var wg sync.WaitGroup
		wg.Go(func() {
			served := 0
			for _, a := range r.each(500, func(int) ask { return long }) {
				switch {
				case a.status == 200:
					served++
				case a.header.Get("Retry-After") == "":
					t.Errorf("refused with %d and no word of when to come back", a.status)
				}
			}
			if served < 9 {
				t.Errorf("%d long calls were served", served)
			}
		})
		time.Sleep(100 * time.Millisecond)
		for _, a := range r.every(time.Second, 30, other) {
			if r.good(a, "hi"); a.took > time.Second {
				t.Errorf("took %s", a.took)
			}
		}
		wg.Wait()
	})
}

// TestStatedQuota: an upstream that says that three requests are left gets three
// until that is no longer believed; the others wait for it and are answered.
func TestStatedQuota(t *testing.T) {
	left := func(t *talk) bool {
		t.w.Header().Set("X-Ratelimit-Remaining-Requests", "3")
		t.w.Header().Set("X-Ratelimit-Reset-Requests", "900ms")
		return true
	}
	u1 := upstream("u1", append(script{left}, answers("hi")...), answers("hi"))
	run(t, setup{upstreams: []*fake{u1}, defaults: "queue: {wait: 5s}"}, func(r *rig) {
		r.good(r.do(ask{}), "hi")
		soon := 0
		for _, a := range r.each(12, func(int) ask { return ask{} }) {
			if r.good(a, "hi"); a.took < 500*time.Millisecond {
				soon++
			}
		}
		if soon != 3 {
			t.Errorf("%d of the three that were left went at once", soon)
		}
	})
}
