package peer

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
)

// readHAProxy reads sections; a backend or listen section with servers is a
// route.
func readHAProxy(r *reader) {
	list, err := parseHAProxy(string(r.o.Text))
	if err != nil {
		r.unread(err)
	}
	h := &haproxyFile{r: r, list: list}
	var last *section
	h.base = map[*section]*section{}
	named := map[string]*section{}
	for _, s := range list {
		if s.from != "" {
			h.base[s] = named[s.from]
		} else if s.kind != "defaults" {
			h.base[s] = last
		}
		if s.kind == "defaults" {
			last = s
			if s.name != "" {
				named[s.name] = s
			}
		}
	}
	for _, s := range list {
		if s.kind == "backend" || s.kind == "listen" {
			h.add(s)
		}
		h.credentials(s)
	}
}

type haproxyFile struct {
	r    *reader
	list []*section
	base map[*section]*section // the defaults of a section
}

func (h *haproxyFile) spot(s *section, l line, words int) Spot {
	p := Spot{Path: strings.TrimSpace(s.kind + " " + s.name)}
	at := s.line
	if l.line > 0 {
		at = l.line
		p.Path += " > " + strings.Join(l.words[:min(words, len(l.words))], " ")
	}
	p.Line, _ = h.r.o.TextPosition(at, 1)
	return p
}

// find is the line in force that starts with the words: the section's last, else
// that of its defaults.
func (h *haproxyFile) find(s *section, words ...string) (line, *section, bool) {
	for range maxDepth {
		if s == nil {
			break
		}
		for _, l := range slices.Backward(s.lines) {
			if l.starts(words...) {
				return l, s, true
			}
			if l.starts(append([]string{"no"}, words...)...) {
				return line{}, nil, false
			}
		}
		s = h.base[s]
	}
	return line{}, nil, false
}

func (h *haproxyFile) add(s *section) {
	var servers []line
	more := false
	for _, l := range s.lines {
		switch l.word(0) {
		case "server":
			servers = append(servers, l)
		case "server-template":
			servers, more = append(servers, line{append([]string{"server"}, l.words[min(2, len(l.words)):]...), l.line}), true
		}
	}
	if len(servers) == 0 || len(h.r.g.Routes) > maxRoutes {
		return
	}
	if mode, _, ok := h.find(s, "mode"); ok && mode.word(1) != "http" {
		return // what does not speak HTTP has no answers to judge
	} else if !ok {
		return
	}
	route := Route{Name: s.name, Spot: h.spot(s, line{}, 0), More: more}
	for _, l := range servers {
		host := hostOf(l.word(2))
		t := Target{Name: l.word(1), Host: host, Spot: h.spot(s, l, 2)}
		t.Provider, t.Region = locate(host)
		route.Targets = append(route.Targets, t)
		route.More = route.More || host == ""
	}
	names := []string{s.name}
	for _, l := range servers {
		names = append(names, l.word(2))
	}
	route.Models = evidence(route.Targets, names...)
	route.Retry = h.retry(s)
	route.Timers = Timers{Connect: h.time(s, "connect"), Idle: h.time(s, "server")}
	h.servers(s, servers, &route)
	route.Limits = h.limits(s)
	h.r.add(route)
}

func (h *haproxyFile) time(s *section, which string) Value[time.Duration] {
	l, from, ok := h.find(s, "timeout", which)
	if !ok {
		return byDefault(time.Duration(0), h.spot(s, line{}, 0))
	}
	text := l.word(2)
	if _, err := strconv.Atoi(text); err == nil {
		text += "ms" // a bare number is of milliseconds
	}
	if v, ok := nginxTime(text); ok {
		return set(v, h.spot(from, l, 2))
	}
	return unknown0[time.Duration](h.spot(from, l, 2))
}

