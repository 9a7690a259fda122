package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Unix(0, 0)

// at is a time in milliseconds.
func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func roomy() *Queue { return New(Config{Length: 10_000, Bytes: 1 << 40, Wait: time.Hour}) }

func item(flow string, p Priority, cost int64, keys ...Key) *Item {
	if keys == nil {
		keys = []Key{"a"}
	}
	return &Item{Flow: flow, Priority: p, Cost: cost, Bytes: 1, Keys: keys}
}

// push puts items in line that must be let in.
func push(t testing.TB, q *Queue, ms int, items ...*Item) {
	t.Helper()
	for _, it := range items {
		if f := q.Push(at(ms), it); f != Waiting {
			t.Fatalf("%s was refused: %s", it.Flow, f)
		}
	}
}

// serve dispatches the next n for the key and returns their flows.
func serve(q *Queue, ms int, k Key, n int) (flows []string) {
	for range n {
		it := q.Next(at(ms), k)
		if it == nil {
			return flows
		}
		q.Done(at(ms), it)
		flows = append(flows, it.Flow)
	}
	return flows
}

func TestClassesInOrderWithAGuard(t *testing.T) {
	q := roomy()
	for range 100 {
		push(t, q, 0, item("c", Critical, 1), item("i", Interactive, 1), item("b", Batch, 1))
	}
	count := map[string]int{}
	for _, f := range serve(q, 0, "a", 96) {
		count[f]++
	}
	if count["i"] != 6 || count["b"] != 5 || count["c"] != 85 {
		t.Errorf("served %v of 96, want each sixteenth to go to a less important class", count)
	}
}

// TestTheGuardCountsGrantsOfItsKey: neither grants of another key nor what was
// offered in vain bring a less important class forward. It fails when the count is
// the class's, or is kept of offers.
func TestTheGuardCountsGrantsOfItsKey(t *testing.T) {
	q := roomy()
	for range 40 {
		push(t, q, 0, item("c", Critical, 1, "a"), item("c", Critical, 1, "b"), item("b", Batch, 1, "a", "b"))
	}
	serve(q, 0, "a", 10)
	for range 40 {
		q.Spent(epoch, q.Next(epoch, "b"), Denial{})
	}
	if got := serve(q, 0, "b", 15); slices.Contains(got, "b") {
		t.Errorf("served %v: batch work has its turn behind 15 grants", got)
	}
	if got := serve(q, 0, "a", 6); !slices.Contains(got, "b") {
		t.Errorf("served %v behind 10: batch work did not have its turn", got)
	}
}

func TestOnlyThoseWhoWantTheKey(t *testing.T) {
	q := roomy()
	push(t, q, 0, item("x", Critical, 1, "a"), item("x", Critical, 1, "b"), item("y", Batch, 1, "c", "b"))
	if got := serve(q, 0, "b", 5); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("served %v for b", got)
	}
	if n, _ := q.Waiting(); n != 1 || q.Next(at(0), "c") != nil {
		t.Errorf("%d wait", n)
	}
}

// TestFairness is invariant I10: two flows that always have work waiting are
// served alike, whatever their requests cost and however many others come and
// go.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := roomy()
		most := rapid.Int64Range(1, 50_000).Draw(t, "largest cost")
		cost := rapid.Int64Range(1, most)
		var sum [2]int64
		names := []string{"one", "two"}
		for range 3 {
			for _, f := range names {
				push2(q, item(f, Interactive, cost.Draw(t, "cost")))
			}
		}
		since := 0
		for range 200 {
			if rapid.Bool().Draw(t, "another") {
				push2(q, item(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "flow"), Interactive, cost.Draw(t, "cost")))
			}
			it := q.Next(epoch, "a")
			q.Done(epoch, it)
			since++
			if i := slices.Index(names, it.Flow); i >= 0 {
				sum[i] += it.Cost
				push2(q, item(it.Flow, Interactive, cost.Draw(t, "cost")))
			}
			if d := max(sum[0]-sum[1], sum[1]-sum[0]); d > 2*max(most, leastCost) {
				t.Fatalf("served %v: %d apart, largest cost %d", sum, d, most)
			}
		}
	})
}

// TestWhoTriesMissesNoRound: while the only request of a flow tries in vain, the
// others are given a round; it is no worse off for that. It fails when a round is
// only for those who can be told.
func TestWhoTriesMissesNoRound(t *testing.T) {
	q := roomy()
	for range 100 {
		push(t, q, 0, item("many", Interactive, 64))
	}
	tell := func() *Item { // the next of one, behind those of many who come first
		for {
			if it := q.Next(epoch, "a"); it.Flow == "one" {
				return it
			} else {
				q.Done(epoch, it)
			}
		}
	}
	push(t, q, 0, item("one", Interactive, Quantum-64))
	first := tell()
	push(t, q, 0, item("one", Interactive, 64))
	q.Done(epoch, first)
	tries := tell() // neither may use much more than this
	serve(q, 0, "a", 2)
	q.Spent(epoch, tries, Denial{})
	if served := serve(q, 0, "a", 3); !slices.Contains(served, "one") {
		t.Errorf("served %v", served)
	}
}

