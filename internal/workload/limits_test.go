package workload

import (
	"testing"

	"github.com/hourthree/hourthree/internal/admit"
)

func limited(t *testing.T, prior *Directory, key, model admit.Limits) *Directory {
	t.Helper()
	d, err := NewDirectory([]Spec{
		{Name: "a", Keys: []string{"one", "two"}, Limits: admit.Limits{Concurrency: 3}, KeyLimits: key, ModelLimits: map[string]admit.Limits{"m": model}},
	}, prior)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every key has the key limits for itself, within those of the workload; both
// are as they were behind a reload.
func TestKeyLimits(t *testing.T) {
	d, l := limited(t, nil, admit.Limits{Concurrency: 2}, admit.Limits{}), admit.NewLedger(1000)
	come := func(key string) (*admit.Ticket, admit.Refusal) { return d.Identify(key).Admit(noon, l, 1, 0) }
	first, _ := come("one")
	come("one")
	if _, r := come("one"); r.Owner != admit.OfKey || r.Reason != admit.ReasonConcurrency {
		t.Errorf("%+v", r)
	}
	if ticket, r := come("two"); ticket == nil {
		t.Errorf("the other key's slots are taken: %+v", r)
	}
	if _, r := come("two"); r.Owner != admit.OfWorkload {
		t.Errorf("%+v", r)
	}
	d = limited(t, d, admit.Limits{Concurrency: 1}, admit.Limits{})
	first.Leave(noon, admit.Use{})
	if _, r := come("one"); r.Owner != admit.OfKey {
		t.Errorf("a reload forgot who is inside: %+v", r)
	}
	d = limited(t, d, admit.Limits{}, admit.Limits{})
	if ticket, r := come("one"); ticket == nil {
		t.Errorf("a limit that is gone refuses: %+v", r)
	}
	if keys := d.Keys(d.All()[0]); len(keys) != 2 || keys[0].Short() >= keys[1].Short() || d.Identify("one").Short() != ShortOf("one") || len(ShortOf("one")) != 8 {
		t.Errorf("%v", keys)
	}
}

func TestModelLimits(t *testing.T) {
	d := limited(t, nil, admit.Limits{}, admit.Limits{Concurrency: 1})
	w := d.All()[0]
	if w.ForModel("n") != nil {
		t.Error("a model without limits has one")
	}
	p, _, _ := w.ForModel("m").Enter(noon, 0)
	limited(t, d, admit.Limits{}, admit.Limits{Concurrency: 1})
	if _, r, ok := w.ForModel("m").Enter(noon, 0); ok || r.Owner != admit.OfWorkloadModel {
		t.Errorf("a reload forgot who is inside: %+v", r)
	}
	p.Leave(noon, admit.Use{})
	limited(t, d, admit.Limits{}, admit.Limits{})
	for range 3 {
		if _, r, ok := w.ForModel("m").Enter(noon, 0); !ok {
			t.Errorf("a limit that is gone refuses: %+v", r)
		}
	}
}

func TestEstimate(t *testing.T) {
	w := New(Spec{Name: "a"})
	if in, out := w.Estimate(3600, 100); in != 1000 || out != 100 {
		t.Errorf("%d and %d", in, out)
	}
	for range 200 {
		w.Learn(3600, 500, 40)
	}
	if in, out := w.Estimate(3600, 0); in < 500 || in > 510 || out < 40 || out > 48 {
		t.Errorf("%d and %d", in, out)
	}
}
