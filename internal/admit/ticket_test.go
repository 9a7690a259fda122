package admit

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hourthree/hourthree/internal/queue"
)

var noon = time.Date(2026, 5, 29, 12, 0, 0, 0, time.UTC)

func TestWatermarks(t *testing.T) {
	for _, tc := range []struct {
		priority queue.Priority
		most     int64
	}{{queue.Batch, 700}, {queue.Interactive, 850}, {queue.Critical, 950}} {
		l := NewLedger(1000)
		ask := Ask{Now: noon, Bytes: tc.most, Claim: Claim{Priority: tc.priority}}
		ticket, refusal := l.Admit(ask)
		if ticket == nil {
			t.Fatalf("%v: %d bytes are refused: %+v", tc.priority, tc.most, refusal)
		}
		if more, refusal := l.Admit(Ask{Now: noon, Bytes: 1, Claim: ask.Claim}); more != nil || refusal.Reason != ReasonMemory {
			t.Errorf("%v: let in above its watermark, %+v", tc.priority, refusal)
		}
		if ticket.Lease().Grow(1) {
			t.Errorf("%v: a body grew above the watermark", tc.priority)
		}
		ticket.Lease().Admitted()
		if !ticket.Lease().Grow(1000-tc.most) || ticket.Lease().Grow(1) {
			t.Errorf("%v: what is being served is not bounded by the limit alone", tc.priority)
		}
	}
}

// One workload cannot take the ledger: behind half of it, its share counts, and
// what is left is there for the others.
func TestShareOfTheLedger(t *testing.T) {
	l := NewLedger(1000)
	greedy := Claim{Priority: queue.Interactive, Holder: new(Holder), Share: 0.25}
	var got int64
	for {
		ticket, _ := l.Admit(Ask{Now: noon, Bytes: 10, Claim: greedy})
		if ticket == nil {
			break
		}
		got += 10
	}
	if got != 500 || greedy.Holder.Bytes() != 500 {
		t.Errorf("the greedy one got %d", got)
	}
	other := Claim{Priority: queue.Interactive, Holder: new(Holder), Share: 0.25}
	if ticket, _ := l.Admit(Ask{Now: noon, Bytes: 250, Claim: other}); ticket == nil {
		t.Error("nothing is left for the other")
	}
	if ticket, _ := l.Admit(Ask{Now: noon, Bytes: 1, Claim: other}); ticket != nil {
		t.Error("the other got more than its share")
	}
	strict := Claim{Holder: new(Holder), Share: 0.05, Strict: true}
	empty := NewLedger(1000)
	if ticket, _ := empty.Admit(Ask{Now: noon, Bytes: 51, Claim: strict}); ticket != nil || strict.Holder.Bytes() != 0 {
		t.Error("a strict share is passed in an empty ledger")
	}
}

// I7 with claims: what holders hold is what leases hold, no watermark is passed
// by what comes in, and nothing is left behind.
func TestClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(1000)
		holders := []*Holder{new(Holder), new(Holder), new(Holder)}
		type held struct {
			*Ticket
			by int
		}
		var in []held
		for range 60 {
			by := rapid.IntRange(0, 2).Draw(t, "holder")
			switch {
			case rapid.Bool().Draw(t, "come") || len(in) == 0:
				c := Claim{Priority: queue.Priority(rapid.IntRange(0, 2).Draw(t, "priority")), Holder: holders[by], Share: 0.25, Strict: by == 2}
				n := rapid.Int64Range(0, 300).Draw(t, "n")
				ticket, _ := l.Admit(Ask{Now: noon, Bytes: n, Claim: c})
				if ticket == nil {
					continue
				}
				in = append(in, held{ticket, by})
				if n > 0 && l.Reserved() > int64(watermarks[c.Priority]*1000) {
					t.Fatalf("%v came in at %d", c.Priority, l.Reserved())
				}
				if n > 0 && (by == 2 || l.Reserved() > 500) && holders[by].Bytes() > 250 {
					t.Fatalf("holder %d has %d of %d", by, holders[by].Bytes(), l.Reserved())
				}
			case rapid.Bool().Draw(t, "grow"):
				in[len(in)-1].Lease().Admitted()
				in[len(in)-1].Lease().Grow(rapid.Int64Range(0, 300).Draw(t, "more"))
			default:
				in[0].Leave(noon, Use{})
				in = in[1:]
			}
			var sum [3]int64
			for _, x := range in {
				sum[x.by] += x.Lease().Bytes()
			}
			for i, h := range holders {
				if h.Bytes() != sum[i] {
					t.Fatalf("holder %d has %d, its leases %d", i, h.Bytes(), sum[i])
				}
			}
			if total := sum[0] + sum[1] + sum[2]; total != l.Reserved() || total > 1000 {
				t.Fatalf("reserved %d, leases %d", l.Reserved(), total)
			}
		}
	})
}

