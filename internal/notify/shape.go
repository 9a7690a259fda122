package notify

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/hourthree/hourthree/internal/detect"
)

// Format is the shape of what a webhook is sent.
type Format string

// The shapes.
const (
	Generic      Format = "generic"
	Slack        Format = "slack"
	Alertmanager Format = "alertmanager"
)

// schemaVersion is that of the generic document. It rises when a field changes its
// meaning or goes; new fields may come without.
const schemaVersion = 1

// about is what every shape says of who sends.
type about struct {
	Router    string // its name
	Version   string
	Dashboard string // address of the operator's pages, "" for none
	Labels    map[string]string
}

// document is the generic shape; docs/webhooks.md describes it.
type document struct {
	Schema   int               `json:"schema"`
	ID       string            `json:"id"`
	At       time.Time         `json:"at"`
	Kind     Kind              `json:"kind"`
	Event    string            `json:"event"`
	Severity Severity          `json:"severity"`
	Subject  string            `json:"subject"`
	Title    string            `json:"title"`
	Text     string            `json:"text"`
	Who      string            `json:"who,omitempty"`
	Outage   *outageDocument   `json:"outage,omitempty"`
	Also     []earlier         `json:"also,omitempty"`
	Untold   int               `json:"also_untold,omitempty"`
	Router   routerDocument    `json:"router"`
	Labels   map[string]string `json:"labels,omitempty"`
	Link     string            `json:"link,omitempty"`
}

type outageDocument struct {
	ID        string           `json:"id"`
	State     string           `json:"state"`
	Onset     time.Time        `json:"onset"`
	Ended     *time.Time       `json:"ended,omitempty"`
	Scope     []detect.Subject `json:"scope"`
	ScopeMore int              `json:"scope_more,omitempty"`
	Source    *detect.Subject  `json:"source,omitempty"`
	Score     float64          `json:"score,omitempty"`
}

type earlier struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`
	Title string    `json:"title"`
	Text  string    `json:"text"`
}

type routerDocument struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// body is a message in a shape; now is when it is sent.
func body(f Format, m *Message, a about, now time.Time) ([]byte, error) {
	switch f {
	case Slack:
		return encode(slackOf(m, a))
	case Alertmanager:
		return encode(alertsOf(m, a, now))
	}
	return encode(documentOf(m, a))
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func documentOf(m *Message, a about) document {
	d := document{
		Schema: schemaVersion, ID: m.ID, At: m.At.UTC(), Kind: m.Kind, Event: m.Event, Severity: m.Severity, Subject: m.Subject, Title: m.Title, Text: m.Text,
		Who: m.Who, Untold: m.Untold, Router: routerDocument{a.Router, a.Version}, Labels: a.Labels, Link: a.Dashboard,
	}
	if o := m.Outage; o != nil {
		d.Outage = &outageDocument{ID: o.ID, State: o.State, Onset: o.Onset.UTC(), Scope: o.Scope, ScopeMore: o.More, Source: o.Source, Score: o.Score}
		if d.Outage.Scope == nil {
			d.Outage.Scope = []detect.Subject{}
		}
		if o.Ended != nil {
			at := o.Ended.UTC()
			d.Outage.Ended = &at
		}
	}
	for _, n := range m.Also {
		d.Also = append(d.Also, earlier{n.At.UTC(), n.Event, n.Title, n.Text})
	}
	return d
}
