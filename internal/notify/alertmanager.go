package notify

import (
	"maps"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
)

const (
	// renewEvery is how often an open outage is sent again. What Alertmanager does
	// not hear of again ends at the endsAt that it was sent, stands times as long
	// ahead, as Prometheus has it: a router that is gone leaves no alert behind, and
	// three messages may be lost.
	renewEvery = time.Minute
	stands     = 4
	// momentary is how long an alert stands that is about a moment and not a state.
	momentary = 5 * time.Minute
	// alertPath is where Alertmanager takes alerts.
	alertPath = "/api/v2/alerts"
)

// alert is postableAlert of Alertmanager's API v2.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// alertNames are the labels by which alerts are told apart.
var alertNames = map[Kind]string{
	OfOutage: "HourthreeOutage", OfAction: "HourthreeAction", OfRollout: "HourthreeRollout", OfConfiguration: "HourthreeConfiguration", OfTest: "HourthreeTest",
}

// alertsOf is a message as alerts. The labels of an outage stay the same from its
// beginning to its end: they are what Alertmanager knows it by.
func alertsOf(m *Message, a about, now time.Time) []alert {
	one := alert{Labels: map[string]string{}, GeneratorURL: a.Dashboard, StartsAt: m.At.UTC(), EndsAt: m.At.Add(momentary).UTC()}
	maps.Copy(one.Labels, a.Labels)
	maps.Copy(one.Labels, map[string]string{"alertname": alertNames[m.Kind], "severity": string(m.Severity), "router": a.Router})
	one.Annotations = map[string]string{"summary": plainAlert(m.Title), "description": plainAlert(m.Text)}
	if m.Who != "" {
		one.Annotations["who"] = plainAlert(m.Who)
	}
	o := m.Outage
	if o == nil {
		one.Labels["event"], one.Labels["subject"] = m.Event, m.Subject
		if !one.EndsAt.After(now) { // it waited for long: it is told, and ends soon
			one.EndsAt = now.Add(renewEvery).UTC()
		}
		return []alert{filled(one)}
	}
	one.Labels["outage"], one.Labels["severity"] = o.ID, string(Critical)
	one.StartsAt, one.EndsAt = o.Onset.UTC(), now.Add(stands*renewEvery).UTC()
	if o.Ended != nil {
		one.EndsAt = o.Ended.UTC()
	}
	if !one.EndsAt.After(one.StartsAt) {
		one.StartsAt = one.EndsAt.Add(-time.Second)
	}
	one.Annotations["state"], one.Annotations["concerns"] = o.State, plainAlert(detect.Names(o.Scope))
	if o.Source != nil {
		one.Annotations["suspect"] = plainAlert(o.Source.String())
	}
	return []alert{filled(one)}
}

// filled leaves out what is empty: an empty label is no label.
func filled(a alert) alert {
	empty := func(_, v string) bool { return v == "" }
	maps.DeleteFunc(a.Labels, empty)
	maps.DeleteFunc(a.Annotations, empty)
	return a
}

// plainAlert is a text of others as an annotation: templates of Alertmanager hand it
// on to chats, most of them without escaping it.
var plainAlert = strings.NewReplacer("<", "‹", ">", "›", "@", "@\u2060", "](", "]\u2060(").Replace
