package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
)

// shownKey is how much of a finding's key is shown: enough to tell findings of
// any run apart.
const shownKey = 16

// finding is a finding as a model reads it.
type finding struct {
	Key       string         `json:"key" jsonschema:"for audit_explain"`
	Check     string         `json:"check"`
	Severity  string         `json:"severity"`
	Title     string         `json:"title"`
	State     string         `json:"state"`
	Object    string         `json:"object" jsonschema:"kind and name; data that somebody else wrote"`
	Container string         `json:"container,omitempty"`
	Place     string         `json:"place"`
	Path      string         `json:"path,omitempty"`
	Observed  string         `json:"observed" jsonschema:"data that somebody else wrote"`
	Expected  string         `json:"expected"`
	Related   []relatedPlace `json:"related"`
	Incidents []string       `json:"incidents" jsonschema:"ids for get_incident"`
	Waived    string         `json:"waived,omitempty" jsonschema:"why and until when"`
}

type relatedPlace struct {
	Object string `json:"object"`
	Place  string `json:"place"`
	Path   string `json:"path,omitempty"`
	Note   string `json:"note"`
}

func (k *kept) finding(f *audit.Finding) finding {
	out := finding{
		Key: f.Key[:min(len(f.Key), shownKey)], Check: f.ID, Severity: f.Severity.String(), Title: plain(f.Title, shortText), State: string(f.State),
		Object: plain(f.Object.String(), someText), Container: plain(f.Container, shortText), Place: k.where(f.Place.File, f.Place.Line),
		Path: plain(f.Path, someText), Observed: plain(f.Observed, someText), Expected: plain(f.Expected, someText),
		Related: []relatedPlace{}, Incidents: plains(f.Incidents, maxWords, maxWord),
	}
	for _, r := range f.Related[:min(len(f.Related), 5)] {
		out.Related = append(out.Related, relatedPlace{
			plain(r.Object.String(), shortText), k.where(r.Place.File, r.Place.Line), plain(r.Path, shortText), plain(r.Note, shortText),
		})
	}
	if f.Waiver != nil {
		out.Waived = plain(f.Waiver.Reason, shortText) + "; until " + plain(f.Waiver.Until, maxWord)
	}
	return out
}

type findingsIn struct {
	RunID     string `json:"run_id,omitempty" jsonschema:"of audit_run or audit_manifests; none for the last run"`
	Severity  string `json:"min_severity,omitempty" jsonschema:"from this severity on"`
	Check     string `json:"check,omitempty" jsonschema:"of this check or group, such as RTY-006 or RTY"`
	Namespace string `json:"namespace,omitempty" jsonschema:"of objects in this namespace"`
	Kind      string `json:"kind,omitempty" jsonschema:"of objects of this kind, such as Deployment"`
	Name      string `json:"name,omitempty" jsonschema:"of objects with this in their name"`
	State     string `json:"state,omitempty" jsonschema:"none for both"`
	Limit     int    `json:"limit,omitempty" jsonschema:"at most so many, default 10"`
	Cursor    string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

func (in findingsIn) selects(f *audit.Finding) bool {
	check := strings.ToUpper(in.Check)
	switch {
	case f.Severity < severity(in.Severity),
		check != "" && f.ID != check && !strings.HasPrefix(f.ID, check+"-"),
		in.Namespace != "" && f.Object.Namespace != in.Namespace,
		in.Kind != "" && !strings.EqualFold(f.Object.Kind, in.Kind),
		!strings.Contains(strings.ToLower(f.Object.Name), strings.ToLower(in.Name)),
		in.State != "" && string(f.State) != in.State:
		return false
	}
	return true
}

type findings struct {
	Summary  string    `json:"summary"`
	RunID    string    `json:"run_id"`
	Total    int       `json:"total" jsonschema:"on all pages"`
	Findings []finding `json:"findings"`
	rest
}

func (s *Server) auditFindings(_ context.Context, in findingsIn) (*findings, error) {
	k, err := s.auditor.run(in.RunID)
	if err != nil {
		return nil, err
	}
	if in.Check != "" {
		if _, err := audit.Select([]string{in.Check}); err != nil {
			return nil, refuse("%s", plain(err.Error(), someText))
		}
	}
	limit := in.Limit
	if limit == 0 {
		limit = top
	}
	q := in
	q.Limit, q.Cursor, q.RunID = 0, "", k.id
	subject := string(encoded(q))
	at, err := placeAt(subject, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &findings{RunID: k.id}
	var list []*audit.Finding
	for i := range k.report.Findings {
		if f := &k.report.Findings[i]; in.selects(f) {
			list = append(list, f)
		}
	}
	out.Total = len(list)
	from := min(at.item, len(list))
	to := min(from+limit, len(list))
	out.Summary = fmt.Sprintf("%s of %s; this page begins with number %d.", counted(len(list), "finding"), k.id, from+1)
	if len(list) == 0 {
		out.Summary = "No finding of " + k.id + " is so. What was not evaluated is not a pass: see audit_run."
	}
	sections := []section{part("findings", mapped(list[from:to], k.finding), &out.Findings)}
	fill(subject, room(out), place{}, sections)
	if end := from + len(out.Findings); end < len(list) {
		out.Next = cursorOf(subject, place{0, end})
		out.Omitted = map[string]int{"findings": len(list) - end}
	}
	return out, nil
}
