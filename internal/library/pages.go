package library

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/search"
)

// pagesRoot is where the pages are.
const pagesRoot = "/incidents"

// webPage is one path with pages.
type webPage struct {
	path   string
	params []string // known query parameters
	show   func(*Library, *http.Request, url.Values) (name string, data any, err error)
}

//go:embed pages.html
var pagesFile string

//go:embed style.css
var styleFile []byte

var pageTemplates = template.Must(template.New("pages").Funcs(template.FuncMap{
	"marked":     marked,
	"arithmetic": Arithmetic,
	"minutes":    func(n *int) string { return Minutes(*n) },
	"moment":     Moment,
	"when": func(r *incident.Record) []string { // each part stays on a line
		return strings.Split(strings.Replace(When(r), " to ", "\nto ", 1), "\n")
	},
	"words":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"first":   firstWords,
	"path":    url.PathEscape,
	"reading": Reading,
}).Parse(pagesFile))

func pages() []webPage {
	return []webPage{
		{pagesRoot, append([]string{"q", "cursor"}, filterParams...), showList},
		{pagesRoot + "/topics", nil, func(l *Library, _ *http.Request, _ url.Values) (string, any, error) { return "topics", l.Words(), nil }},
		{pagesRoot + "/topics/{kind}/{slug}", nil, func(l *Library, r *http.Request, _ url.Values) (string, any, error) {
			s, err := l.Subject(r.PathValue("kind"), r.PathValue("slug"))
			return "topic", s, err
		}},
		{pagesRoot + "/{id}", nil, showIncident},
		{pagesRoot + "/", nil, func(*Library, *http.Request, url.Values) (string, any, error) {
			return "", nil, &lostError{"There is nothing here."}
		}},
	}
}

// style serves the one style sheet.
func (s *server) style() http.Handler {
	return s.serve(asPage, func(*Library, *http.Request) (*answer, error) {
		return &answer{"text/css; charset=utf-8", styleFile}, nil
	})
}

// page serves pages. Fields of the form that were left empty are no filters.
func (s *server) page(p webPage) http.Handler {
	return s.serve(asPage, func(l *Library, r *http.Request) (*answer, error) {
		q, err := queryOf(r, p.params)
		if err != nil {
			return nil, err
		}
		for name, values := range q {
			if len(strings.Join(values, "")) == 0 {
				delete(q, name)
			}
		}
		name, data, err := p.show(l, r, q)
		if err != nil {
			return nil, err
		}
		return rendered(name, data)
	})
}

func rendered(name string, data any) (*answer, error) {
	var b bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("write page %s: %w", name, err)
	}
	return &answer{"text/html; charset=utf-8", b.Bytes()}, nil
}

// asPage is an error's page.
func asPage(status int, p Problem) *answer {
	a, err := rendered("problem", map[string]any{"Status": http.StatusText(status), "Problem": p})
	if err != nil {
		return &answer{"text/plain; charset=utf-8", []byte(p.Message + "\n")}
	}
	return a
}

// listPage is the list, or what a search found.
type listPage struct {
	Query   string
	Chosen  map[string]string
	Kinds   []Kind
	Found   *Findings
	Listing *Listing
	Next    string // query of the next page
	First   string // query of the first page, on others
	Filters bool
}

func showList(l *Library, r *http.Request, q url.Values) (string, any, error) {
	p := &listPage{Query: q.Get("q"), Chosen: map[string]string{}, Kinds: l.Words().Kinds}
	for name := range q {
		p.Chosen[name] = q.Get(name)
		p.Filters = p.Filters || name != "q" && name != "cursor"
	}
	var err error
	next := ""
	if p.Query != "" {
		if p.Found, err = l.Search(r.Context(), search.Query{Text: p.Query, Filter: filterOf(q), Limit: incident.DefaultPage, Cursor: q.Get("cursor")}); err == nil {
			next = p.Found.Next
		}
	} else if p.Listing, err = l.Browse(filterOf(q), q.Get("cursor"), 0); err == nil {
		next = p.Listing.Next
	}
	if err != nil {
		return "", nil, err
	}
	if q.Has("cursor") {
		q.Del("cursor")
		p.First = pagesRoot + "?" + q.Encode()
	}
	if next != "" {
		q.Set("cursor", next)
		p.Next = pagesRoot + "?" + q.Encode()
	}
	return "list", p, nil
}

// incidentPage is a record with its drawing.
type incidentPage struct {
	*Detail
	Drawing *drawing
}

// NoFact is the kind of a claim that is no fact about the incident, for its id.
func (p *incidentPage) NoFact(id string) incident.Kind {
	for _, c := range p.Claims {
		if c.ID == id && (c.Kind == incident.Unconfirmed || c.Kind == incident.Illustrative) {
			return c.Kind
		}
	}
	return ""
}

func showIncident(l *Library, r *http.Request, _ url.Values) (string, any, error) {
	d, err := l.Show(r.PathValue("id"))
	if err != nil {
		return "", nil, err
	}
	return "incident", &incidentPage{d, draw(d.Record)}, nil
}

// marked is a fragment with what matched in it.
func marked(f Fragment) template.HTML {
	var b strings.Builder
	at := 0
	for _, m := range f.Marks {
		b.WriteString(template.HTMLEscapeString(f.Text[at:m[0]]) + "<mark>" + template.HTMLEscapeString(f.Text[m[0]:m[1]]) + "</mark>")
		at = m[1]
	}
	b.WriteString(template.HTMLEscapeString(f.Text[at:]))
	return template.HTML(b.String()) // all of it is escaped above
}

// firstWords is the beginning of a text, in whole words.
func firstWords(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	if end := strings.LastIndexByte(s[:most], ' '); end > 0 {
		return strings.TrimRight(s[:end], " ,;:.") + "\u00a0…"
	}
	return s
}
