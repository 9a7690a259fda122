package app

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestPlateau is I16: ten times what the target bears changes goodput by less than
// a tenth. An answer counts within a second of its request.
func TestPlateau(t *testing.T) {
	u1 := upstream("u1", after(100*time.Millisecond, answers("fine")))
	s := setup{upstreams: []*fake{u1}, target: map[string]string{"u1": "limits: {concurrency: 10}"}}
	run(t, s, func(r *rig) {
		goodput := func(rate int) float64 {
			const seconds = 10
			var mu sync.Mutex
			good := 0
			var wg sync.WaitGroup
			for range rate * seconds {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
					defer cancel()
					if a := r.do(ask{ctx: ctx}); a.status == 200 && a.err == nil {
						mu.Lock()
						defer mu.Unlock()
						good++
					}
				})
				time.Sleep(time.Second / time.Duration(rate))
			}
			wg.Wait()
			return float64(good) / seconds
		}
		at := map[string]float64{}
		for _, x := range []struct {
			name string
			rate int
		}{{"1x", 95}, {"2x", 200}, {"10x", 1000}} {
			at[x.name] = goodput(x.rate)
			time.Sleep(5 * time.Second)
		}
		t.Logf("goodput a second: %v", at)
		if peak := max(at["1x"], at["2x"]); at["10x"] < 0.9*peak {
			t.Errorf("%.1f at ten times the capacity, %.1f at the peak", at["10x"], peak)
		}
	})
}