// TestWhatCostsNothingTakesTurns: a flow whose requests are said to use no tokens,
// before they are served or behind it, does not keep another one waiting. It
// fails when a cost may be 0.
func TestWhatCostsNothingTakesTurns(t *testing.T) {
	for _, estimated := range []int64{-1000, 0, 1000} {
		q := roomy()
		push(t, q, 0, item("free", Interactive, estimated), item("paid", Interactive, 1000))
		served := map[string]int{}
		for range 1000 {
			it := q.Next(epoch, "a")
			q.Done(epoch, it)
			served[it.Flow]++
			if it.Flow == "paid" {
				push2(q, item("paid", Interactive, 1000))
				continue
			}
			push2(q, item("free", Interactive, estimated))
			q.Settle(Interactive, "free", estimated, 0)
		}
		if served["paid"] < 1000/(1+1000/leastCost)-2 {
			t.Errorf("estimated at %d: %v", estimated, served)
		}
	}
}

func push2(q *Queue, it *Item) {
	if q.Push(epoch, it) != Waiting {
		panic("refused")
	}
}

// TestDebtOutlivesIdleness: a flow with one large request at a time does not
// get more than one with many small ones.
func TestDebtOutlivesIdleness(t *testing.T) {
	q := roomy()
	sum := map[string]int64{}
	for range 50 {
		push(t, q, 0, item("small", Interactive, 100))
	}
	waits := false
	for range 5000 {
		if !waits {
			push(t, q, 0, item("large", Interactive, 10_000))
			waits = true
		}
		it := q.Next(epoch, "a")
		q.Done(epoch, it)
		sum[it.Flow] += it.Cost
		if it.Flow == "large" {
			waits = false
		} else {
			push(t, q, 0, item("small", Interactive, 100))
		}
	}
	if d := sum["large"] - sum["small"]; d > 2*10_000 || d < -2*10_000 {
		t.Errorf("served %v", sum)
	}
}

func TestIdlenessSavesNothing(t *testing.T) {
	q := roomy()
	for range 300 {
		push(t, q, 0, item("busy", Interactive, 1000))
	}
	serve(q, 0, "a", 200)
	for range 50 {
		push(t, q, 0, item("back", Interactive, 1000))
	}
	count := 0
	for _, f := range serve(q, 0, "a", 20) {
		if f == "back" {
			count++
		}
	}
	if count < 9 || count > 11 {
		t.Errorf("%d of 20 went to the flow that was idle", count)
	}
}

// TestWhoComesBackSavedNothing: a flow that was served, and comes back when the
// other one owes much, has no more than that one. It fails when such a flow is
// given a round's worth, as a new one is, and when it keeps what the rounds gave.
func TestWhoComesBackSavedNothing(t *testing.T) {
	q := roomy()
	for range 100 {
		push(t, q, 0, item("busy", Interactive, 20*Quantum))
	}
	push(t, q, 0, item("back", Interactive, Quantum))
	for served := ""; served != "back"; {
		served = serve(q, 0, "a", 1)[0]
	}
	serve(q, 0, "a", 10) // 20 rounds each, which it takes no part in
	for range 50 {
		push(t, q, 0, item("back", Interactive, Quantum))
	}
	if served := serve(q, 0, "a", 5); !slices.Contains(served, "busy") {
		t.Errorf("served %v", served)
	}
}

// TestANewFlowOwesNothing: the others are charged for calls in flight that use
// much less; a new flow does not wait until they are settled. It fails when a new
// flow begins with no more than the best of the others.
func TestANewFlowOwesNothing(t *testing.T) {
	q := roomy()
	const estimate, real = 20 * Quantum, Quantum / 2
	for range 20 {
		push(t, q, 0, item("one", Interactive, estimate), item("two", Interactive, estimate))
	}
	flows := serve(q, 0, "a", 20)
	push(t, q, 0, item("new", Interactive, estimate))
	for _, f := range flows {
		q.Settle(Interactive, f, estimate, real)
	}
	if served := serve(q, 0, "a", 3); !slices.Contains(served, "new") {
		t.Errorf("served %v", served)
	}
}

func TestSettleCharges(t *testing.T) {
	q := roomy()
	for range 100 {
		push(t, q, 0, item("honest", Interactive, 1000), item("liar", Interactive, 1000))
	}
	count := map[string]int{}
	for range 60 {
		f := serve(q, 0, "a", 1)[0]
		count[f]++
		if f == "liar" {
			q.Settle(Interactive, f, 1000, 5000)
		}
	}
	if count["liar"] > 12 {
		t.Errorf("served %v", count)
	}
}