// retryOn are the conditions of retry-on by class.
var retryOn = map[string][]layers.Class{
	"conn-failure": {layers.Connect}, "empty-response": {layers.Reset}, "junk-response": {layers.Reset},
	"response-timeout": {layers.Reset}, "0rtt-rejected": {layers.Connect},
	"all-retryable-errors": {layers.Connect, layers.Reset, layers.Server},
	"500":                  {layers.Server}, "501": {layers.Server}, "502": {layers.Server}, "503": {layers.Server}, "504": {layers.Server},
	"429": {layers.Capacity},
}

// retry: without retry-on only failed connections are repeated.
func (h *haproxyFile) retry(s *section) Retry {
	count := byDefault(4, h.spot(s, line{}, 0))
	if l, from, ok := h.find(s, "retries"); ok {
		if v, err := strconv.Atoi(l.word(1)); err == nil && v >= 0 {
			count = set(min(v, 1000)+1, h.spot(from, l, 1))
		} else {
			count = unknown0[int](h.spot(from, l, 1))
		}
	}
	out := Retry{
		Spot: count.Spot, Attempts: attempts(count, layers.Connect), On: []string{"conn-failure"},
		Backoff: byDefault(time.Second, count.Spot), Repeated: byDefault(false, count.Spot),
	}
	l, from, ok := h.find(s, "retry-on")
	if !ok || slices.Contains(l.words[1:], "none") {
		if ok {
			out.On, out.Attempts = nil, attempts(byDefault(1, h.spot(from, l, 1)))
		}
		return out
	}
	spot := h.spot(from, l, 1)
	out.On, out.Attempts = l.words[1:], attempts(at(byDefault(1, spot), spot))
	post := !h.spared(s)
	for _, c := range out.On {
		for _, class := range retryOn[c] {
			if class != layers.Connect && !post {
				continue
			}
			out.Attempts[class] = count
			if class == layers.Capacity {
				out.Attempts[class] = at(count, spot)
			}
			if class != layers.Connect {
				out.Repeated, out.Backoff = set(true, spot), byDefault(time.Duration(0), spot)
			}
		}
	}
	return out
}

// spared says that a POST is not sent again once it has reached a server.
func (h *haproxyFile) spared(s *section) bool {
	for ; s != nil; s = h.base[s] {
		for _, l := range s.lines {
			if !l.starts("http-request", "disable-l7-retry") {
				continue
			}
			text := strings.Join(l.words[2:], " ")
			if text == "" || strings.Contains(text, "METH_POST") || strings.Contains(text, "POST") && !strings.Contains(text, "unless") {
				return true
			}
			if strings.Contains(text, "unless") && (strings.Contains(text, "METH_GET") || strings.Contains(text, "GET")) {
				return true
			}
		}
	}
	return false
}

// servers reads what watches and bounds the servers. What default-server says
// holds where a server says nothing.
func (h *haproxyFile) servers(s *section, servers []line, route *Route) {
	var shared []string
	if l, _, ok := h.find(s, "default-server"); ok {
		shared = l.words[1:]
	}
	own := h.spot(s, servers[0], 2)
	route.Breaker = Breaker{Kind: byDefault(None, own), Hosts: len(servers)}
	route.Bounds = Bounds{Connections: byDefault(0, own), Pending: byDefault(0, own), Wait: h.time(s, "queue")}
	if route.Bounds.Wait.State == Default {
		route.Bounds.Wait = route.Timers.Connect // in force where there is none for the queue
	}
	for _, l := range servers {
		words := append(slices.Clone(shared), l.words[min(3, len(l.words)):]...)
		switch option(words, "observe") {
		case "layer7":
			route.Breaker.Kind, route.Breaker.Threshold = set(Consecutive, h.spot(s, l, 2)), byDefault(10.0, own)
			if v, err := strconv.Atoi(option(words, "error-limit")); err == nil {
				route.Breaker.Threshold = set(float64(v), own)
			}
		case "layer4":
			route.Breaker.Kind, route.Breaker.Blind = set(Consecutive, h.spot(s, l, 2)), "answers with an error"
		}
		if v, err := strconv.Atoi(option(words, "maxconn")); err == nil {
			route.Bounds.Connections = set(v, h.spot(s, l, 2))
		}
		if v, err := strconv.Atoi(option(words, "maxqueue")); err == nil {
			route.Bounds.Pending = set(v, h.spot(s, l, 2))
		}
	}
}

