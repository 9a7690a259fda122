package audit

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/spelling"
	"github.com/hourthree/hourthree/internal/topology"
)

//go:generate go run ./gen

//go:embed checks
var files embed.FS

// Source is where a check's facts come from.
type Source struct {
	Title string `yaml:"title" json:"title"`
	URL   string `yaml:"url" json:"url"`
}

// Group is a family of checks: those of one file.
type Group struct {
	ID     string   `yaml:"group" json:"id"` // three letters
	Title  string   `yaml:"title" json:"title"`
	About  string   `yaml:"about" json:"about"`
	Checks []*Check `yaml:"checks" json:"checks"`
}

// groupOrder is the order in which groups are shown.
var groupOrder = []string{"RTY", "PTH", "TMO", "CBK", "RLM", "MEM", "CAP", "AVL", "RTE", "INF", "CHG", "OBS", "SEC", "GWY", "WVR"}

// products are the kinds of gateways' own files: no API server has them.
var products = []string{
	manifest.LiteLLM, manifest.Envoy, manifest.Kong, manifest.Portkey, manifest.Bifrost, manifest.Hourthree, manifest.Nginx, manifest.HAProxy,
}

type catalogue struct {
	groups  []Group
	checks  []*Check
	byID    map[string]*Check
	sources map[string]Source
}

// own is the catalogue of the program. It was validated by the tests: a fault in
// it is the program's.
var own = sync.OnceValue(func() *catalogue {
	c, err := readCatalogue(files)
	if err != nil {
		panic("the catalogue of checks: " + err.Error())
	}
	return c
})

// Catalogue are all checks, by group and number. Not to be changed.
func Catalogue() []*Check { return own().checks }

// Groups are the checks by group, in the order in which they are shown. Not to
// be changed.
func Groups() []Group { return own().groups }

// SourceOf is a source by the key that checks name it by.
func SourceOf(key string) (Source, bool) {
	s, ok := own().sources[key]
	return s, ok
}

// Find finds a check by its id, in any case of letters.
func Find(id string) (*Check, bool) {
	c, ok := own().byID[strings.ToUpper(strings.TrimSpace(id))]
	return c, ok
}

// Select are the checks that ids and groups name, each once and in order; all
// for none. The error names what is unknown, and the nearest that is known.
func Select(names []string) ([]*Check, error) {
	if len(names) == 0 {
		return Catalogue(), nil
	}
	wanted := map[string]bool{}
	var unknown []error
	for _, n := range names {
		n = strings.ToUpper(strings.TrimSpace(n))
		if _, ok := Find(n); !ok && !slices.Contains(groupOrder, n) {
			unknown = append(unknown, fmt.Errorf("there is no check or group %q%s", n, suggest(n)))
		}
		wanted[n] = true
	}
	if len(unknown) > 0 {
		return nil, errors.Join(unknown...)
	}
	var list []*Check
	for _, c := range Catalogue() {
		if wanted[c.ID] || wanted[c.Group()] {
			list = append(list, c)
		}
	}
	return list, nil
}

// Group is the check's group, the three letters of its id.
func (c *Check) Group() string { group, _, _ := strings.Cut(c.ID, "-"); return group }

func suggest(wrong string) string {
	var near []string
	best := 3 // more edits than two are another word
	for _, name := range append(slices.Clone(groupOrder), ids()...) {
		switch d := spelling.Distance(wrong, name); {
		case d < best:
			best, near = d, []string{name}
		case d == best && d < 3 && len(near) < 3:
			near = append(near, name)
		}
	}
	if len(near) == 0 {
		return "; groups are " + strings.Join(groupOrder, ", ")
	}
	return "; did you mean " + strings.Join(near, ", ") + "?"
}

func ids() []string {
	var list []string
	for _, c := range Catalogue() {
		list = append(list, c.ID)
	}
	return list
}

func readCatalogue(f fs.FS) (*catalogue, error) {
	c := &catalogue{byID: map[string]*Check{}}
	names, err := fs.Glob(f, "checks/*.yaml")
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, name := range names {
		data, err := fs.ReadFile(f, name)
		if err != nil {
			return nil, err
		}
		var g Group
		var into any = &g
		sources := strings.HasPrefix(name, "checks/sources")
		if sources {
			into = &c.sources
		}
		d := yaml.NewDecoder(bytes.NewReader(data))
		d.KnownFields(true)
		if err := d.Decode(into); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if !sources {
			if name != "checks/"+g.ID+".yaml" {
				faults = append(faults, fmt.Errorf("%s holds group %q", name, g.ID))
			}
			c.groups = append(c.groups, g)
		}
	}
	slices.SortStableFunc(c.groups, func(a, b Group) int { return cmp.Compare(rank(a.ID), rank(b.ID)) })
	for _, g := range c.groups {
		for _, check := range g.Checks {
			faults = append(faults, c.add(g.ID, check)...)
		}
	}
	return c, errors.Join(faults...)
}

func rank(group string) uint { return uint(slices.Index(groupOrder, group)) } // unknown ones are last

var goodID = regexp.MustCompile(`^[A-Z]{3}-[0-9]{3}$`)

// add takes a check in and says what is wrong with it.
func (c *catalogue) add(group string, k *Check) (faults []error) {
	wrong := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("check %s: "+format, append([]any{k.ID}, args...)...))
	}
	switch {
	case !goodID.MatchString(k.ID) || k.Group() != group:
		wrong("the id is not %s-NNN", group)
	case c.byID[k.ID] != nil:
		wrong("the id is there twice")
	case len(c.checks) > 0 && c.checks[len(c.checks)-1].Group() == group && c.checks[len(c.checks)-1].ID > k.ID:
		wrong("is not in the order of ids")
	}
	for _, s := range k.Sources {
		if _, ok := c.sources[s]; !ok {
			wrong("source %s is unknown", s)
		}
	}
	k.validate(wrong)
	c.byID[k.ID] = k
	c.checks = append(c.checks, k)
	return faults
}

// validate says what a check lacks, apart from its place in the catalogue.
func (c *Check) validate(wrong func(format string, args ...any)) {
	for _, field := range []struct{ name, text string }{
		{"title", c.Title}, {"scope", c.Scope}, {"confidence", c.Confidence}, {"expected", c.Expected},
		{"condition", c.Condition}, {"why", c.Why}, {"fix", c.Fix},
	} {
		if strings.TrimSpace(field.text) == "" {
			wrong("%s is empty", field.name)
		}
	}
	if c.Scope == scopeWaiver { // about no kind of object, and nobody else's facts
		return
	}
	if c.Severity == 0 || len(c.Kinds) == 0 || len(c.Causes) == 0 || len(c.Sources) == 0 {
		wrong("severity, kinds, causes and sources are needed")
	}
	if !slices.Contains([]string{"object", "graph", "path", "gateway"}, c.Scope) || !slices.Contains([]string{"high", "medium", "low"}, c.Confidence) {
		wrong("scope %q or confidence %q is unknown", c.Scope, c.Confidence)
	}
	if (c.Scope == "object") != (c.When != "") {
		wrong("scope object has a CEL expression, the others have a rule")
	}
	for _, kind := range c.Kinds {
		if c.Scope != "gateway" && !slices.Contains(products, kind) && !slices.ContainsFunc(c.Resources, func(r topology.Resource) bool { return r.Kind == kind }) {
			wrong("kind %s is not among its resources", kind)
		}
	}
	if c.Patch != "" {
		var v any
		if err := yaml.Unmarshal([]byte(c.Patch), &v); err != nil {
			wrong("patch: %v", err)
		}
	}
}
