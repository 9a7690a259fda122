package notify

import (
	"slices"

	"github.com/hourthree/hourthree/internal/detect"
)

// maxOutages bounds how many outages a story or a book remembers.
const maxOutages = 64

// story makes notices of what a detector notices of outages: it knows which of them
// were told of. Not safe for concurrent use.
type story struct{ open []string }

// tell is what a detector's notice comes to; false for one that is not told: of the
// findings only the first, which opens the outage.
func (s *story) tell(d detect.Notice) (Notice, bool) {
	known := slices.Contains(s.open, d.Outage)
	o := &Outage{ID: d.Outage, State: string(d.State), Onset: d.Onset, Score: d.Score}
	if o.Onset.IsZero() {
		o.Onset = d.At
	}
	o.Scope = slices.Clone(d.Scope[:min(len(d.Scope), maxScope)])
	o.More = len(d.Scope) - len(o.Scope)
	if d.Score > 0 {
		source := d.Source
		o.Source = &source
	}
	n := Notice{At: d.At, Kind: OfOutage, Subject: d.Outage, Severity: Warning, Text: d.Text, Outage: o}
	name := "Outage " + d.Outage
	switch {
	case d.What == "closed":
		at := d.At
		o.Ended, n.Event, n.Title = &at, "ended", name+" ended, "+string(d.State)
		if d.State == detect.Verified {
			n.Severity = Info
		}
		s.open = slices.DeleteFunc(s.open, func(id string) bool { return id == d.Outage })
	case d.What == "source":
		n.Event, n.Title = "source", name+": the source is "+d.Source.String()
	case d.What == "wave":
		n.Event, n.Title = "wave", name+": another wave"
	case d.What == "state":
		n.Event, n.Title = "state", name+" is "+string(d.State)
	case !known:
		n.Event, n.Title = "opened", name+" began"
	default:
		return Notice{}, false
	}
	if d.State == detect.Degraded {
		n.Severity = Critical
	}
	if n.Event != "ended" && !known {
		if s.open = append(s.open, d.Outage); len(s.open) > maxOutages {
			s.open = slices.Delete(s.open, 0, 1)
		}
	}
	n.seal()
	return n, true
}
