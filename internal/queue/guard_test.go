package queue

import (
	"testing"
	"time"
)

// A class whose turn it is has it, also where the key is held for a more important
// item. It fails (there is nobody to serve) when those of the class are looked for
// in the class of the item.
func TestATurnWhileAKeyIsHeld(t *testing.T) {
	q := roomy()
	gone := item("gone", Interactive, 1000)
	push(t, q, 0, gone)
	for range guard - 1 {
		small := item("small", Critical, 1000)
		push(t, q, 0, small)
		if q.Next(epoch, "a") != small {
			t.Fatal("the class has its turn too early")
		}
		q.Done(epoch, small)
	}
	big := item("big", Critical, 8000)
	push(t, q, 0, big)
	q.Remove(epoch, gone, Removed)
	if q.Next(epoch, "a") != big {
		t.Fatal("not told")
	}
	q.Pass(epoch, big, Denial{Scope: DeniedAll, Large: true})
	later := item("later", Interactive, 1000)
	push(t, q, 0, later)
	if it := q.Next(epoch.Add(passedFor+time.Millisecond), "a"); it != later {
		t.Errorf("%+v has the turn", it)
	}
}

// Of sixteen grants less important work has one, also while what is free is saved
// up for an item that matters more: one large item behind the other does not shut
// it out. It fails when who waits for that is not counted as passed over.
func TestSavingUpPassesOver(t *testing.T) {
	q := roomy()
	served := map[Priority]int{}
	for range 5 * guard {
		push(t, q, 0, item("large", Critical, 8000), item("small", Interactive, 1000))
	}
	denied := map[*Item]bool{}
	once := func(it *Item) (bool, Denial) { // a large one fits at the second time
		fits := it.Priority != Critical || denied[it]
		denied[it] = true
		return fits, Denial{Scope: DeniedAll, Large: true}
	}
	for total := 0; total < 4*guard; {
		if _, it := tries(q, epoch, "a", once); it != nil {
			served[it.Priority]++
			total++
		}
		q.Released() // and offered at once, by the next signal
	}
	if served[Interactive] != 4 {
		t.Errorf("served %v, want each sixteenth to go to what matters less", served)
	}
}

// A turn that helps nobody is over: what matters more is not tried behind less
// important work until that is served. It fails when only a grant ends the turn.
func TestATurnInVainIsOver(t *testing.T) {
	q := roomy()
	push(t, q, 0, item("less", Interactive, 1000))
	first := map[string]int{}
	for range 2 * guard {
		more := item("more", Critical, 1000)
		push(t, q, 0, more)
		it := q.Next(epoch, "a")
		first[it.Flow]++
		if it != more {
			if woken := q.Pass(epoch, it, Denial{}); len(woken) != 1 || woken[0] != more {
				t.Fatalf("%v told behind the turn", woken)
			}
		}
		q.Done(epoch, more)
	}
	if first["less"] != 2 {
		t.Errorf("%v were told first, want one turn in sixteen", first)
	}
}
