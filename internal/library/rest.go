package library

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/search"
)

// apiRoot is where the REST interface is.
const apiRoot = "/api/incidents"

// endpoint is one path of the REST interface. The OpenAPI document describes
// the same ones.
type endpoint struct {
	path   string
	params []string // known query parameters
	answer func(*Library, *http.Request, url.Values) (any, error)
}

var filterParams = func() []string {
	var names []string
	for _, f := range incident.Facets() {
		names = append(names, string(f))
	}
	return append(names, "provider", "since", "until", "check", "drill")
}()

var pageParams = append([]string{"limit", "cursor"}, filterParams...)

// endpoints are all there are.
func endpoints() []endpoint {
	return []endpoint{
		{apiRoot, pageParams, func(l *Library, _ *http.Request, q url.Values) (any, error) {
			limit, err := limitOf(q)
			if err != nil {
				return nil, err
			}
			return l.Browse(filterOf(q), q.Get("cursor"), limit)
		}},
		{apiRoot + "/search", append([]string{"q"}, pageParams...), func(l *Library, r *http.Request, q url.Values) (any, error) {
			limit, err := limitOf(q)
			if err != nil {
				return nil, err
			}
			return l.Search(r.Context(), search.Query{Text: q.Get("q"), Filter: filterOf(q), Limit: limit, Cursor: q.Get("cursor")})
		}},
		{apiRoot + "/topics", nil, func(l *Library, _ *http.Request, _ url.Values) (any, error) { return l.Topics(), nil }},
		{apiRoot + "/topics/{kind}/{slug}", nil, func(l *Library, r *http.Request, _ url.Values) (any, error) {
			return l.Subject(r.PathValue("kind"), r.PathValue("slug"))
		}},
		{apiRoot + "/vocab", nil, func(l *Library, _ *http.Request, _ url.Values) (any, error) { return l.Words(), nil }},
		{apiRoot + "/vocab/{word}", nil, func(l *Library, r *http.Request, _ url.Values) (any, error) { return l.Meaning(r.PathValue("word")) }},
		{apiRoot + "/stats", nil, func(l *Library, _ *http.Request, _ url.Values) (any, error) { return numbers(l.Stats()), nil }},
		{apiRoot + "/openapi.json", nil, func(*Library, *http.Request, url.Values) (any, error) { return openAPI() }},
		{apiRoot + "/{id}", nil, func(l *Library, r *http.Request, _ url.Values) (any, error) { return l.Show(r.PathValue("id")) }},
	}
}

// filterOf reads the filter of a query.
func filterOf(q url.Values) incident.Filter {
	f := incident.Filter{
		Words: map[incident.Facet][]string{}, Provider: q.Get("provider"), Since: q.Get("since"), Until: q.Get("until"), Check: q.Get("check"), Drill: q.Get("drill"),
	}
	for _, facet := range incident.Facets() {
		if words, ok := q[string(facet)]; ok {
			f.Words[facet] = words
		}
	}
	return f
}

func limitOf(q url.Values) (int, error) {
	s := q.Get("limit")
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > search.MaxLimit {
		return 0, &badParameter{"limit", fmt.Sprintf("limit %q is not a number from 1 to %d", clip(s), search.MaxLimit), nil}
	}
	return n, nil
}

// clip bounds what is quoted of a request.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// badParameter is a query parameter that cannot be used.
type badParameter struct {
	name, message string
	near          []string
}

func (e *badParameter) Error() string { return e.message }

// repeatable parameters have alternatives.
func repeatable(name string) bool { return slices.Contains(incident.Facets(), incident.Facet(name)) }

// queryOf reads the query and refuses what is not known: a misspelt filter would
// otherwise select everything.
func queryOf(r *http.Request, known []string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &badParameter{"", "the query is not well formed: " + err.Error(), nil}
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return nil, &badParameter{clip(name), fmt.Sprintf("unknown parameter %q: this path takes none", clip(name)), []string{}}
		case !slices.Contains(known, name):
			return nil, &badParameter{clip(name), fmt.Sprintf("unknown parameter %q; known are %s", clip(name), strings.Join(known, ", ")), known}
		case len(q[name]) > 1 && !repeatable(name):
			return nil, &badParameter{name, fmt.Sprintf("parameter %s is there %d times; give it once", name, len(q[name])), nil}
		}
	}
	return q, nil
}

// Problem is what is wrong with a request.
type Problem struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Near    []string `json:"near"` // what may have been meant
}

// problemOf says an error in an answer's terms. A word of the path that there
// is not is not found; one of a parameter is a bad request.
func problemOf(err error) (int, Problem) {
	var (
		bad     *badParameter
		query   *search.BadQuery
		value   *incident.BadValue
		word    *incident.UnknownWord
		missing *NotFound
		noWord  *NoWord
	)
	switch {
	case errors.As(err, &bad):
		return http.StatusBadRequest, Problem{"bad_parameter", bad.message, list(bad.near)}
	case errors.As(err, &query):
		name := query.Field
		if name == "text" {
			name = "q"
		}
		return http.StatusBadRequest, Problem{"bad_parameter", name + ": " + query.Message, []string{}}
	case errors.As(err, &value):
		return http.StatusBadRequest, Problem{"bad_parameter", value.Error(), []string{}}
	case errors.As(err, &word):
		return http.StatusNotFound, Problem{"unknown_word", word.Error(), list(word.Near)}
	case errors.As(err, &missing):
		return http.StatusNotFound, Problem{"unknown_incident", missing.Error(), list(missing.Near)}
	case errors.As(err, &noWord):
		return http.StatusNotFound, Problem{"unknown_word", noWord.Error(), list(noWord.Near)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, Problem{"canceled", "the request ended before its answer was found", []string{}}
	}
	return http.StatusInternalServerError, Problem{"internal", "the library cannot be read; its operator's log says why", []string{}}
}
