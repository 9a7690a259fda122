package peer

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
)

// Files are the nginx files that were collected. Each is read once, whatever
// includes it. Not for concurrent use.
type Files struct {
	list     []*manifest.Object
	includes map[*manifest.Object][]string
	read     map[*manifest.Object]map[*manifest.Object]*reader // by main file and file
}

// NewFiles takes the nginx files among objects.
func NewFiles(objects []*manifest.Object) *Files {
	f := &Files{includes: map[*manifest.Object][]string{}, read: map[*manifest.Object]map[*manifest.Object]*reader{}}
	for _, o := range objects {
		if o.Group != manifest.FileGroup || o.Kind != Nginx {
			continue
		}
		f.list = append(f.list, o)
		for _, m := range includeLine.FindAllSubmatch(o.Text, maxIncludes) {
			f.includes[o] = append(f.includes[o], strings.Trim(strings.TrimSpace(string(m[1])), `"'`))
		}
	}
	return f
}

var includeLine = regexp.MustCompile(`(?:^|[;{}\s])include\s+([^;{}#]+);`)

// mainOf is the file that includes o, or o.
func (f *Files) mainOf(o *manifest.Object) *manifest.Object {
	for range 4 {
		next := o
		for _, g := range f.list {
			if g != o && g.Outer() == o.Outer() && slices.ContainsFunc(f.includes[g], func(p string) bool { return matches(p, o) }) {
				next = g
				break
			}
		}
		if next == o {
			return o
		}
		o = next
	}
	return o
}

// readNginx reads a main file, or one that a given main file includes: what is
// set around the include holds for it too. A route is a location that passes
// calls on.
func readNginx(r *reader) {
	main := r.files.mainOf(r.o)
	if r.files.read[main] == nil {
		r.files.read[main] = readTree(main, r.files)
	}
	part := r.files.read[main][r.o]
	if part == nil { // in a circle of includes, or behind a bound
		part = readTree(r.o, r.files)[r.o]
	}
	r.g.Routes, r.g.Secrets, r.problems = part.g.Routes, part.g.Secrets, part.problems
}

// readTree reads a main file with all that it includes, and gives what stands in
// each of them.
func readTree(main *manifest.Object, files *Files) map[*manifest.Object]*reader {
	n := &nginx{
		files: files, parts: map[*manifest.Object]*reader{}, upstreams: map[string]*directive{},
		zones: map[string]*directive{}, maps: map[string]*directive{},
	}
	n.tree = n.expanded(n.parse(main), nil, map[*manifest.Object]bool{main: true})
	n.index(n.tree)
	n.walk(n.tree)
	return n.parts
}

// parse reads a file's directives, once for each place that includes it.
func (n *nginx) parse(o *manifest.Object) []*directive {
	tree, err := parseNginx(string(o.Text), o)
	if n.parts[o] == nil {
		n.parts[o] = &reader{o: o, g: &Gateway{}}
		if err != nil {
			n.parts[o].unread(err)
		}
	}
	return tree
}

// unread notes a fault of the text. Its line stands at its start.
func (r *reader) unread(err error) {
	line, what := 1, err.Error()
	if rest, ok := strings.CutPrefix(what, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if n, e := strconv.Atoi(number); e == nil {
			line, what = n, after
		}
	}
	line, _ = r.o.TextPosition(line, 1)
	r.problem(line, "the "+r.o.Kind+" configuration cannot be read from here on: "+what, "correct the text")
}

type nginx struct {
	files     *Files
	parts     map[*manifest.Object]*reader
	r         *reader // of the file whose directive is looked at
	tree      []*directive
	upstreams map[string]*directive
	zones     map[string]*directive // of limit_req and limit_conn
	maps      map[string]*directive // by the variable they set
	includes  int                   // files put in place, and their bytes
	bytes     int
}

// each calls f for every directive.
func each(list []*directive, f func(*directive)) {
	for _, d := range list {
		f(d)
		each(d.block, f)
	}
}

