package drill

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/gateway"
	"github.com/hourthree/hourthree/internal/virtual"
)

// TestWhatTheDrillKnowsOfTheRouter: which refusals come before the body is read,
// and what of a call's memory its ledger counts. It fails when the router words
// its refusals in another way, or leases something else.
func TestWhatTheDrillKnowsOfTheRouter(t *testing.T) {
	s := scenario(t, `
name: known
title: A limit of one a minute
length: 1m
gateway: {memory: 1GiB}
workloads: [{name: w, rate: [{at: 0s, rps: 1}], rpm: 1}, {name: free, rate: [{at: 0s, rps: 1}]}]
targets: [{name: t, capacity: 100, latency: 5s}, {name: bad, model: bad, capacity: 100}]
faults: [{target: bad, at: 0s, until: 1m, mode: "400"}]
criteria: [{name: c, expr: 'success("w", 0, 60) >= 0'}]
`)
	err := virtual.Run(func() {
		p := &play{Scenario: s, start: time.Now(), books: newBooks(s)}
		for i := range s.Targets {
			p.servers = append(p.servers, newServer(s, &s.Targets[i], 1, p.books.targets[s.Targets[i].Name]))
		}
		made, err := newRouter(p, Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer made.close()
		r := made.(*router)
		ask := func(w int, model string) reply {
			w2 := s.Workloads[w]
			w2.Model = model
			return r.call(context.Background(), call{Workload: &w2, id: 1, attempt: 1, bytes: bodySize})
		}
		if out := ask(0, "m"); !out.good || out.early {
			t.Errorf("within the limit: %+v", out)
		}
		if out := ask(0, "m"); out.status != 429 || !out.early {
			t.Errorf("beyond it: %+v", out)
		}
		if out := ask(1, "bad"); out.status != 400 || out.early {
			t.Errorf("refused by the target: %+v", out)
		}
		done := make(chan reply)
		go func() { done <- ask(1, "m") }()
		time.Sleep(time.Second)
		if held := r.process[0].buffered(); held != gateway.BaseLease+bodySize {
			t.Errorf("a call of %d bytes holds %d by the ledger, and %d of it are no body", bodySize, held, gateway.BaseLease)
		}
		<-done
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhoLeavesTheQueueCostsNothing: a call whose caller leaves before it was
// read costs an instance no more with a modelled gateway than with the router.
func TestWhoLeavesTheQueueCostsNothing(t *testing.T) {
	s := scenario(t, `
name: left
title: Callers without patience
length: 1m
gateway: {capacity: 10, queue: 10s, early: 0.1}
workloads: [{name: w, timeout: 50ms, rate: [{at: 0s, rps: 1}]}]
targets: [{name: t, capacity: 100, latency: 10ms}]
criteria: [{name: c, expr: 'success("w", 0, 60) >= 0'}]
`)
	for _, name := range []string{"router", "naive", "naive-limited"} {
		err := virtual.Run(func() {
			p := &play{Scenario: s, start: time.Now(), books: newBooks(s)}
			p.servers = append(p.servers, newServer(s, &s.Targets[0], 1, p.books.targets["t"]))
			k, _ := find(name)
			made, err := k.make(p, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer made.close()
			var in *room
			switch c := made.(type) {
			case *router:
				in = c.all[0]
			case *front:
				in = c.all[0]
			}
			in.machine.work(time.Now(), 1, 20) // two seconds
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if out := made.call(ctx, call{Workload: &s.Workloads[0], id: 1, attempt: 1, bytes: bodySize}); !out.late {
				t.Errorf("%s: %+v", name, out)
			}
			if got, want := in.machine.waits(time.Now()), 2*time.Second-50*time.Millisecond+10*time.Millisecond; got != want {
				t.Errorf("%s: %v of work is left, want %v", name, got, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestALimitReadsNoBody: what a limit refuses holds no body, behind a modelled
// gateway as behind the router.
func TestALimitReadsNoBody(t *testing.T) {
	s := scenario(t, `
name: unread
title: Bodies that are not read
length: 1m
gateway: {memory: 32MiB}
workloads: [{name: w, rate: [{at: 0s, rps: 2}], concurrency: 1, body: {p50: 10000KiB}}]
targets: [{name: t, capacity: 100, latency: 5s, per_call: 1KiB}]
criteria: [{name: c, expr: 'crashes("gateway") == 0 && status("w", 429, 0, 60) > 0.5 && success("w", 0, 60) > 0.05'}]
`)
	for _, r := range played(t, s, Options{Contenders: []string{"router", "naive-limited", "ratio-breaker-limited"}, Seed: 1}).Runs {
		if !r.Passed() {
			t.Errorf("%s: %d kills, %+v", r.Contender, r.Gateways[0].Crashes, r.Totals)
		}
	}
}

// TestAddressesStayApart: however often an instance has begun, its addresses
// are not another's.
func TestAddressesStayApart(t *testing.T) {
	taken := map[string]int{}
	for number := range mostInstances {
		for times := 1; times <= 2000; times++ {
			clients, admin := (&process{number: number, times: times}).addresses()
			taken[clients]++
			taken[admin]++
		}
	}
	for addr, n := range taken {
		if n > 1 {
			t.Fatalf("%s is taken by %d", addr, n)
		}
	}
}

// TestADrainedGatewayIsRestarted: it takes calls again, with every contender.
func TestADrainedGatewayIsRestarted(t *testing.T) {
	s := scenario(t, `
name: back
title: Drained and started
length: 30s
workloads: [{name: w, rate: [{at: 0s, rps: 5}]}]
targets: [{name: t, capacity: 100, latency: 100ms}]
actions: [{at: 5s, do: drain}, {at: 10s, do: restart}]
criteria: [{name: c, expr: 'success("w", 6, 9) == 0 && success("w", 12, 30) == 1'}]
`)
	for _, r := range played(t, s, Options{Contenders: []string{"router", "naive", "ratio-breaker-limited"}, Seed: 1}).Runs {
		if !r.Passed() {
			t.Errorf("%s: %+v", r.Contender, r.Totals)
		}
	}
}

// TestALimitSaysWhenToComeBack: as the router's does, in whole seconds.
func TestALimitSaysWhenToComeBack(t *testing.T) {
	s := scenario(t, `
name: wait
title: One every ten seconds
length: 1m
workloads: [{name: w, rate: [{at: 0s, rps: 1}], rpm: 6}]
targets: [{name: t, capacity: 100}]
criteria: [{name: c, expr: 'success("w", 0, 60) >= 0'}]
`)
	err := virtual.Run(func() {
		p := &play{Scenario: s, start: time.Now(), books: newBooks(s)}
		g := limited(naive)(p, 1).(*gate)
		var out reply
		for range 20 {
			if _, out = g.enter(call{Workload: &s.Workloads[0]}); out.status == 429 {
				break
			}
		}
		if out.after != 10*time.Second {
			t.Errorf("%+v", out)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAKillLeavesNoDebt: an instance begins with nothing to do, however many
// calls the last one was killed with.
func TestAKillLeavesNoDebt(t *testing.T) {
	s := scenario(t, `
name: debt
title: Killed with calls
length: 1m
gateway: {capacity: 10, queue: 10s, down: 1s}
workloads: [{name: w, timeout: 30s, rate: [{at: 0s, rps: 1}]}]
targets: [{name: t, capacity: 100, latency: 5s}]
criteria: [{name: c, expr: 'success("w", 0, 60) >= 0'}]
`)
	for _, name := range []string{"router", "naive"} {
		err := virtual.Run(func() {
			p := &play{Scenario: s, start: time.Now(), books: newBooks(s)}
			p.servers = append(p.servers, newServer(s, &s.Targets[0], 1, p.books.targets["t"]))
			k, _ := find(name)
			made, err := k.make(p, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer made.close()
			var in *room
			switch c := made.(type) {
			case *router:
				in = c.all[0]
			case *front:
				in = c.all[0]
			}
			var calls sync.WaitGroup
			for i := range 40 {
				calls.Go(func() {
					made.call(context.Background(), call{Workload: &s.Workloads[0], id: uint64(i), attempt: 1, bytes: bodySize})
				})
			}
			time.Sleep(time.Second)
			in.kill()
			calls.Wait()
			if left := in.machine.waits(time.Now()); left > 0 {
				t.Errorf("%s: %v of work", name, left)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
