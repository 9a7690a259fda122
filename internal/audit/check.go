// Package audit finds in a set of Kubernetes objects and gateway configurations
// the conditions that exposed others to an outage. It decides which checks of
// its catalogue fail where, what could not be decided and why, and which findings
// somebody waived or a baseline had. It never finds out what objects mean to each
// other, which topology does, nor what retries come to on a path, which retrypath
// does. Its callers are the command, collect, render and mcpserver. It is pure: it
// reads no file and no cluster, and the same input gives the same report, byte for
// byte.
//
// A check is data: checks/*.yaml. Where one object tells, its condition is a CEL
// expression there; where several are needed, it is a Rule in Go under the same
// id.
package audit

import (
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// Check is one condition that the audit looks for.
type Check struct {
	ID       string   `yaml:"id" json:"id"` // RTY-001: three letters of its group and a number
	Title    string   `yaml:"title" json:"title"`
	Severity Severity `yaml:"severity" json:"severity"`
	// Extended checks concern fewer stacks or weigh less; they run like the others.
	Extended bool `yaml:"extended,omitempty" json:"extended,omitempty"`
	// Scope is what is needed to decide it: object, graph, path or gateway.
	Scope string `yaml:"scope" json:"scope"`
	// Live checks need the status of a running cluster.
	Live       bool                `yaml:"live,omitempty" json:"live,omitempty"`
	Confidence string              `yaml:"confidence" json:"confidence"` // high, medium or low
	Kinds      []string            `yaml:"kinds" json:"kinds"`           // of the objects it reports on
	Resources  []topology.Resource `yaml:"resources" json:"resources"`   // what must be readable to decide it
	// Channel is the kind whose presence in a cluster shows that the version of the
	// API is installed that has the field; without it a live object cannot have it.
	Channel string `yaml:"channel,omitempty" json:"channel,omitempty"`
	// Each is the list whose elements are looked at one by one: a path such as
	// spec.groups[].rules[], containers, or documents, the configurations inside a
	// ConfigMap. Empty for the object as a whole.
	Each string `yaml:"each,omitempty" json:"each,omitempty"`
	// When is the CEL expression that is true where the condition holds, in the
	// words that cel.go lists. Empty: a Rule in Go.
	When string `yaml:"when,omitempty" json:"when,omitempty"`
	// Field is the path that a finding points at, below the element of Each.
	Field string `yaml:"field" json:"field"`
	// Shows is a CEL expression of what was found, "" for the value at Field.
	Shows     string   `yaml:"shows,omitempty" json:"shows,omitempty"`
	Expected  string   `yaml:"expected" json:"expected"`   // in a few words
	Condition string   `yaml:"condition" json:"condition"` // in words, exactly
	Why       string   `yaml:"why" json:"why"`
	Fix       string   `yaml:"fix" json:"fix"`
	Patch     string   `yaml:"patch,omitempty" json:"patch,omitempty"`     // the smallest change, as YAML
	Caution   string   `yaml:"caution,omitempty" json:"caution,omitempty"` // where it may be wrong
	Causes    []string `yaml:"causes" json:"causes"`
	Sources   []string `yaml:"sources" json:"sources"`                 // keys of the catalogue's sources
	Drill     string   `yaml:"drill,omitempty" json:"drill,omitempty"` // that shows it
}

// Severity is how much a finding weighs.
type Severity uint8

// The severities, least first.
const (
	Low Severity = iota + 1
	Medium
	High
	Critical
)

// Rule decides a check for one object of its kinds. It has no side effects and
// keeps nothing.
type Rule func(g *evidence, o *manifest.Object) []Hit

// Hit is one place where a condition holds.
type Hit struct {
	Container string // where it is one container's, or one route's of a gateway's configuration
	Path      string // of the field, with indexes: spec.http[1].retries
	// Line is where the field stands, where its path does not tell: in a text that
	// is neither YAML nor JSON, or within a text of a ConfigMap.
	Line int
	// Observed is what stands there. It is never the value of a Secret or of an
	// environment variable that may hold one.
	Observed string
	Expected string // "" for the check's own
	Related  []Related
	// Open says that the rule could not decide the object, and Observed then why.
	Open Reason
}

// Related is another place that belongs to a finding: a layer of a path, the
// policy that does not match.
type Related struct {
	Object *manifest.Object `json:"-"`
	Path   string           `json:"path,omitempty"`
	Note   string           `json:"note"`
}
