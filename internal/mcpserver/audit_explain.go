package mcpserver

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/hourthree/hourthree/internal/audit"
)

type explainIn struct {
	ID string `json:"id" jsonschema:"key of a finding, or id of a check such as RTY-006"`
}

type explanation struct {
	Summary   string    `json:"summary"`
	Check     check     `json:"check"`
	Finding   *finding  `json:"finding,omitempty" jsonschema:"what was found, when a key was given"`
	RunID     string    `json:"run_id,omitempty"`
	Sources   []link    `json:"sources"`
	Incidents []related `json:"incidents" jsonschema:"that had it, the best evidenced first; get_incident reads one"`
	Drill     string    `json:"drill,omitempty" jsonschema:"command that shows it happen"`
	Waive     string    `json:"waive" jsonschema:"how to live with it for a time"`
	rest
}

type check struct {
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Severity   string   `json:"severity"`
	Confidence string   `json:"confidence"`
	Kinds      []string `json:"kinds"`
	When       string   `json:"when"`
	Why        string   `json:"why"`
	Fix        string   `json:"fix"`
	Patch      string   `json:"patch,omitempty" jsonschema:"the smallest change, as YAML"`
	Caution    string   `json:"caution,omitempty" jsonschema:"where it may be wrong"`
	Causes     []string `json:"causes"`
}

type link struct {
	Title string `json:"title"`
	URL   string `json:"url,omitempty"`
}

// keyed is what the key of a finding looks like, or its beginning.
var keyed = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

func (s *Server) auditExplain(_ context.Context, in explainIn) (*explanation, error) {
	id := strings.TrimSpace(in.ID)
	out := &explanation{}
	c, ok := audit.Find(id)
	switch {
	case ok:
	case keyed.MatchString(strings.ToLower(id)):
		k, f, err := s.auditor.finding(strings.ToLower(id))
		if err != nil {
			return nil, err
		}
		shown := k.finding(f)
		out.Finding, out.RunID, c = &shown, k.id, f.Check
	default:
		_, err := audit.Select([]string{id})
		if err == nil {
			return nil, refuse("%s is a group of checks; name one of its checks, such as %s-001", strings.ToUpper(id), strings.ToUpper(id))
		}
		return nil, refuse("%s; a check is named like RTY-006, a finding by its key", plain(err.Error(), someText))
	}
	out.Check = check{
		c.ID, c.Title, c.Severity.String(), c.Confidence, plains(c.Kinds, maxWords, maxWord), plain(c.Condition, longText), plain(c.Why, longText),
		plain(c.Fix, longText), cut(c.Patch, 2*longText), plain(c.Caution, longText), plains(c.Causes, maxWords, maxWord),
	}
	out.Summary = fmt.Sprintf("%s (%s): %s.", c.ID, c.Severity, strings.TrimSuffix(c.Title, "."))
	if out.Finding != nil {
		out.Summary += fmt.Sprintf(" Found at %s.", out.Finding.Place)
	}
	if c.Drill != "" {
		out.Drill = "hourthree drill run " + c.Drill
	}
	out.Waive = `annotation of the object: hourthree.dev/waive.` + c.ID + `: "REASON; until=YYYY-MM-DD"`
	sections := []section{part("sources", sourcesOf(c), &out.Sources), part("incidents", s.citing(c), &out.Incidents)}
	out.rest = fill(c.ID, room(out), place{}, sections)
	out.Next = "" // list_incidents with the check gives the others
	return out, nil
}

func sourcesOf(c *audit.Check) []link {
	return mapped(c.Sources, func(key string) link {
		source, ok := audit.SourceOf(key)
		if !ok {
			source.Title = key
		}
		return link{plain(source.Title, someText), plain(source.URL, longText)}
	})
}

// mostCiting is how many incidents a check names.
const mostCiting = 8

func (s *Server) citing(c *audit.Check) []related {
	var list []related
	for _, r := range s.library.Citing(c.ID, c.Drill) {
		if len(list) < mostCiting {
			list = append(list, related{r.ID, plain(r.Title, shortText), r.Date})
		}
	}
	return list
}
