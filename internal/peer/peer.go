// Package peer reads the configuration of a gateway, another's or our own, into
// one model: routes with their targets, retries, timers, breakers and bounds,
// each with the place where it stands. It decides what a setting comes to, the
// product's default included; where neither the file nor the product's
// documentation tells, the value is unknown and nothing may be concluded from
// it. It never judges, follows no reference out of the files it was given, and
// hands out no credential. It is pure.
package peer

import (
	"fmt"
	"time"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/manifest"
)

// The products that are read. An object of another kind is no gateway.
const (
	LiteLLM   = manifest.LiteLLM
	Envoy     = manifest.Envoy
	Nginx     = manifest.Nginx
	HAProxy   = manifest.HAProxy
	Kong      = manifest.Kong
	Portkey   = manifest.Portkey
	Bifrost   = manifest.Bifrost
	Hourthree = manifest.Hourthree
)

// maxRoutes bounds what is read of one configuration.
const maxRoutes = 4096

// Gateway is one configuration. It is immutable once read.
type Gateway struct {
	Product string
	Name    string
	Routes  []Route
	// Secrets are the places of credentials that are written out in the file.
	// What they are is kept nowhere.
	Secrets []Spot
	// Open says that whoever reaches the listener is served, with no key asked
	// for; the place is the listener's.
	Open Value[bool]
}

// Route is one way through a gateway: a model, a location, a cluster.
type Route struct {
	Name string
	Spot Spot
	// Models is why this route is taken to lead to models, "" where nothing says so.
	Models  string
	Targets []Target
	// More says that there may be targets that the file does not name: they come
	// from a control plane, a variable or the caller.
	More      bool
	Retry     Retry
	Timers    Timers
	Breaker   Breaker
	Bounds    Bounds
	Limits    Limits
	Fallbacks []Fallback // routes that are tried after this one has failed
	Degraded  Value[bool]
}

// Target is where calls of a route go.
type Target struct {
	Name     string // as the file calls it
	Host     string // "" for unknown
	Provider string // "" for unknown
	Region   string // "" for unknown
	Model    string
	Domain   string // what fails together, where the file says so
	Spot     Spot
}

// Retry is what a route does after a failure.
type Retry struct {
	// Attempts are the calls that one call can become at the targets of the route,
	// for each class of failure.
	Attempts map[layers.Class]Value[int]
	// Spot is where the number stands or would stand.
	Spot Spot
	On   []string // conditions, in the product's words
	// Backoff is the wait before the first repeat, 0 for none.
	Backoff Value[time.Duration]
	// Budget is the share of calls that may be repeats, 0 for no bound.
	Budget Value[float64]
	// Parallel are the repeats that may run at once, 0 for no bound.
	Parallel Value[int]
	// Repeated says that a POST is sent again after it has reached a target.
	Repeated Value[bool]
	// Moves says that a repeat goes to another target than the one that failed.
	Moves bool
}

// Most is the highest number of attempts of the classes, and whether all of
// them are known.
func (r Retry) Most(classes ...layers.Class) (most Value[int], known bool) {
	known = true
	most = Value[int]{V: 1, State: Default, Spot: r.Spot}
	for _, c := range classes {
		v, ok := r.Attempts[c]
		if !ok || v.State == Unknown {
			known = false
			continue
		}
		if v.V > most.V {
			most = v
		}
	}
	return most, known
}

// Timers are how long a route waits. 0 is for ever.
type Timers struct {
	Connect, PerTry, Idle, Total Value[time.Duration]
	// Across bounds all tries together where Total is of one.
	Across Value[time.Duration]
}

// Kind is how a breaker counts.
type Kind string

// The kinds of breakers.
const (
	None        Kind = "none"
	Consecutive Kind = "consecutive" // failures in a row, or a number of them within a time
	Ratio       Kind = "ratio"       // the share of calls that fail
)

// Breaker is what keeps a failing target from being called.
type Breaker struct {
	Kind      Value[Kind]
	Threshold Value[float64] // failures, or the share of them, 0 to 1
	MinHosts  Value[int]     // hosts below which it does nothing
	Hosts     int            // hosts that the file names
	Blind     string         // which failures it does not see, "" for none
}

// Bounds are what a route holds at once. 0 is without bound.
type Bounds struct {
	Pending     Value[int]
	Connections Value[int]
	Wait        Value[time.Duration] // in the queue
}

// Limits say whose calls a rate limit covers.
type Limits struct {
	Any Value[bool]
	// Only names the callers that are covered, "" for all.
	Only string
	Spot Spot
}

// Fallback is a route that is tried after another.
type Fallback struct {
	To   string
	Spot Spot
}

// State is how a value is known.
type State uint8

// The states.
const (
	Unknown State = iota
	Default       // the product's documented default
	Set           // it stands in the file
)

// Value is a setting and how it is known.
type Value[T any] struct {
	V     T
	State State
	Spot  Spot
}

// Known says whether the value may be relied on.
func (v Value[T]) Known() bool { return v.State != Unknown }

// Is says whether the value is known to be w.
func Is[T comparable](v Value[T], w T) bool { return v.State != Unknown && v.V == w }

// Spot is where a setting stands or, absent, would stand.
type Spot struct {
	Path string // within the object; of a file that is neither YAML nor JSON, its blocks
	Line int    // in the file, from 1
	File string // the file where it stands, where that is another than the object's
}

// Read reads a gateway's own file, or a document in a ConfigMap. It is nil for an
// object that is none. Among the files are others that an nginx file may refer
// to; nil for none.
func Read(o *manifest.Object, files *Files) (*Gateway, []manifest.Problem) {
	read := map[string]func(*reader){
		LiteLLM: readLiteLLM, Envoy: readEnvoy, Nginx: readNginx, HAProxy: readHAProxy,
		Kong: readKong, Portkey: readPortkey, Bifrost: readBifrost, Hourthree: readHourthree,
	}[o.Kind]
	if o.Group != manifest.FileGroup || read == nil {
		return nil, nil
	}
	if files == nil {
		files = NewFiles([]*manifest.Object{o})
	}
	r := &reader{o: o, files: files, g: &Gateway{Product: o.Kind, Name: o.Name}}
	read(r)
	if len(r.g.Routes) > maxRoutes {
		r.problem(0, fmt.Sprintf("%d routes, of which %d are read", len(r.g.Routes), maxRoutes), "split the configuration")
		r.g.Routes = r.g.Routes[:maxRoutes]
	}
	return r.g, r.problems
}

// reader is one file being read.
type reader struct {
	o        *manifest.Object
	files    *Files
	g        *Gateway
	problems []manifest.Problem
}

// problem notes what was not read.
func (r *reader) problem(line int, what, remedy string) {
	p := manifest.Problem{File: r.o.Origin.File, Line: line, What: what, Remedy: remedy, Lost: true}
	if line == 0 {
		p.Line = max(r.o.Origin.Line, 1)
	}
	r.problems = append(r.problems, p)
}

func (r *reader) add(route Route) { r.g.Routes = append(r.g.Routes, route) }

// Find is the route of a name.
func (g *Gateway) Find(name string) (Route, bool) {
	for _, r := range g.Routes {
		if r.Name == name {
			return r, true
		}
	}
	return Route{}, false
}

// attempts gives the same number to several classes and 1 to the others.
func attempts(n Value[int], classes ...layers.Class) map[layers.Class]Value[int] {
	out := map[layers.Class]Value[int]{}
	for _, c := range layers.Classes() {
		out[c] = Value[int]{V: 1, State: Default, Spot: n.Spot}
	}
	for _, c := range classes {
		out[c] = n
	}
	return out
}
