package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
)

type getIn struct {
	ID     string `json:"id" jsonschema:"id of an incident, such as HT-0001"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// record is an incident as a model reads it.
type record struct {
	Summary    string      `json:"summary"`
	ID         string      `json:"id"`
	Title      string      `json:"title"`
	Head       *head       `json:"head,omitempty" jsonschema:"on the first page only"`
	Conditions []condition `json:"conditions" jsonschema:"what in a stack made it possible, and the checks of the audit that look for it"`
	Sources    []source    `json:"sources"`
	Claims     []claim     `json:"claims" jsonschema:"the best carried first; source and second are ids of sources"`
	Timeline   []moment    `json:"timeline" jsonschema:"times are UTC"`
	Remedies   []string    `json:"remediation"`
	Lessons    []string    `json:"lessons"`
	Figures    []figure    `json:"figures"`
	Replays    []replay    `json:"replays" jsonschema:"drills that play it, and the command"`
	Related    []related   `json:"related"`
	rest
}

type head struct {
	Provider   string   `json:"provider"`
	Service    string   `json:"service"`
	Date       string   `json:"date,omitempty"`
	Start      string   `json:"start,omitempty"`
	End        string   `json:"end,omitempty"`
	Regions    []string `json:"regions"`
	Domain     string   `json:"domain"`
	Causes     []string `json:"causes"`
	Symptoms   []string `json:"symptoms"`
	Topics     []string `json:"topics"`
	Components []string `json:"components"`
	What       string   `json:"what_happened"`
	Trigger    string   `json:"trigger,omitempty"`
	RootCause  string   `json:"root_cause,omitempty"`
	Detection  string   `json:"detection,omitempty"`
	Detect     *int     `json:"minutes_to_detect,omitempty"`
	Acked      *int     `json:"minutes_to_acknowledge,omitempty"`
	Resolve    *int     `json:"minutes_to_resolve,omitempty"`
	Basis      string   `json:"time_basis,omitempty"`
	Evidence   evidence `json:"evidence"`
}

type evidence struct {
	Score int            `json:"score" jsonschema:"0 to 100"`
	Kinds map[string]int `json:"claims_by_kind"`
	How   string         `json:"how"`
}

type condition struct {
	Slug   string   `json:"slug"`
	Title  string   `json:"title"`
	Here   string   `json:"here" jsonschema:"as it was in this incident"`
	Fails  string   `json:"fails" jsonschema:"when a stack has it"`
	Checks []string `json:"checks"`
}

type source struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	URL       string `json:"url,omitempty"`
	Publisher string `json:"publisher"`
	Date      string `json:"date,omitempty"`
	Access    string `json:"access" jsonschema:"how it was read"`
	Official  bool   `json:"official" jsonschema:"the publisher ran the service that failed"`
}

type claim struct {
	ID     string `json:"id"`
	Kind   string `json:"kind" jsonschema:"confirmed, reported, derived, unconfirmed or illustrative"`
	Text   string `json:"text"`
	Source string `json:"source"`
	Second string `json:"second,omitempty"`
	Basis  string `json:"basis,omitempty"`
}

type moment struct {
	At   string `json:"at"`
	What string `json:"what"`
}

type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Claim string  `json:"claim"`
}

type replay struct {
	Drill   string `json:"drill"`
	Command string `json:"command"`
}

type related struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Date  string `json:"date,omitempty"`
}

func (s *Server) getIncident(_ context.Context, in getIn) (*record, error) {
	d, err := s.library.Show(in.ID)
	if err != nil {
		return nil, told(err)
	}
	at, err := placeAt(d.ID, in.Cursor)
	if err != nil {
		return nil, err
	}
	r := &record{ID: d.ID, Title: plain(d.Title, shortText)}
	if in.Cursor == "" {
		r.Head = headOf(d)
	}
	r.Summary = fmt.Sprintf("%s, %s: %s Evidence %d of 100: say a claim's kind and source when you repeat it.", d.ID, dated(d.Date), sentence(d.Title), d.Evidence.Score)
	sections := r.sections(d)
	r.rest = fill(d.ID, room(r), at, sections)
	if r.Next != "" {
		r.Summary += " There is more: see omitted and next_cursor."
	}
	return r, nil
}

// sections are the lists of a record, what a model needs first first.
func (r *record) sections(d *library.Detail) []section {
	return []section{
		part("conditions", mapped(d.Conditions, func(c library.Exposure) condition {
			return condition{c.Slug, plain(c.Title, shortText), plain(c.Text, longText), plain(c.Fails, someText), plains(c.Checks, maxWords, maxWord)}
		}), &r.Conditions),
		part("sources", mapped(d.Sources, func(s incident.Source) source {
			return source{s.ID, plain(s.Title, someText), plain(s.URL, longText), plain(s.Publisher, shortText), s.Date, s.Access, s.Official}
		}), &r.Sources),
		part("claims", mapped(d.Ledger, func(c incident.Ranked) claim {
			return claim{c.Claim.ID, string(c.Claim.Kind), plain(c.Claim.Text, longText), c.Claim.Source, c.Claim.Second, plain(c.Claim.Basis, longText)}
		}), &r.Claims),
		part("timeline", mapped(d.Timeline, func(m incident.Moment) moment { return moment{m.At, plain(m.What, longText)} }), &r.Timeline),
		part("remediation", plains(d.Remediation, len(d.Remediation), longText), &r.Remedies),
		part("lessons", plains(d.Lessons, len(d.Lessons), longText), &r.Lessons),
		part("figures", mapped(d.Figures, func(f incident.Figure) figure {
			return figure{plain(f.Name, shortText), f.Value, plain(f.Unit, shortText), f.Claim}
		}), &r.Figures),
		part("replays", mapped(d.Replays, func(x library.Replay) replay { return replay{x.Drill, x.Command} }), &r.Replays),
		part("related", mapped(d.Relations, func(x library.Relation) related { return related{x.ID, plain(x.Title, shortText), x.Date} }), &r.Related),
	}
}

func headOf(d *library.Detail) *head {
	kinds := map[string]int{}
	for k, n := range d.Evidence.Kinds {
		kinds[string(k)] = n
	}
	return &head{
		Provider: plain(d.Provider, shortText), Service: plain(d.Service, shortText), Date: d.Date, Start: d.Start, End: d.End,
		Regions: plains(d.Regions, maxWords, shortText), Domain: d.Domain,
		Causes: plains(d.Tags.Causes, maxWords, maxWord), Symptoms: plains(d.Tags.Symptoms, maxWords, maxWord),
		Topics: plains(d.Tags.Topics, maxWords, maxWord), Components: plains(d.Tags.Components, maxWords, maxWord),
		What: plain(d.Summary, longText), Trigger: plain(d.Trigger, longText), RootCause: plain(d.RootCause, longText), Detection: plain(d.Detection, longText),
		Detect: d.TimeToDetect, Acked: d.TimeToAcknowledge, Resolve: d.TimeToResolve, Basis: plain(d.TimeBasis, someText),
		Evidence: evidence{d.Evidence.Score, kinds, library.Arithmetic(d.Evidence)},
	}
}

func dated(date string) string {
	if date == "" {
		return "undated"
	}
	return date
}

// sentence is a title with its full stop.
func sentence(s string) string { return strings.TrimSuffix(plain(s, shortText), ".") + "." }
