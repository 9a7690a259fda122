package admit

import (
	"math"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// I7, one goroutine: the sum of all leases is what is reserved and never more
// than the limit, and releasing all of them leaves 0. It fails when Release
// may give back twice, or when Grow adds to the lease without asking.
func TestLedgerSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLedger(rapid.Int64Range(0, 1000).Draw(t, "limit"))
		var leases []*Lease
		size := rapid.OneOf(rapid.Int64Range(-10, 400), rapid.Int64())
		for range 60 {
			n := size.Draw(t, "n")
			if op := rapid.IntRange(0, 3).Draw(t, "op"); op == 0 || len(leases) == 0 {
				lease, ok := l.Reserve(n)
				if ok != (lease != nil) {
					t.Fatal("a refusal with a lease, or a grant without")
				}
				if ok {
					leases = append(leases, lease)
				}
			} else {
				lease := leases[rapid.IntRange(0, len(leases)-1).Draw(t, "lease")]
				switch op {
				case 1:
					lease.Grow(n)
				case 2:
					lease.Shrink(n)
				case 3:
					lease.Release()
				}
			}
			var sum int64
			for _, x := range leases {
				if x.Bytes() < 0 {
					t.Fatal("a lease below 0")
				}
				sum += x.Bytes()
			}
			if sum != l.Reserved() || sum > l.Limit() {
				t.Fatalf("leases %d, reserved %d, limit %d", sum, l.Reserved(), l.Limit())
			}
		}
		for _, x := range leases {
			x.Release()
		}
		if l.Reserved() != 0 {
			t.Fatalf("%d bytes reserved at rest", l.Reserved())
		}
	})
}

// I7, many goroutines. Run it with -race.
func TestLedgerConcurrent(t *testing.T) {
	const limit, workers, rounds = 1000, 8, 2000
	l := NewLedger(limit)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				lease, ok := l.Reserve(int64(100 + w))
				if !ok {
					continue
				}
				lease.Grow(int64(i % 300))
				if got := l.Reserved(); got > limit || got < 0 {
					t.Errorf("reserved %d of %d", got, limit)
				}
				lease.Shrink(50)
				lease.Release()
				lease.Release()
			}
		})
	}
	wg.Wait()
	if l.Reserved() != 0 {
		t.Fatalf("%d bytes reserved at rest", l.Reserved())
	}
}

func TestLeaseSharedByGoroutines(t *testing.T) {
	l := NewLedger(1 << 20)
	lease, _ := l.Reserve(0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				if lease.Grow(7) {
					lease.Shrink(7)
				}
			}
			lease.Release()
		})
	}
	wg.Wait()
	if lease.Grow(1) || l.Reserved() != 0 {
		t.Fatalf("a released lease grew, or %d bytes are left", l.Reserved())
	}
}

func TestLedgerLoweredLimit(t *testing.T) {
	l := NewLedger(100)
	a, _ := l.Reserve(80)
	l.SetLimit(50)
	if a.Grow(1) {
		t.Fatal("grew past a lowered limit")
	}
	a.Shrink(40)
	if !a.Grow(10) || a.Grow(1) {
		t.Fatal("the lowered limit is 50")
	}
}

func TestLedgerNeverOverflows(t *testing.T) {
	l := NewLedger(math.MaxInt64)
	a, ok := l.Reserve(math.MaxInt64)
	if !ok || a.Grow(math.MaxInt64) || a.Grow(1) {
		t.Fatal("granted more than the limit")
	}
	if _, ok := l.Reserve(-1); ok {
		t.Fatal("granted a negative size")
	}
}

func TestNilLease(t *testing.T) {
	var x *Lease
	x.Release()
	x.Shrink(1)
	if x.Grow(1) || x.Bytes() != 0 {
		t.Fatal("a nil lease holds nothing")
	}
}

func BenchmarkLedger(b *testing.B) {
	l := NewLedger(1 << 30)
	b.ReportAllocs()
	for b.Loop() {
		lease, _ := l.Reserve(4096)
		lease.Release()
	}
}

func BenchmarkLeaseGrow(b *testing.B) {
	l := NewLedger(1 << 30)
	lease, _ := l.Reserve(0)
	b.ReportAllocs()
	for b.Loop() {
		lease.Grow(4096)
		lease.Shrink(4096)
	}
}

func BenchmarkLedgerRefusal(b *testing.B) {
	l := NewLedger(10)
	b.ReportAllocs()
	for b.Loop() {
		l.Reserve(4096)
	}
}
