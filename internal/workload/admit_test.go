package workload

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/queue"
)

// ask plays one request up to the point where it would be sent to a target.
func ask(w *Workload, now time.Time, numbered bool, key, body string) (*Arrival, error) {
	a, refusal, ok := w.Begin(now, numbered, key)
	defer w.End(0)
	if !ok {
		return &a, errors.New("before the body: " + refusal.Reason)
	}
	if refusal, ok := w.Read(now, &a, "/p", []byte(body)); !ok {
		return &a, errors.New("behind the body: " + refusal.Reason)
	}
	return &a, nil
}

// TestRepeats: of a request that fails and is repeated at once, without end, the
// reserve comes in, then one a second; whichever way the repeats are known.
func TestRepeats(t *testing.T) {
	for name, repeat := range map[string]func(w *Workload, now time.Time) (*Arrival, error){
		"numbered": func(w *Workload, now time.Time) (*Arrival, error) { return ask(w, now, true, "", "body") },
		"key":      func(w *Workload, now time.Time) (*Arrival, error) { return ask(w, now, false, "k", now.String()) },
		"body":     func(w *Workload, now time.Time) (*Arrival, error) { return ask(w, now, false, "", "body") },
	} {
		w := New(Spec{Name: "a"})
		a, err := ask(w, noon, false, "k", "body")
		if err != nil || a.Repeat() {
			t.Fatalf("%s: the first one: %v, repeat %v", name, err, a.Repeat())
		}
		w.Failed(noon, a, "/p", []byte("body"), time.Time{})
		in := 0
		for i := range 3000 {
			now := noon.Add(time.Duration(i) * 10 * time.Millisecond)
			a, err := repeat(w, now)
			if !a.Repeat() {
				t.Fatalf("%s: repeat %d is not known as one", name, i)
			}
			if err == nil {
				in++
			}
			w.Failed(now, a, "/p", []byte("body"), time.Time{})
		}
		if in < 39 || in > 42 {
			t.Errorf("%s: %d of 3000 came in, want the reserve of 10 and one a second", name, in)
		}
		if s := w.State(noon.Add(30 * time.Second)); s.Refused != 3000-int64(in) || s.Repeats != 3000 || s.In < 1000 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The same request again is new work once it was answered, and when nothing
// failed; another path is another request.
func TestNoRepeats(t *testing.T) {
	w := New(Spec{Name: "a"})
	for range 1000 {
		a, err := ask(w, noon, false, "", "same prompt")
		if err != nil || a.Repeat() {
			t.Fatalf("%v, repeat %v", err, a.Repeat())
		}
		w.Served(noon, a, "/p", []byte("same prompt"))
	}
	a, _ := ask(w, noon, false, "", "other")
	w.Failed(noon, a, "/p", []byte("other"), time.Time{})
	if refusal, ok := w.Read(noon, new(Arrival), "/q", []byte("other")); !ok {
		t.Error(refusal)
	}
	a, _ = ask(w, noon, false, "", "other")
	if !a.Repeat() {
		t.Error("not known as a repeat")
	}
	w.Served(noon, a, "/p", []byte("other"))
	if a, _ = ask(w, noon, false, "", "other"); a.Repeat() {
		t.Error("an answered request is repeated by nothing")
	}
}

// A prompt is answered behind its failure also where its body was not needed to
// know the repeat, or was read before anything failed: then it is common, and
// the next one is new work.
func TestAnsweredRepeat(t *testing.T) {
	body := []byte("prompt")
	for name, second := range map[string]func(w *Workload) *Arrival{
		"numbered":  func(w *Workload) *Arrival { a, _ := ask(w, noon, true, "", "prompt"); return a },
		"beside it": func(*Workload) *Arrival { return new(Arrival) },
	} {
		w := New(Spec{Name: "a"})
		a, _ := ask(w, noon, false, "", "prompt")
		w.Failed(noon, a, "/p", body, time.Time{})
		w.Served(noon, second(w), "/p", body)
		if a, _ := ask(w, noon, false, "", "prompt"); a.Repeat() {
			t.Errorf("%s: a repeat behind its answer", name)
		}
	}
}

func TestQuarantine(t *testing.T) {
	d, err := NewDirectory([]Spec{{Name: "a", Keys: []string{"a"}}, {Name: "b", Keys: []string{"b"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, l := d.Identify("a"), admit.NewLedger(1000)
	w.Move(Placement{Lane: Quarantine, Share: LaneShare, By: "operator"})
	if _, err := ask(w.Workload, noon, true, "", "x"); err == nil {
		t.Error("a repeat came in")
	}
	if ticket, _ := w.Admit(noon, l, 51, 0); ticket != nil {
		t.Error("more than its share of memory")
	}
	ticket, refusal := w.Admit(noon, l, 50, 0)
	if ticket == nil {
		t.Fatal(refusal)
	}
	if again, _ := NewDirectory([]Spec{{Name: "a", Keys: []string{"a"}}}, d); again.Identify("a").Placement().Lane != Quarantine {
		t.Error("a reload released it")
	}
	if before := w.Move(Placement{Lane: Normal}); before.By != "operator" {
		t.Errorf("%+v", before)
	}
	if other, _ := w.Admit(noon, l, 400, 0); other == nil {
		t.Error("still held")
	}
}

// Bodies that differ in the middle only, as those with recordings that begin and
// end with silence, are different requests.
func TestLongBodiesThatDifferInTheMiddle(t *testing.T) {
	w := New(Spec{Name: "a"})
	silence := strings.Repeat("A", 100<<10)
	a, _ := ask(w, noon, false, "", silence+"one"+silence)
	w.Failed(noon, a, "/p", []byte(silence+"one"+silence), time.Time{})
	if a, _ := ask(w, noon, false, "", silence+"two"+silence); a.Repeat() {
		t.Error("another request is taken for a repeat")
	}
}

func BenchmarkDigest(b *testing.B) {
	body := make([]byte, 8<<20)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		digestOf("/p", body)
	}
}

// Who decides by an old look at a workload moves it no more.
func TestReplace(t *testing.T) {
	w := New(Spec{Name: "a"})
	seen := w.Placement()
	w.Move(Placement{Lane: Quarantine, By: "operator"})
	if w.Replace(seen, Placement{Lane: Quarantine, By: "rule"}) || w.Placement().By != "operator" {
		t.Error("an operator's order was overwritten")
	}
	if !w.Replace(w.Placement(), Placement{Lane: Normal}) || w.Placement().Lane != Normal {
		t.Error("not moved")
	}
}

// What matters most of what is configured leaves no memory to what matters more.
func TestForemost(t *testing.T) {
	for _, tc := range []struct {
		priorities []queue.Priority
		most       []int64 // of 1000 bytes, for each
	}{
		{[]queue.Priority{queue.Interactive}, []int64{950}},
		{[]queue.Priority{queue.Batch}, []int64{950}},
		{[]queue.Priority{queue.Critical, queue.Batch}, []int64{950, 700}},
		{[]queue.Priority{queue.Interactive, queue.Batch}, []int64{950, 700}},
		{[]queue.Priority{queue.Critical, queue.Interactive}, []int64{950, 850}},
	} {
		var specs []Spec
		for i, p := range tc.priorities {
			specs = append(specs, Spec{Name: string(rune('a' + i)), Keys: []string{string(rune('a' + i))}, Priority: p})
		}
		d, err := NewDirectory(specs, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, most := range tc.most {
			c := d.All()[i].claim()
			c.Share = 0
			if ticket, _ := admit.NewLedger(1000).Admit(admit.Ask{Now: noon, Bytes: most, Claim: c}); ticket == nil {
				t.Errorf("%v: %d bytes are refused to the one at %d", tc.priorities, most, i)
			}
			if ticket, _ := admit.NewLedger(1000).Admit(admit.Ask{Now: noon, Bytes: most + 1, Claim: c}); ticket != nil {
				t.Errorf("%v: more than %d bytes for the one at %d", tc.priorities, most, i)
			}
		}
	}
}
