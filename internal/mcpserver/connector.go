package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/search"
)

// The form of search and fetch is the one that ChatGPT's connectors ask for: no
// field more, none less.

type querIn struct {
	Query string `json:"query" jsonschema:"a plain question"`
}

type hits struct {
	Results []hit `json:"results"`
}

type hit struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

func (s *Server) connectorSearch(ctx context.Context, in querIn) (*hits, error) {
	res, err := s.library.Search(ctx, search.Query{Text: in.Query, Limit: maxLimit})
	if err != nil {
		return nil, told(err)
	}
	out := &hits{Results: []hit{}}
	for _, f := range res.Incidents {
		r, ok := s.library.Get(f.ID)
		if ok {
			out.Results = append(out.Results, hit{r.ID, plain(r.Title, shortText), address(r)})
		}
	}
	return out, nil
}

// address is where a record's best source can be read; the record's own name
// where there is none.
func address(r *incident.Record) string {
	best := ""
	for _, s := range r.Sources {
		if s.URL != "" && (best == "" || s.Official && !strings.HasPrefix(best, "!")) {
			best = s.URL
			if s.Official {
				best = "!" + s.URL
			}
		}
	}
	if best == "" || len(best) > longText {
		return incidentURI(r.ID)
	}
	return strings.TrimPrefix(best, "!")
}

type fetchIn struct {
	ID string `json:"id" jsonschema:"an id of search"`
}

type fetched struct {
	ID       string            `json:"id"`
	Title    string            `json:"title"`
	Text     string            `json:"text"`
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata"`
}

func (s *Server) connectorFetch(_ context.Context, in fetchIn) (*fetched, error) {
	d, err := s.library.Show(in.ID)
	if err != nil {
		return nil, told(err)
	}
	return &fetched{
		ID: d.ID, Title: plain(d.Title, shortText), Text: document(d), URL: address(d.Record),
		Metadata: map[string]string{
			"provider": plain(d.Provider, shortText), "service": plain(d.Service, shortText), "date": dated(d.Date), "domain": d.Domain,
			"evidence": fmt.Sprintf("%d of 100", d.Evidence.Score),
		},
	}, nil
}

// maxDocument bounds a record as a text, in bytes as JSON writes them.
const maxDocument = budget - 3000

// document is a record as Markdown, cut at its end where it is long.
func document(d *library.Detail) string {
	b := &draft{left: maxDocument}
	b.line("# " + plain(d.Title, shortText))
	b.line(fmt.Sprintf("%s, %s, %s, %s. Evidence %d of 100.", d.ID, dated(d.Date), plain(d.Provider, shortText), plain(d.Service, shortText), d.Evidence.Score))
	b.line("")
	b.line(plain(d.Summary, longText))
	for _, p := range []struct{ head, text string }{{"Trigger", d.Trigger}, {"Root cause", d.RootCause}, {"Detection", d.Detection}} {
		if p.text != "" {
			b.line("")
			b.line(p.head + ": " + plain(p.text, longText))
		}
	}
	b.list("Conditions that made it possible", mapped(d.Conditions, func(c library.Exposure) string {
		text := plain(c.Text, longText)
		if len(c.Checks) > 0 {
			text += " (checks " + strings.Join(c.Checks, ", ") + ")"
		}
		return text
	}))
	b.list("Claims, the best carried first", mapped(d.Ledger, claimLine))
	b.list("Sources", mapped(d.Sources, func(s incident.Source) string {
		text := s.ID + ": " + plain(s.Title, someText) + ", " + plain(s.Publisher, shortText) + ", " + library.Reading(s.Access)
		if s.Official {
			text += ", the operator's own"
		}
		return strings.TrimSpace(text + " " + plain(s.URL, longText))
	}))
	b.list("Timeline, UTC", mapped(d.Timeline, func(m incident.Moment) string { return m.At + " " + plain(m.What, longText) }))
	b.list("Remediation", plains(d.Remediation, len(d.Remediation), longText))
	b.list("Lessons", plains(d.Lessons, len(d.Lessons), longText))
	b.list("Replay", mapped(d.Replays, func(r library.Replay) string { return r.Command }))
	return b.text()
}

func claimLine(c incident.Ranked) string {
	text := fmt.Sprintf("[%s, %s", c.Claim.Kind, c.Claim.Source)
	if c.Claim.Second != "" {
		text += " and " + c.Claim.Second
	}
	text += "] " + plain(c.Claim.Text, longText)
	if c.Claim.Basis != "" {
		text += " (" + plain(c.Claim.Basis, longText) + ")"
	}
	return text
}

// draft is a text that stops where it becomes too long, and says so.
type draft struct {
	strings.Builder
	left    int
	omitted int
}

func (b *draft) line(text string) {
	n := len(encoded(text + "\n"))
	if b.omitted > 0 || n > b.left {
		b.omitted++
		return
	}
	b.left -= n
	b.WriteString(text + "\n")
}

func (b *draft) list(head string, entries []string) {
	if len(entries) == 0 {
		return
	}
	b.line("")
	b.line("## " + head)
	for _, e := range entries {
		b.line("- " + e)
	}
}

func (b *draft) text() string {
	if b.omitted > 0 {
		fmt.Fprintf(b, "\n%d lines are left out: get_incident gives them page by page.\n", b.omitted)
	}
	return b.String()
}
