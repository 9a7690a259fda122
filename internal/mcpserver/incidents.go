package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/search"
)

func (s *Server) libraryTools() {
	add(s, "search_incidents", "Search incidents", "Find public incidents of AI and cloud services by what somebody sees, in plain words: symptoms, errors, products. Best match first, each with the sentence that matched. Words of the vocabulary narrow it.", false, s.searchIncidents)
	add(s, "list_incidents", "List incidents", "List public incidents, newest first, by words of the vocabulary, provider, dates, a check of the audit, or a drill.", false, s.listIncidents)
	add(s, "get_incident", "Read an incident", "A whole record: what happened, the conditions that made it possible with the checks that look for them, every claim with its kind and source, timeline, lessons, drills that replay it.", false, s.getIncident)
	add(s, "get_topic", "What is under a word", "All that the library has under one word (a cause, symptom, topic, component, domain or condition): its meaning, the incidents, what occurs together with it, conditions and checks.", false, s.getTopic)
	add(s, "vocab", "Look words up", "What a word means, by its slug or another name for it. Without a word: all words, with the number of incidents of each.", false, s.vocab)
	add(s, "list_topics", "List topics", "The words that there are incidents under, by kind, the most frequent first.", false, s.listTopics)
	add(s, "search", "Search (connectors)", "Find incidents for a plain question. Answers with ids for fetch, titles and addresses, in the form that ChatGPT connectors ask for. Other clients have search_incidents, which tells more.", false, s.connectorSearch)
	add(s, "fetch", "Fetch (connectors)", "The text of an incident by an id of search, in the form that ChatGPT connectors ask for. Other clients have get_incident, which tells more.", false, s.connectorFetch)
}

// filterIn are the arguments that select records.
type filterIn struct {
	Provider   string   `json:"provider,omitempty" jsonschema:"part of the provider's or service's name"`
	Since      string   `json:"since,omitempty" jsonschema:"began on this date or later: 2026, 2026-05 or 2026-05-29"`
	Until      string   `json:"until,omitempty" jsonschema:"began on this date or before"`
	Causes     []string `json:"causes,omitempty" jsonschema:"with one of these causes; words of vocab"`
	Symptoms   []string `json:"symptoms,omitempty" jsonschema:"with one of these symptoms; words of vocab"`
	Topics     []string `json:"topics,omitempty" jsonschema:"with one of these topics; words of vocab"`
	Components []string `json:"components,omitempty" jsonschema:"with one of these components; words of vocab"`
	Domains    []string `json:"domains,omitempty" jsonschema:"of one of these domains; words of vocab"`
	Conditions []string `json:"conditions,omitempty" jsonschema:"with one of these conditions; words of vocab"`
	Check      string   `json:"check,omitempty" jsonschema:"with a condition that this check of the audit looks for, such as RTY-006"`
	Drill      string   `json:"drill,omitempty" jsonschema:"that this drill replays"`
}

func (f filterIn) filter() incident.Filter {
	return incident.Filter{
		Words: map[incident.Facet][]string{
			incident.Cause: f.Causes, incident.Symptom: f.Symptoms, incident.Topic: f.Topics,
			incident.Component: f.Components, incident.Domain: f.Domains, incident.Needs: f.Conditions,
		},
		Provider: f.Provider, Since: f.Since, Until: f.Until, Check: strings.ToUpper(f.Check), Drill: f.Drill,
	}
}

type searchIn struct {
	Query string `json:"query" jsonschema:"what is seen, in plain words; a part in double quotes has to occur as it stands"`
	filterIn
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many, default 10"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

type listIn struct {
	filterIn
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many, default 20"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// item is a record in a list.
type item struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Provider string   `json:"provider"`
	Service  string   `json:"service"`
	Date     string   `json:"date,omitempty"`
	Domain   string   `json:"domain"`
	Causes   []string `json:"causes"`
	Symptoms []string `json:"symptoms"`
	Summary  string   `json:"summary"`
	Resolved *int     `json:"minutes_to_resolve,omitempty"`
	Evidence int      `json:"evidence" jsonschema:"how well the record is evidenced, 0 to 100"`
	Drills   []string `json:"drills"`
	Matched  *match   `json:"matched,omitempty"`
}

// match is where a search found something.
type match struct {
	Fields []string `json:"fields"`
	In     string   `json:"in" jsonschema:"the field that text is of"`
	Kind   string   `json:"kind,omitempty" jsonschema:"of the claim that text is of: say it when you repeat the text"`
	Text   string   `json:"text"`
}

type items struct {
	Summary   string `json:"summary"`
	Total     int    `json:"total" jsonschema:"on all pages"`
	Incidents []item `json:"incidents"`
	Next      string `json:"next_cursor,omitempty" jsonschema:"call again with this cursor for the next page"`
}

func itemOf(b library.Brief, most int) item {
	return item{
		ID: b.ID, Title: plain(b.Title, shortText), Provider: plain(b.Provider, shortText), Service: plain(b.Service, shortText), Date: b.Date,
		Domain: b.Domain, Causes: plains(b.Tags.Causes, maxWords, maxWord), Symptoms: plains(b.Tags.Symptoms, maxWords, maxWord),
		Summary: plain(b.Summary, most), Resolved: b.TimeToResolve, Evidence: b.Evidence, Drills: plains(b.Drills, maxWords, maxWord),
	}
}

// fitting is how many of a list of items the budget holds, one at least.
func fitting(list []item) int {
	left := budget - 1500 // of all around the list
	for i, it := range list {
		if left -= len(encoded(it)) + 1; left < 0 {
			return max(i, 1)
		}
	}
	return len(list)
}

func (s *Server) searchIncidents(ctx context.Context, in searchIn) (*items, error) {
	q := search.Query{Text: in.Query, Filter: in.filter(), Limit: in.Limit, Cursor: in.Cursor}
	for {
		res, err := s.library.Search(ctx, q)
		if err != nil {
			return nil, told(err)
		}
		out := &items{Total: res.Total, Next: res.Next, Incidents: mapped(res.Incidents, func(f library.Finding) item {
			it := itemOf(f.Brief, someText)
			it.Matched = &match{plains(f.Matched, 5, maxWord), f.Fragment.Field, string(f.Fragment.Kind), plain(f.Fragment.Text, someText)}
			return it
		})}
		if n := fitting(out.Incidents); n < len(out.Incidents) {
			q.Limit = n
			continue
		}
		out.Summary = fmt.Sprintf("%s for %q.", counted(res.Total, "incident"), plain(in.Query, shortText))
		if res.Total == 0 {
			out.Summary += " Use other words, or fewer filters; vocab lists the words that are known."
		} else if len(out.Incidents) > 0 {
			out.Summary += fmt.Sprintf(" The best match on this page is %s: %s.", out.Incidents[0].ID, strings.TrimSuffix(out.Incidents[0].Title, "."))
		}
		return out, nil
	}
}

func (s *Server) listIncidents(_ context.Context, in listIn) (*items, error) {
	limit := in.Limit
	for {
		res, err := s.library.Browse(in.filter(), in.Cursor, limit)
		if err != nil {
			return nil, told(err)
		}
		out := &items{Total: res.Total, Next: res.Next, Incidents: mapped(res.Incidents, func(b library.Brief) item { return itemOf(b, shortText) })}
		if n := fitting(out.Incidents); n < len(out.Incidents) {
			limit = n
			continue
		}
		out.Summary = fmt.Sprintf("%s, newest first; %d on this page. get_incident reads one.", counted(res.Total, "incident"), len(out.Incidents))
		return out, nil
	}
}