func TestTicketIsGivenBackOnce(t *testing.T) {
	l := NewLedger(1000)
	workload := NewLimiter(OfWorkload, Limits{Concurrency: 1})
	key := NewLimiter(OfWorkload, Limits{RPM: 6000})
	ask := Ask{Now: noon, Bytes: 100, Limits: [MaxLimits]*Limiter{workload, nil, key}}
	ticket, _ := l.Admit(ask)
	if ticket == nil || !ticket.Call() || ticket.Calls() != 1 {
		t.Fatal("no good ticket")
	}
	if other, refusal := l.Admit(ask); other != nil || refusal.Reason != ReasonConcurrency {
		t.Fatalf("two in one slot, %+v", refusal)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { ticket.Leave(noon, Use{}) })
	}
	wg.Wait()
	if ticket.Call() || ticket.Lease().Grow(1) {
		t.Error("a ticket that was given back is good")
	}
	if other, _ := l.Admit(ask); other == nil {
		t.Error("the slot is lost")
	}
	if l.Reserved() != 100 {
		t.Errorf("%d bytes reserved", l.Reserved())
	}
	if (*Ticket)(nil).Call() || new(Ticket).Call() {
		t.Error("a ticket that admission did not issue is good")
	}
}

// What a refused request took before the limit that refused is given back.
func TestRefusedAdmissionHoldsNothing(t *testing.T) {
	l := NewLedger(1000)
	workload, model := NewLimiter(OfWorkload, Limits{Concurrency: 1, RPM: 1, TPM: 100}), NewLimiter(OfWorkload, Limits{Concurrency: 1})
	first, _ := l.Admit(Ask{Now: noon, Limits: [MaxLimits]*Limiter{model}})
	if ticket, refusal := l.Admit(Ask{Now: noon, Limits: [MaxLimits]*Limiter{workload, model}}); ticket != nil || refusal.Reason != ReasonConcurrency {
		t.Fatalf("%v, %+v", ticket, refusal)
	}
	first.Leave(noon, Use{})
	if ticket, _ := l.Admit(Ask{Now: noon, Bytes: 2000, Limits: [MaxLimits]*Limiter{workload, model}}); ticket != nil {
		t.Fatal("more memory than there is")
	}
	if ticket, _ := l.Admit(Ask{Now: noon, Bytes: 10, Limits: [MaxLimits]*Limiter{workload, model}}); ticket == nil {
		t.Error("a refused request kept a slot")
	}
}

func BenchmarkAdmit(b *testing.B) {
	l := NewLedger(1 << 30)
	w := NewLimiter(OfWorkload, Limits{RPM: 1 << 40, TPM: 1 << 40, Concurrency: 10})
	ask := Ask{Now: noon, Bytes: 64 << 10, Claim: Claim{Priority: queue.Interactive, Holder: new(Holder), Share: 0.25}, Limits: [MaxLimits]*Limiter{w}}
	b.ReportAllocs()
	for b.Loop() {
		ticket, _ := l.Admit(ask)
		ticket.Leave(noon, Use{})
	}
}

// Nothing is allocated for limits: neither for places in them nor for looking
// what is left where there are none.
func TestLimitsAllocateNothing(t *testing.T) {
	full, none := NewLimiter(OfWorkload, Limits{RPM: 1 << 30, TPM: 1 << 40, Concurrency: 10, USDPerDay: USD(1e6)}), NewLimiter(OfKey, Limits{})
	l := NewLedger(1 << 30)
	for name, tc := range map[string]struct {
		most float64
		do   func()
	}{
		"a ticket alone": {1, func() {
			ticket, _ := l.Admit(Ask{Now: noon, Limits: [MaxLimits]*Limiter{full, none}})
			ticket.Enter(noon, none, 0)
			ticket.Revise(noon, Use{Tokens: 5, Cost: 5})
			ticket.Leave(noon, Use{Tokens: 4, Cost: 4})
		}},
		"nothing": {0, func() { Binding(noon, full, none, nil, nil) }},
	} {
		if got := testing.AllocsPerRun(100, tc.do); got > tc.most {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