// option is the word behind the last one of a name, "" for none.
func option(words []string, name string) string {
	for i := len(words) - 2; i >= 0; i-- {
		if words[i] == name {
			return words[i+1]
		}
	}
	return ""
}

// limits looks for a rule that refuses by a counted rate, in the section and in
// the frontends that lead to it.
func (h *haproxyFile) limits(s *section) Limits {
	best := h.limited(s)
	if best.Any.V && best.Only == "" {
		return best
	}
	for _, f := range h.list {
		if f.kind != "frontend" && f.kind != "listen" || f == s || !leads(f, s.name) {
			continue
		}
		if l := h.limited(f); l.Any.V && (!best.Any.V || l.Only == "") {
			best = l
		} else if !l.Any.Known() && !best.Any.V {
			best = l
		}
	}
	return best
}

func leads(f *section, backend string) bool {
	for _, l := range f.lines {
		if (l.word(0) == "default_backend" || l.word(0) == "use_backend") && (l.word(1) == backend || strings.ContainsAny(l.word(1), "%[")) {
			return true
		}
	}
	return false
}

func (h *haproxyFile) limited(s *section) Limits {
	var track, deny, other line
	acls := map[string]bool{}
	for _, l := range s.lines {
		text := strings.Join(l.words, " ")
		rate := strings.Contains(text, "_rate(") || strings.Contains(text, "_rate ") || strings.Contains(text, "_req_rate") || strings.Contains(text, "conn_cur") || strings.Contains(text, "gpc")
		switch {
		case l.starts("acl") && rate:
			acls[l.word(1)] = true
		case l.starts("http-request") && strings.HasPrefix(l.word(1), "track-sc"), strings.HasPrefix(l.word(0), "tcp-request") && strings.Contains(text, "track-sc"):
			track = l
		case strings.Contains(text, "deny") || strings.Contains(text, "tarpit") || strings.Contains(text, "reject") || l.starts("http-request", "return"):
			if rate || slices.ContainsFunc(l.words, func(w string) bool { return acls[w] }) {
				deny = l
			}
		case l.starts("http-request") && strings.HasPrefix(l.word(1), "lua."), l.starts("filter", "spoe"):
			other = l
		}
	}
	here := h.spot(s, line{}, 0)
	switch {
	case deny.line > 0 && track.line > 0:
		return Limits{Any: set(true, h.spot(s, deny, 2)), Only: tracked(track), Spot: h.spot(s, track, 2)}
	case deny.line > 0:
		return Limits{Any: set(true, h.spot(s, deny, 2)), Spot: h.spot(s, deny, 2)}
	case other.line > 0:
		return Limits{Spot: h.spot(s, other, 2)} // may limit; the file does not tell
	}
	return Limits{Any: byDefault(false, here), Spot: here}
}

// tracked names the callers whose calls are counted, "" for all.
func tracked(l line) string {
	for _, w := range l.words {
		if strings.HasPrefix(w, "hdr(") || strings.HasPrefix(w, "req.hdr(") || strings.HasPrefix(w, "req.fhdr(") {
			name, _, _ := strings.Cut(w[strings.IndexByte(w, '(')+1:], ")")
			return "callers that send " + name
		}
	}
	return ""
}

// credentials finds a key that is set as a header.
func (h *haproxyFile) credentials(s *section) {
	for _, l := range s.lines {
		set := l.starts("http-request", "set-header") || l.starts("http-request", "add-header")
		if set && keyName.MatchString(l.word(2)) {
			h.r.secret(l.word(3), h.spot(s, l, 3))
		}
	}
}
