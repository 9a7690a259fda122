package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// The checks of waivers themselves.
const (
	waiverBad     = "WVR-001"
	waiverUnused  = "WVR-002"
	waiverExpired = "WVR-003"
	waiverGroup   = "WVR"
	scopeWaiver   = "waiver"
)

// waivePrefix begins the annotation that waives a check, see docs/audit.md.
const waivePrefix = "hourthree.dev/waive."

// deepest bounds the levels of an object that are searched for misplaced
// annotations.
const deepest = 32

// annotationsAt are the places of an object at which annotations waive.
var annotationsAt = []string{
	"metadata.annotations",
	"spec.template.metadata.annotations",
	"spec.jobTemplate.spec.template.metadata.annotations",
}

// waiver is a Waiver and what became of it.
type waiver struct {
	Waiver
	on      *manifest.Object // that carries it, nil for one of a file
	path    string           // of the annotation, or of the entry in the file
	expired bool
	used    bool   // it applies to a finding, in force or not
	fault   string // why it is not in force, with the remedy
	remedy  string
}

// waiving applies waivers to a report.
type waiving struct {
	report  *Report
	options Options
	list    []*waiver
}

// waive marks the findings that somebody decided to live with, and adds what
// there is to say about the waivers themselves. Counts and order are the
// caller's.
func waive(g *evidence, r *Report) {
	w := waiving{report: r, options: g.opt}
	for i, one := range g.opt.Waivers {
		w.add(&waiver{Waiver: one, path: fmt.Sprintf("waivers[%d]", i)})
	}
	if !g.opt.NoInline {
		for _, o := range g.Objects() {
			w.inline(o, o.Root, "", 0)
		}
	}
	for i := range r.Findings {
		w.apply(&r.Findings[i])
	}
	w.inherit()
	for _, one := range w.list {
		w.judge(one)
	}
}

// exact finds a check by its id as it is written.
func exact(id string) *Check {
	if c, ok := Find(id); ok && c.ID == id {
		return c
	}
	return nil
}

// add takes a waiver in and finds out whether it is in force.
func (w *waiving) add(one *waiver) {
	w.list = append(w.list, one)
	if one.fault != "" {
		return
	}
	until, err := time.Parse(time.DateOnly, one.Until)
	switch {
	case exact(one.Check) == nil:
		one.fault, one.remedy = fmt.Sprintf("there is no check %q", one.Check), meant(one.Check)
	case group(one.Check) == waiverGroup:
		one.fault, one.remedy = one.Check+" cannot be waived", "correct or remove the waiver that it reports"
	case selects(w.options.Firm, one.Check):
		one.fault, one.remedy = one.Check+" may not be waived: the policy of the waivers file says so", "remove the waiver and mend the finding"
	case strings.TrimSpace(one.Reason) == "":
		one.fault, one.remedy = "it gives no reason", form(one)
	case one.Until == "":
		one.fault, one.remedy = "it has no last day", form(one)
	case err != nil:
		one.fault, one.remedy = fmt.Sprintf("%q is not a date", one.Until), "write the last day as 2027-01-31"
	default:
		one.expired = day(w.options.Today).After(until)
	}
}

// day is the date of t, as time.Parse has dates.
func day(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func form(one *waiver) string {
	if one.on != nil {
		return `write "REASON; until=2027-01-31"`
	}
	return "give it reason and until"
}

// meant is the remedy for an id that no check has.
func meant(id string) string {
	if c, ok := Find(id); ok {
		return "write " + c.ID
	}
	if list, err := Select([]string{id}); err == nil && len(list) > 1 {
		return "it is a group, and a waiver is for one check, such as " + list[0].ID
	}
	return "hourthree audit checks list shows the ids" + suggest(strings.ToUpper(id))
}

// inline collects what looks like a waiver in an object, right or misplaced.
func (w *waiving) inline(o *manifest.Object, value any, path string, depth int) {
	if depth > deepest {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at := below(path, k)
			if looksLikeWaiver(k) {
				w.add(inlineWaiver(o, at, path, k, v[k]))
				continue
			}
			w.inline(o, v[k], at, depth+1)
		}
	case []any:
		for i, e := range v {
			w.inline(o, e, path+"["+strconv.Itoa(i)+"]", depth+1)
		}
	}
}

// below is the path of a key.
func below(path, k string) string {
	if strings.ContainsAny(k, ".[") {
		return path + "[" + k + "]"
	}
	if path == "" {
		return k
	}
	return path + "." + k
}

// looksLikeWaiver is wide, so that a slip of the pen is told and not ignored.
func looksLikeWaiver(k string) bool {
	k = strings.ToLower(k)
	return strings.HasPrefix(k, "hourthree") && strings.Contains(k, "/waive")
}

// inlineWaiver reads a key and value that stand in the map at path.
func inlineWaiver(o *manifest.Object, at, path, k string, value any) *waiver {
	ref := o.Ref()
	line, col := o.Position(at)
	one := &waiver{on: o, path: at, Waiver: Waiver{
		Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Inline: true,
		Place: topology.Place{File: o.Origin.File, Line: line, Column: col, Live: o.Origin.Live},
	}}
	rest, ok := strings.CutPrefix(k, waivePrefix)
	one.Check, one.Container, _ = strings.Cut(rest, ".")
	text, isText := value.(string)
	switch {
	case !ok:
		one.fault, one.remedy = fmt.Sprintf("%q is not how a waiver is written", k), "write "+waivePrefix+"ID"
	case !slices.Contains(annotationsAt, path):
		one.fault, one.remedy = "a waiver in "+cmp.Or(path, "the root")+" has no effect", "put it in metadata.annotations of the object or of its pod template"
	case !isText:
		one.fault, one.remedy = "its value is not text", `write "REASON; until=2027-01-31"`
	default:
		one.Reason, one.Until = reasonUntil(text)
	}
	return one
}

