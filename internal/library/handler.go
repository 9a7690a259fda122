package library

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hourthree/hourthree/internal/incident"
)

// Options are how the library is served.
type Options struct {
	// Origins may read the REST interface from a browser, such as
	// https://runbook.example; none by default.
	Origins []string
	// Failed is told why the library cannot be read. It may be nil.
	Failed func(error)
}

// Handler serves a library: REST below /api/incidents, pages below /incidents.
// It opens the library at the first request.
func Handler(open func() (*Library, error), o Options) http.Handler {
	s := &server{open: sync.OnceValues(open), o: o}
	mux := http.NewServeMux()
	for _, e := range endpoints() {
		mux.Handle(e.path, s.rest(e))
	}
	lost := func(*Library, *http.Request) (*answer, error) {
		return nil, &lostError{"there is nothing here; " + apiRoot + "/openapi.json lists the paths"}
	}
	mux.Handle(apiRoot+"/", s.serve(asJSON, lost))
	mux.Handle(pagesRoot+"/style.css", s.style())
	mux.Handle("/{$}", http.RedirectHandler(pagesRoot, http.StatusFound)) // where this is all there is
	for _, p := range pages() {
		mux.Handle(p.path, s.page(p))
	}
	return mux
}

// Embedded are the records that come with the program.
func Embedded() (*Library, error) {
	l, err := incident.Open()
	if err != nil {
		return nil, err
	}
	return New(l)
}

// server is what the handlers share; immutable.
type server struct {
	open func() (*Library, error)
	o    Options
}

// answer is a representation, whole: it is hashed before it is sent.
type answer struct {
	mediaType string
	body      []byte
}

type lostError struct{ message string }

func (e *lostError) Error() string { return e.message }

// rest serves an endpoint.
func (s *server) rest(e endpoint) http.Handler {
	return s.serve(asJSON, func(l *Library, r *http.Request) (*answer, error) {
		q, err := queryOf(r, e.params)
		if err != nil {
			return nil, err
		}
		v, err := e.answer(l, r, q)
		if err != nil {
			return nil, err
		}
		return jsonAnswer(v)
	})
}

func jsonAnswer(v any) (*answer, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return &answer{"application/json", b.Bytes()}, nil
}

// asJSON is an error's answer.
func asJSON(_ int, p Problem) *answer {
	a, _ := jsonAnswer(p) // three fields that JSON can say
	return a
}

// serve answers reading requests with what make finds, and with what say makes
// of an error.
func (s *server) serve(say func(int, Problem) *answer, find func(*Library, *http.Request) (*answer, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.headers(w.Header(), r)
		allow := "GET, HEAD"
		if len(s.o.Origins) > 0 {
			allow += ", OPTIONS"
		}
		switch {
		case r.Method == http.MethodOptions && len(s.o.Origins) > 0:
			w.Header().Set("Allow", allow)
			w.WriteHeader(http.StatusNoContent)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", allow)
			send(w, r, http.StatusMethodNotAllowed, say(http.StatusMethodNotAllowed, Problem{"method_not_allowed", "the library is only read: use GET or HEAD", []string{}}))
			return
		}
		a, err := s.find(r, find)
		if err != nil {
			status, p := s.problem(r, err)
			send(w, r, status, say(status, p))
			return
		}
		send(w, r, http.StatusOK, a)
	})
}

func (s *server) find(r *http.Request, find func(*Library, *http.Request) (*answer, error)) (*answer, error) {
	l, err := s.open()
	if err != nil {
		return nil, err
	}
	return find(l, r)
}

// problem says what is wrong; what is not the caller's is told to the operator.
func (s *server) problem(r *http.Request, err error) (int, Problem) {
	if lost, ok := err.(*lostError); ok {
		return http.StatusNotFound, Problem{"not_found", lost.message, []string{}}
	}
	status, p := problemOf(err)
	if p.Code == "unknown_word" && r.URL.RawQuery != "" {
		status = http.StatusBadRequest
	}
	if status == http.StatusInternalServerError && s.o.Failed != nil {
		s.o.Failed(err)
	}
	return status, p
}

// headers are those of every answer.
func (s *server) headers(h http.Header, r *http.Request) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache") // kept, and asked after by its ETag
	if len(s.o.Origins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(s.o.Origins, origin) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "GET, HEAD")
	h.Set("Access-Control-Allow-Headers", "Authorization, X-API-Key, If-None-Match")
	h.Set("Access-Control-Expose-Headers", "ETag")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
}

// send sends an answer, or says that the caller has it.
func send(w http.ResponseWriter, r *http.Request, status int, a *answer) {
	h := w.Header()
	if status == http.StatusOK {
		sum := sha256.Sum256(append([]byte(a.mediaType+"\n"), a.body...))
		tag := `"` + hex.EncodeToString(sum[:16]) + `"`
		h.Set("ETag", tag)
		if has(r.Header.Values("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	} else {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Type", a.mediaType)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(a.body) // a reader that has left is told nothing
	}
}

// has reports whether If-None-Match names a tag, by the weak comparison that
// it asks for.
func has(values []string, tag string) bool {
	for _, v := range values {
		for _, t := range strings.Split(v, ",") {
			if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == tag {
				return true
			}
		}
	}
	return false
}
