package detect

import (
	"fmt"
	"time"
)

// Finding is what one detector has found about one subject, with the numbers that
// it went by.
type Finding struct {
	Detector string     `json:"detector"`
	Subject  Subject    `json:"subject"`
	SLO      string     `json:"slo,omitempty"` // of slo_burn
	Since    time.Time  `json:"since"`         // as far as that can be told
	Found    time.Time  `json:"found"`
	Ended    *time.Time `json:"ended,omitempty"`
	// Before and Now are shares, or ratios, or seconds, as the detector has it; N is
	// how many requests or calls are behind Now.
	Before float64 `json:"before"`
	Now    float64 `json:"now"`
	N      int64   `json:"n"`
	Share  float64 `json:"share,omitempty"` // of all excess
	Score  float64 `json:"score,omitempty"` // divergence, rise of faults, callers refused, or burn rate
	Text   string  `json:"text"`

	home *Outage
}

type findingKey struct {
	detector string
	subject  Subject
	slo      string
}

// found notes that a detector begins or ceases to find something of a series.
func (d *Detector) found(s *series, detector string, on bool, f Finding) {
	if s.on == nil {
		s.on = map[string]bool{}
	}
	k := findingKey{detector, Subject{s.key.kind, s.key.name}, ""}
	if !on {
		delete(s.on, detector)
		if old := d.active[k]; old != nil {
			at := d.now
			old.Ended = &at
			delete(d.active, k)
		}
		return
	}
	s.on[detector] = true
	f.Detector, f.Subject, f.Found = detector, k.subject, d.now
	f.Text = f.words()
	d.active[k] = &f
	d.fresh = append(d.fresh, &f)
}

// words are the finding as a sentence.
func (f *Finding) words() string {
	switch f.Detector {
	case Drop:
		return fmt.Sprintf("%.1f %% of %d fail at %s, usual is %.1f %%", 100*f.Now, f.N, f.Subject, 100*f.Before)
	case Broken:
		return fmt.Sprintf("%.1f %% of %d answers of %s are cut short, empty or an error inside a success, usual is %.1f %%", 100*f.Now, f.N, f.Subject, 100*f.Before)
	case In:
		return fmt.Sprintf("%.1f requests come in of %s for each distinct one, usual is %.1f; %.0f %% of all excess is its own", f.Now, f.Subject, f.Before, 100*f.Share)
	case Out:
		return fmt.Sprintf("%.2f calls are made for each request of %s, usual is %.2f", f.Now, f.Subject, f.Before)
	case Mix:
		return fmt.Sprintf("the classes of the answers of %s have changed (divergence %.2f bits), %.1f %% of %d fail, usual is %.1f %%", f.Subject, f.Score, 100*f.Now, f.N, 100*f.Before)
	case Relabel:
		return fmt.Sprintf("%s refuses %.1f %% of %d calls for capacity and refused %.1f %%, while %.1f %% more are answered 5xx: capacity relabelled as a server fault", f.Subject, 100*f.Now, f.N, 100*f.Before, 100*f.Score)
	case Theirs:
		return fmt.Sprintf("%s refuses %.1f %% of %d calls as mistakes of %.0f callers at once, usual is %.1f %%: the provider's fault", f.Subject, 100*f.Now, f.N, f.Score, 100*f.Before)
	case Left:
		return fmt.Sprintf("the router has left %s, by its breaker; of %d calls in a minute %.1f %% failed", f.Subject, f.N, 100*f.Now)
	case SlowerBy:
		return fmt.Sprintf("first content of %s takes %.2f s for requests of the same size, usual is %.2f s", f.Subject, f.Now, f.Before)
	}
	return f.Detector
}