// matches says whether the pattern of an include means a given file. Where nginx
// is installed is not known: the ends of the paths are compared.
func matches(pattern string, o *manifest.Object) bool {
	if pattern == "" {
		return false
	}
	file := path.Clean(strings.ReplaceAll(o.Origin.File, `\`, "/"))
	if o.Outer() != nil { // a key of a ConfigMap is a file of its folder
		file = o.Name
		pattern = path.Base(pattern)
	}
	pattern = path.Clean(pattern)
	for p := strings.TrimPrefix(pattern, "/"); ; {
		if ok, err := path.Match(p, tail(file, strings.Count(p, "/")+1)); err == nil && ok {
			return true
		}
		_, rest, more := strings.Cut(p, "/")
		if !more || !strings.Contains(rest, "/") && strings.Contains(pattern, "/") && strings.ContainsAny(rest, "*?[") {
			return false
		}
		p = rest
	}
}

// tail are the last elements of a path.
func tail(file string, n int) string {
	parts := strings.Split(strings.TrimPrefix(file, "/"), "/")
	return strings.Join(parts[max(0, len(parts)-n):], "/")
}

// harmless are files of the distribution that set types and parameters only.
var harmless = []string{"mime.types", "fastcgi_params", "fastcgi.conf", "uwsgi_params", "scgi_params", "proxy_params", "koi-utf", "koi-win", "win-utf", "options-ssl-nginx.conf"}

// expanded puts the directives of given files in the place of their includes.
func (n *nginx) expanded(list []*directive, outer *directive, seen map[*manifest.Object]bool) []*directive {
	var out []*directive
	for _, d := range list {
		d.outer = outer
		if d.name != "include" {
			d.block = n.expanded(d.block, d, seen)
			out = append(out, d)
			continue
		}
		out = append(out, n.include(d, outer, seen)...)
	}
	return out
}

func (n *nginx) include(d, outer *directive, seen map[*manifest.Object]bool) []*directive {
	pattern := d.arg(0)
	if pattern == "" || slices.Contains(harmless, path.Base(pattern)) || strings.Contains(pattern, "/modules") {
		return nil
	}
	var out []*directive
	found, left := false, false
	for _, g := range n.files.list {
		if g == d.file || g.Outer() != d.file.Outer() || !matches(pattern, g) {
			continue
		}
		if found = true; seen[g] {
			continue
		}
		n.includes, n.bytes = n.includes+1, n.bytes+len(g.Text)
		if n.includes > maxIncludes || n.bytes > maxIncluded {
			left = true
			continue
		}
		seen[g] = true
		out = append(out, n.expanded(n.parse(g), outer, seen)...)
		delete(seen, g)
	}
	line, _ := d.file.TextPosition(d.line, 1)
	switch {
	case !found:
		n.parts[d.file].problem(line, "the include of "+pattern+" was not read: no such file was given", "give the file too, or the output of nginx -T")
	case left:
		n.parts[d.file].problem(line, "not all that "+pattern+" includes was read: it is too much", "split the configuration")
	}
	return out
}

// index notes what is referred to by name.
func (n *nginx) index(list []*directive) {
	each(list, func(d *directive) {
		switch d.name {
		case "upstream":
			n.upstreams[d.arg(0)] = d
		case "limit_req_zone", "limit_conn_zone":
			for _, a := range d.args {
				if z, ok := strings.CutPrefix(a, "zone="); ok {
					name, _, _ := strings.Cut(z, ":")
					n.zones[name] = d
				}
			}
		case "map", "geo":
			n.maps[d.arg(len(d.args)-1)] = d
		}
	})
}

func (n *nginx) walk(list []*directive) {
	each(list, func(d *directive) {
		n.r = n.parts[d.file]
		n.credential(d)
		if (d.name == "proxy_pass" || d.name == "grpc_pass") && httpPass(d) && len(n.r.g.Routes) <= maxRoutes {
			n.add(d)
		}
	})
}

// httpPass: a proxy_pass in the stream module speaks no HTTP.
func httpPass(d *directive) bool {
	for o := d.outer; o != nil; o = o.outer {
		if o.name == "stream" {
			return false
		}
	}
	return true
}

// credential finds a key that is set as a header.
func (n *nginx) credential(d *directive) {
	header := d.name == "proxy_set_header" || d.name == "grpc_set_header"
	if header && len(d.args) == 2 && keyName.MatchString(d.args[0]) {
		n.r.secret(d.args[1], n.spot(d))
	}
}

// spot is the place of a directive: its blocks, and its line.
func (n *nginx) spot(d *directive) Spot {
	if d == nil {
		return Spot{Line: 1}
	}
	var parts []string
	for o := d; o != nil; o = o.outer {
		if o.name == "http" || o.name == "proxy_set_header" {
			if o == d {
				parts = append(parts, o.name+" "+o.arg(0))
			}
			continue
		}
		part := o.name
		if o.open && len(o.args) > 0 {
			part += " " + strings.Join(o.args, " ")
		}
		if o.name == "server" && o.open {
			part = strings.TrimSpace(part + " " + serverName(o))
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	s := Spot{Path: strings.Join(parts, " > ")}
	s.Line, _ = d.file.TextPosition(d.line, 1)
	if d.file != n.r.o {
		s.File = d.file.Origin.File
	}
	return s
}

// in finds a directive in force at a place: the nearest block that has it. Those
// of one name are inherited together.
func in(d *directive, name string) []*directive {
	for o := d.outer; o != nil; o = o.outer {
		var found []*directive
		for _, c := range o.block {
			if c.name == name {
				found = append(found, c)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

func (n *nginx) one(d *directive, name string) *directive {
	found := in(d, name)
	if found == nil { // at the top of a file that is included in http
		for _, c := range n.tree {
			if c.name == name {
				return c
			}
		}
		return nil
	}
	return found[len(found)-1]
}

func (n *nginx) add(pass *directive) {
	route := Route{Name: n.routeName(pass), Spot: n.spot(pass)}
	n.targets(pass, &route)
	if !aside(pass) {
		route.Models = evidence(route.Targets, route.Name, pass.arg(0))
	}
	n.retry(pass, &route)
	prefix := strings.TrimSuffix(pass.name, "pass")
	route.Timers = Timers{
		Connect: n.time(pass, prefix+"connect_timeout", time.Minute),
		Idle:    n.time(pass, prefix+"read_timeout", time.Minute),
		Across:  n.time(pass, prefix+"next_upstream_timeout", 0),
	}
	route.Limits = n.limits(pass)
	n.r.add(route)
}

// aside says that a location is of probes, pages or files beside the models.
func aside(pass *directive) bool {
	for o := pass.outer; o != nil; o = o.outer {
		if o.name == "location" && asides.MatchString(strings.Join(o.args, " ")) {
			return true
		}
	}
	return false
}

func (n *nginx) routeName(pass *directive) string {
	var parts []string
	for o := pass.outer; o != nil; o = o.outer {
		switch o.name {
		case "location":
			parts = append(parts, strings.Join(o.args, " "))
		case "server":
			if name := serverName(o); name != "" {
				parts = append(parts, name)
			}
		}
	}
	slices.Reverse(parts)
	if len(parts) == 0 {
		return pass.arg(0)
	}
	return strings.Join(parts, " ")
}

// serverName is the first name of a server, "" for one that takes any.
func serverName(server *directive) string {
	for _, c := range server.block {
		if c.name == "server_name" && c.arg(0) != "_" {
			return c.arg(0)
		}
	}
	return ""
}

// targets finds where a pass goes: an upstream, a host, or what a variable was
// set to.
func (n *nginx) targets(pass *directive, route *Route) {
	to := pass.arg(0)
	for range 3 { // a variable set to another
		if !strings.Contains(to, "$") {
			break
		}
		next := n.variables(pass, to)
		if next == to {
			break
		}
		to = next
	}
	host := hostOf(to)
	if i := strings.Index(to, "://"); i >= 0 {
		name, _, _ := strings.Cut(to[i+3:], "/")
		if u := n.upstreams[name]; u != nil {
			n.upstream(u, route)
			return
		}
	}
	if host == "" || strings.Contains(to, "unix:") {
		route.More = true
		return
	}
	t := Target{Name: host, Host: host, Spot: n.spot(pass)}
	t.Provider, t.Region = locate(host)
	route.Targets = []Target{t}
	route.Breaker = Breaker{Kind: byDefault(None, n.spot(pass)), Hosts: 1}
	route.Bounds.Connections = byDefault(0, n.spot(pass))
}

// variables puts what a set in force says in the place of a variable.
func (n *nginx) variables(pass *directive, to string) string {
	for o := pass.outer; o != nil; o = o.outer {
		for _, c := range o.block {
			if c.name == "set" && len(c.args) == 2 {
				name := strings.TrimPrefix(c.args[0], "$")
				to = strings.ReplaceAll(to, "${"+name+"}", c.args[1])
				if strings.HasSuffix(to, "$"+name) || strings.Contains(to, "$"+name+"/") || strings.Contains(to, "$"+name+":") || strings.Contains(to, "$"+name+"$") {
					to = strings.ReplaceAll(to, "$"+name, c.args[1])
				}
			}
			if len(to) > 4096 {
				return ""
			}
		}
	}
	return to
}

// upstream reads the servers of a group, its breaker and its bound.
func (n *nginx) upstream(u *directive, route *Route) {
	route.Breaker = Breaker{Kind: byDefault(Consecutive, n.spot(u)), Threshold: byDefault(1.0, n.spot(u))}
	route.Bounds.Connections = byDefault(0, n.spot(u))
	off := 0
	for _, s := range u.block {
		if s.name != "server" || slices.Contains(s.args, "down") {
			continue
		}
		host := hostOf(s.arg(0))
		t := Target{Name: s.arg(0), Host: host, Spot: n.spot(s)}
		t.Provider, t.Region = locate(host)
		route.Targets = append(route.Targets, t)
		route.More = route.More || slices.Contains(s.args, "resolve") || host == ""
		for _, a := range s.args {
			if v, ok := strings.CutPrefix(a, "max_fails="); ok {
				if v == "0" {
					off++
				}
				if f, err := strconv.Atoi(v); err == nil {
					route.Breaker.Threshold = set(float64(f), n.spot(s))
				}
			}
			if v, ok := strings.CutPrefix(a, "max_conns="); ok {
				if f, err := strconv.Atoi(v); err == nil {
					route.Bounds.Connections = set(f, n.spot(s))
				}
			}
		}
	}
	route.Breaker.Hosts = len(route.Targets)
	switch {
	case off > 0 && off == len(route.Targets):
		route.Breaker.Kind = set(None, route.Breaker.Threshold.Spot)
	case len(route.Targets) == 1: // a group of one is never taken out
		route.Breaker.Kind = byDefault(None, n.spot(u))
	}
	for _, s := range u.block {
		if strings.HasPrefix(s.name, "balancer_by_lua") || s.name == "health_check" {
			route.More, route.Breaker.Kind = true, unknown0[Kind](n.spot(s))
		}
	}
}

func unknown0[T any](s Spot) Value[T] { return Value[T]{Spot: s} }

// retry reads proxy_next_upstream. A POST that was sent is repeated only with
// non_idempotent; a failed connection was not sent.
func (n *nginx) retry(pass *directive, route *Route) {
	prefix := strings.TrimSuffix(pass.name, "pass")
	d := n.one(pass, prefix+"next_upstream")
	on, spot := []string{"error", "timeout"}, n.spot(pass)
	if d != nil {
		on, spot = d.args, n.spot(d)
	}
	servers := max(len(route.Targets), 1)
	count := byDefault(servers, spot)
	if tries := n.one(pass, prefix+"next_upstream_tries"); tries != nil {
		if v, err := strconv.Atoi(tries.arg(0)); err == nil && v > 0 {
			count = set(min(v, servers), n.spot(tries))
		}
	}
	if route.More {
		count = unknown0[int](spot)
	}
	route.Retry = Retry{
		Spot: spot, On: on, Attempts: attempts(at(byDefault(1, spot), spot)), Moves: true,
		Backoff: byDefault(time.Duration(0), spot), Repeated: byDefault(false, spot),
	}
	if slices.Contains(on, "off") {
		return
	}
	nextUpstream(&route.Retry, count, at(set(true, spot), spot))
	// An answer with an error counts only where it would be repeated.
	if route.Breaker.Kind.V == Consecutive && route.Retry.Attempts[layers.Server].V < 2 && route.Retry.Attempts[layers.Server].Known() {
		route.Breaker.Blind = "answers with an error to a POST"
	}
}

// nextUpstream applies conditions in nginx's words.
func nextUpstream(r *Retry, count Value[int], repeated Value[bool]) {
	has := func(c string) bool { return slices.Contains(r.On, c) }
	if has("error") || has("timeout") {
		r.Attempts[layers.Connect] = count
	}
	if !has("non_idempotent") {
		return
	}
	r.Repeated = repeated
	if has("error") || has("timeout") || has("invalid_header") {
		r.Attempts[layers.Reset] = count
	}
	for _, c := range r.On {
		if strings.HasPrefix(c, "http_5") {
			r.Attempts[layers.Server] = count
		}
	}
	if has("http_429") {
		r.Attempts[layers.Capacity] = at(count, repeated.Spot)
	}
}

// time reads a time such as 60s, 1m30s or 500ms; a bare number is of seconds.
func (n *nginx) time(pass *directive, name string, def time.Duration) Value[time.Duration] {
	d := n.one(pass, name)
	if d == nil {
		return byDefault(def, n.spot(pass))
	}
	v, ok := nginxTime(d.arg(0))
	if !ok {
		return unknown0[time.Duration](n.spot(d))
	}
	return set(v, n.spot(d))
}

var nginxUnits = []struct {
	suffix string
	unit   time.Duration
}{
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour},
	{"d", 24 * time.Hour}, {"w", 7 * 24 * time.Hour},
}

func nginxTime(text string) (time.Duration, bool) {
	var total time.Duration
	for rest := strings.TrimSpace(text); rest != ""; {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		v, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil || v > 1<<31 {
			return 0, false
		}
		rest = strings.TrimLeft(rest[digits:], " ")
		if rest == "" {
			return total + time.Duration(v)*time.Second, true
		}
		matched := false
		for _, u := range nginxUnits {
			if strings.HasPrefix(rest, u.suffix) {
				if v > int64((1<<62)/u.unit) {
					return 0, false
				}
				total, rest, matched = total+time.Duration(v)*u.unit, rest[len(u.suffix):], true
				break
			}
		}
		if !matched || total < 0 {
			return 0, false
		}
	}
	return total, text != ""
}

// limits finds limit_req and limit_conn in force. A zone whose key may be empty
// covers only who has one.
func (n *nginx) limits(pass *directive) Limits {
	list := append(in(pass, "limit_req"), in(pass, "limit_conn")...)
	if len(list) == 0 {
		for _, c := range n.tree {
			if c.name == "limit_req" || c.name == "limit_conn" {
				list = append(list, c)
			}
		}
	}
	if len(list) == 0 {
		spot := n.spot(pass)
		for o := pass.outer; o != nil; o = o.outer {
			for _, c := range o.block {
				if strings.Contains(c.name, "_by_lua") || c.name == "auth_request" || strings.HasPrefix(c.name, "js_") {
					return Limits{Spot: spot} // may limit; the file does not tell
				}
			}
		}
		return Limits{Any: byDefault(false, spot), Spot: spot}
	}
	out := Limits{Any: set(true, n.spot(list[0])), Spot: n.spot(list[0])}
	for _, d := range list {
		only := n.only(d)
		if only == "" {
			out.Only = ""
			return out
		}
		out.Only = only
	}
	return out
}

func (n *nginx) only(d *directive) string {
	name := d.arg(0)
	for _, a := range d.args {
		if z, ok := strings.CutPrefix(a, "zone="); ok {
			name = z
		}
	}
	zone := n.zones[name]
	if zone == nil {
		return ""
	}
	key := zone.arg(0)
	if m := n.maps[key]; m != nil {
		for _, c := range m.block {
			if len(c.args) == 1 && c.args[0] == "" {
				return "callers for whom " + key + " is not empty"
			}
		}
		return ""
	}
	if strings.HasPrefix(key, "$http_") || strings.HasPrefix(key, "$arg_") || strings.HasPrefix(key, "$cookie_") {
		return "callers that send " + strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(key, "$http_"), "$arg_"), "$cookie_"), "_")
	}
	return ""
}
