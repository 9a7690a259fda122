package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hourthree/hourthree/internal/audit"
)

const (
	incidentScheme = "incident://"
	checkScheme    = "check://"
	markdown       = "text/markdown"
)

func incidentURI(id string) string { return incidentScheme + id }

// resources are the incidents and the checks, as texts.
func (s *Server) resources() {
	for _, r := range s.library.All() {
		s.mcp.AddResource(&mcp.Resource{URI: incidentURI(r.ID), Name: r.ID, Title: plain(r.Title, shortText), MIMEType: markdown}, s.readIncident)
	}
	for _, c := range audit.Catalogue() {
		s.mcp.AddResource(&mcp.Resource{URI: checkScheme + c.ID, Name: c.ID, Title: c.Title, MIMEType: markdown}, s.readCheck)
	}
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: incidentScheme + "{id}", Name: "incident", Title: "An incident of the library", MIMEType: markdown,
	}, s.readIncident)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: checkScheme + "{id}", Name: "check", Title: "A check of the audit", MIMEType: markdown,
	}, s.readCheck)
}

func (s *Server) readIncident(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	d, err := s.library.Show(strings.TrimPrefix(req.Params.URI, incidentScheme))
	if err != nil {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	return text(req.Params.URI, document(d)), nil
}

func (s *Server) readCheck(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	c, ok := audit.Find(strings.TrimPrefix(req.Params.URI, checkScheme))
	if !ok {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	return text(req.Params.URI, s.checkText(c)), nil
}

func text(uri, body string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: markdown, Text: body}}}
}

// checkText is a check as Markdown.
func (s *Server) checkText(c *audit.Check) string {
	b := &draft{left: maxDocument}
	b.line("# " + c.ID + " " + c.Title)
	b.line("Severity " + c.Severity.String() + ", confidence " + c.Confidence + ".")
	for _, p := range []struct{ head, text string }{
		{"When", c.Condition}, {"Why", c.Why}, {"Fix", c.Fix}, {"Take care", c.Caution},
	} {
		if p.text != "" {
			b.line("")
			b.line(p.head + ": " + plain(p.text, longText))
		}
	}
	if c.Patch != "" {
		b.line("")
		b.line("```yaml")
		b.line(strings.TrimRight(c.Patch, "\n"))
		b.line("```")
	}
	b.list("Sources", mapped(sourcesOf(c), func(l link) string { return strings.TrimSpace(l.Title + " " + l.URL) }))
	b.list("Incidents that had it, the best evidenced first", mapped(s.citing(c), func(r related) string {
		return r.ID + " " + r.Title + ", " + dated(r.Date)
	}))
	if c.Drill != "" {
		b.list("See it happen", []string{"hourthree drill run " + c.Drill})
	}
	return b.text()
}