func TestExpiredIsNotServed(t *testing.T) {
	q := New(Config{Length: 10, Bytes: 100, Wait: 200 * time.Millisecond})
	short := item("x", Interactive, 1)
	short.Deadline = at(50)
	batch := item("x", Batch, 1)
	push(t, q, 0, short, item("x", Interactive, 1), batch)
	if short.Until() != at(50) || batch.Until() != at(2000) {
		t.Errorf("until %v and %v", short.Until(), batch.Until())
	}
	if it := q.Next(at(50), "a"); it == short || it == nil {
		t.Error("the one whose deadline is over was told")
	}
	if gone := q.Gone(); len(gone) != 1 || gone[0] != short || short.Fate() != Expired {
		t.Errorf("gone: %v", gone)
	}
	if q.Push(at(60), short) != Expired {
		t.Error("let in behind its deadline")
	}
}

func TestPassKeepsThePlace(t *testing.T) {
	q := roomy()
	one, two := item("x", Interactive, 1, "a"), item("x", Interactive, 1, "a")
	push(t, q, 0, one, two)
	if q.Next(epoch, "a") != one || !q.Promised("a") {
		t.Fatal("not the first")
	}
	if w := q.Pass(epoch, one, Denial{}); len(w) != 1 || w[0] != two {
		t.Fatalf("passed on to %v", w)
	}
	if w := q.Pass(epoch, two, Denial{}); len(w) != 0 || q.Promised("a") {
		t.Fatal("told twice of the same")
	}
	if q.Next(epoch, "a") != one {
		t.Fatal("the first has lost its place")
	}
	if q.Next(epoch, "a") != two || q.Next(epoch, "a") != nil {
		t.Fatal("not the second")
	}
	if w := q.Done(epoch, one); len(w) > 1 {
		t.Fatal("more news than there was")
	}
	if w := q.Pass(epoch, two, Denial{}); len(w) > 1 {
		t.Fatal("more news than there was")
	}
}

func TestWhoIsAhead(t *testing.T) {
	q := roomy()
	if q.Wanted("a") || q.Ahead("a", Batch) {
		t.Error("nobody waits")
	}
	it := item("x", Interactive, 1, "a")
	push(t, q, 0, it)
	if q.Ahead("b", Batch) || !q.Ahead("a", Interactive) || !q.Ahead("a", Batch) || q.Ahead("a", Critical) {
		t.Error("only those who matter less are behind it, and only for its key")
	}
	if q.Next(epoch, "a"); !q.Promised("a") || q.Vain("a") {
		t.Error("what one is told of is promised")
	}
	if q.Pass(epoch, it, Denial{}); q.Promised("a") || !q.Vain("a") {
		t.Error("what helped nobody is for anybody")
	}
	if q.Next(epoch, "a"); q.Vain("a") {
		t.Error("there is news")
	}
}

func TestANewcomerTakesTheRightPlace(t *testing.T) {
	q := New(Config{Length: 4, Bytes: 100, Wait: time.Hour})
	first, second := item("big", Interactive, 1), item("big", Interactive, 1)
	batch := item("b", Batch, 1)
	push(t, q, 0, first, second, item("small", Interactive, 1), batch)
	expect := func(newcomer *Item, fate Fate, victim *Item) {
		t.Helper()
		if got := q.Push(epoch, newcomer); got != fate {
			t.Errorf("newcomer of %s: %s", newcomer.Flow, got)
		}
		gone := q.Gone()
		if victim == nil && len(gone) == 0 {
			return
		}
		if len(gone) != 1 || gone[0] != victim || victim.Fate() != Evicted {
			t.Errorf("newcomer of %s: %d gone", newcomer.Flow, len(gone))
		}
	}
	expect(item("other", Batch, 1), RefusedLength, nil)
	expect(item("big", Interactive, 1), Waiting, batch)
	third := first.flow.last()
	even := item("small", Interactive, 1)
	expect(even, Waiting, third)
	expect(item("small", Interactive, 1), RefusedLength, nil) // two and two is even
	expect(item("new", Interactive, 1), Waiting, even)
	expect(item("newer", Interactive, 1), Waiting, second)
	expect(item("newest", Interactive, 1), RefusedLength, nil)
	huge := item("huge", Critical, 1)
	huge.Bytes = 101
	expect(huge, RefusedBytes, nil)
}

func TestNobodyGoesInVain(t *testing.T) {
	q := New(Config{Length: 100, Bytes: 100, Wait: time.Hour})
	for i := range 10 {
		it := item(fmt.Sprint(i), Interactive, 1)
		it.Bytes = 10
		push(t, q, 0, it)
	}
	it := item("new", Interactive, 1)
	it.Bytes = 50
	if q.Push(epoch, it) != RefusedBytes || len(q.Gone()) != 0 {
		t.Error("small ones went for a large one")
	}
}

