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