// reasonUntil takes "REASON; until=DATE" apart.
func reasonUntil(text string) (reason, until string) {
	i := strings.LastIndexByte(text, ';')
	if i < 0 {
		return text, ""
	}
	date, ok := strings.CutPrefix(strings.TrimSpace(text[i+1:]), "until=")
	if !ok {
		return text, ""
	}
	return strings.TrimSpace(text[:i]), strings.TrimSpace(date)
}

// apply waives a finding by the first waiver in force that applies to it.
func (w *waiving) apply(f *Finding) {
	for _, one := range w.list {
		if one.fault != "" || !one.applies(f.ID, f.Object, f.Container) {
			continue
		}
		one.used = true
		if f.State == Fail && !one.expired {
			f.State, f.Waiver = Waived, &one.Waiver
		}
	}
}

// applies compares ids exactly: one id is one condition.
func (one *waiver) applies(id string, o manifest.Ref, container string) bool {
	if one.Check != id || one.Container != "" && one.Container != container {
		return false
	}
	if one.on != nil {
		return one.on.Ref() == o
	}
	return (one.Kind == "" || one.Kind == o.Kind) &&
		(one.Namespace == "" || glob(one.Namespace, o.Namespace)) &&
		(one.Name == "" || glob(one.Name, o.Name))
}

// glob matches text with a pattern in which * stands for any run of characters
// and ? for one.
func glob(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	star, from := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// inherit counts a waiver as used when an object that was made from the one
// that carries it used it: pods have the annotations of their template.
func (w *waiving) inherit() {
	type copied struct{ namespace, check, container, reason, until string }
	of := func(o *waiver) copied { return copied{o.Namespace, o.Check, o.Container, o.Reason, o.Until} }
	used := map[copied]bool{}
	for _, one := range w.list {
		if one.on != nil && one.used {
			used[of(one)] = true
		}
	}
	for _, one := range w.list {
		if one.on != nil && used[of(one)] {
			one.used = true
		}
	}
}

// judge reports on the waiver itself. What an owner made has its owner's
// waivers, and is not reported on again.
func (w *waiving) judge(one *waiver) {
	if one.on != nil && one.on.At("metadata.ownerReferences") != nil || !w.looked(one) {
		return
	}
	switch {
	case one.fault != "":
		w.find(one, waiverBad, one.fault, one.remedy)
	case one.used && one.expired:
		w.find(one, waiverExpired, "it was good until "+one.Until, "mend the finding, or decide anew and set a later day")
	case one.used:
	case w.undecided(one):
	default:
		w.find(one, waiverUnused, one.Check+" does not fail here", w.elsewhere(one))
	}
}

// looked says whether this run looked at what the waiver is about.
func (w *waiving) looked(one *waiver) bool {
	names := w.options.Namespaces
	in := len(names) == 0 || one.Namespace == "" ||
		slices.ContainsFunc(names, func(n string) bool { return n == one.Namespace || one.on == nil && glob(one.Namespace, n) })
	if !in || one.fault != "" {
		return in
	}
	return len(w.options.Checks) == 0 || selects(w.options.Checks, one.Check)
}

// undecided says whether the check could not be decided where the waiver applies.
func (w *waiving) undecided(one *waiver) bool {
	return slices.ContainsFunc(w.report.Open, func(o Open) bool {
		return o.ID == one.Check && (o.Object == nil || one.applies(o.ID, *o.Object, one.Container))
	})
}

// elsewhere is the remedy for an unused waiver: where its check does fail.
func (w *waiving) elsewhere(one *waiver) string {
	for _, f := range w.report.Findings {
		if f.ID == one.Check && f.State == Fail {
			at := f.Object.String()
			if one.on != nil && f.Object == one.on.Ref() {
				at = "container " + f.Container
			}
			return "remove it; the check fails for " + at
		}
	}
	return "remove it"
}

// find adds a finding on a waiver.
func (w *waiving) find(one *waiver, id, observed, remedy string) {
	c := exact(id)
	f := Finding{
		Check: c, ID: id, Severity: c.Severity, Title: c.Title, State: Fail,
		Object:    manifest.Ref{Group: manifest.FileGroup, Kind: "Waivers", Name: one.Place.File},
		Container: one.Container, Place: one.Place, Path: one.path,
		Observed: observed, Expected: remedy, Related: []RelatedPlace{}, Incidents: []string{},
	}
	if one.on != nil {
		f.Object, f.Container = one.on.Ref(), ""
	}
	path := one.path
	if one.on == nil { // an entry's number is no identity
		path = strings.Join([]string{one.Check, one.Kind, one.Namespace, one.Name}, "\n")
	}
	f.Key = keyOf(id, f.Object, one.Container, path)
	w.report.Findings = append(w.report.Findings, f)
}

// group is the letters of an id.
func group(id string) string {
	letters, _, _ := strings.Cut(id, "-")
	return letters
}

// selects says whether a list of ids and groups has an id.
func selects(list []string, id string) bool {
	return slices.Contains(list, id) || slices.Contains(list, group(id))
}