// TestNewestFirstUnderStandingLoad: the order turns when all have waited long
// for a second, for that flow only, and turns back when nobody expires any more.
func TestNewestFirstUnderStandingLoad(t *testing.T) {
	q := New(Config{Length: 1000, Bytes: 1000, Wait: 2 * time.Second})
	other := item("other", Interactive, 1, "b")
	push(t, q, 0, other)
	for ms := 0; ms <= 1500; ms += 100 {
		push(t, q, ms, item("x", Interactive, 1))
	}
	var line []*Item
	for _, f := range q.classes[Interactive].ring {
		if f.name == "x" {
			for it := f.lanes[0].first; it != nil; it = it.next {
				line = append(line, it)
			}
		}
	}
	for i, ms := range []int{300, 700, 1000, 1200, 1301} { // each has waited 300 ms and more
		it := q.Next(at(ms), "a")
		if it != line[i] {
			t.Fatalf("at %d ms: not the oldest", ms)
		}
		q.Done(at(ms), it)
	}
	if it := q.Next(at(1501), "a"); it != line[15] {
		t.Fatal("load stands and the newest is not the first")
	} else if q.Pass(at(1501), it, Denial{}); it.Until() != at(3500) {
		t.Errorf("until %v", it.Until())
	}
	fresh := item("x", Interactive, 1)
	push(t, q, 1501, fresh)
	if fresh.Until() != at(1601) {
		t.Errorf("a newcomer may wait until %v", fresh.Until())
	}
	calm := item("other", Interactive, 1)
	push(t, q, 1501, calm)
	if calm.Until() != at(3501) {
		t.Error("another flow's wait was shortened")
	}
	q.Remove(at(1502), calm, Removed)
	if it := q.Next(at(1502), "a"); it != fresh {
		t.Error("not the newest")
	} else {
		q.Done(at(1502), it)
	}
	it := q.Next(at(2302), "a")
	q.Done(at(2302), it) // nobody has expired for a second
	if it = q.Next(at(2303), "a"); it != line[5] {
		t.Error("load is gone and the oldest is not the first")
	}
}

func TestBatchKeepsItsOrder(t *testing.T) {
	q := New(Config{Length: 1000, Bytes: 1000, Wait: 2 * time.Second})
	for range 10 {
		push(t, q, 0, item("x", Batch, 1))
	}
	for ms := 1000; ms < 6000; ms += 1000 {
		serve(q, ms, "a", 1)
	}
	if q.classes[Batch].ring[0].load.stands {
		t.Error("batch work is served newest first")
	}
}

func TestDealIsEven(t *testing.T) {
	count := make([]int, 8)
	for hash := range uint64(8 * 7 * 6) {
		var hand [3]int
		Deal(hash, hand[:], 8)
		seen := map[int]bool{}
		for _, c := range hand {
			if c < 0 || c >= 8 || seen[c] {
				t.Fatalf("hand %v", hand)
			}
			seen[c] = true
			count[c]++
		}
	}
	for c, n := range count {
		if n != 8*7*6*3/8 {
			t.Errorf("card %d was dealt %d times", c, n)
		}
	}
}

// TestShardsIsolate: the chance that sixteen heavy callers cover a hand is the
// computed 2.2 %, and with four it is out of reach of a test.
func TestShardsIsolate(t *testing.T) {
	rng := uint64(1)
	random := func() uint64 { // splitmix64
		rng += 0x9e3779b97f4a7c15
		z := rng
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	covered := func(elephants int) (n int) {
		for range 20_000 {
			var taken [Shards]bool
			var hand [Hand]int
			for range elephants {
				Deal(random(), hand[:], Shards)
				for _, c := range hand {
					taken[c] = true
				}
			}
			Deal(random(), hand[:], Shards)
			all := true
			for _, c := range hand {
				all = all && taken[c]
			}
			if all {
				n++
			}
		}
		return n
	}
	if n := covered(16); n < 20_000*17/1000 || n > 20_000*27/1000 {
		t.Errorf("covered %d times of 20,000, want 2.2 %%", n)
	}
	if n := covered(4); n > 5 {
		t.Errorf("covered %d times of 20,000, want 1.6e-5", n)
	}
}

func TestShardIsTheShortest(t *testing.T) {
	q := roomy()
	seen := map[string]bool{}
	for range Hand {
		s := q.Shard(Interactive, 12345)
		if seen[s] {
			t.Fatalf("%s again", s)
		}
		seen[s] = true
		push(t, q, 0, item(s, Interactive, 1))
	}
	if !seen[q.Shard(Interactive, 12345)] {
		t.Error("a seventh shard")
	}
}
