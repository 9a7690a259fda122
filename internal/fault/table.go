package fault

import (
	"bytes"
	"embed"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Verdict is what an answer, or the lack of one, means.
type Verdict struct {
	Class     Class
	Scope     Scope
	Reason    string // machine word of low cardinality, for logs, metrics and error bodies
	Breaker   bool   // evidence of a failing target; only an Outage ever is
	Again     bool   // one more call to the same target would be sensible by itself
	Elsewhere bool   // a candidate outside Scope may serve the request
	Wait      time.Duration
	HasWait   bool
}

// rule is one row of a table. A row matches when each condition it states
// holds; the first matching row decides.
type rule struct {
	Vendor  []string          `json:"vendor"`
	Status  []string          `json:"status"` // "429" or "5xx"; "200" is an error inside a success
	Code    []string          `json:"code"`
	Type    []string          `json:"type"`
	Param   []string          `json:"param"`
	Inner   []string          `json:"inner"`
	Detail  []string          `json:"detail"` // words among the error's metadata
	Header  map[string]string `json:"header"`
	Flat    bool              `json:"flat"`    // {"statusCode":…,"message":…}, an API gateway's own
	Empty   bool              `json:"empty"`   // no body
	Said    bool              `json:"said"`    // the body is a JSON object: the server itself spoke, not an edge before it
	NoWait  bool              `json:"no_wait"` // the upstream names no time
	Prose   string            `json:"prose"`   // pattern in the message: only where no code tells
	ClassIn string            `json:"class"`
	ScopeIn string            `json:"scope"`
	Reason  string            `json:"reason"`
	Again   bool              `json:"again"`
	Else    bool              `json:"elsewhere"`
	Neutral bool              `json:"neutral"` // an outage that is no evidence against the target
	WaitIn  string            `json:"wait"`
	Words   bool              `json:"prose_wait"` // the message may name the wait

	class Class
	scope Scope
	wait  time.Duration
	prose *regexp.Regexp
}

// Table classifies the answers of one provider type. It is immutable.
type Table struct{ rules []rule }

//go:embed rules/*.json
var ruleFiles embed.FS

var (
	tables = loadTables()
	hosts  = loadHosts()
)

// TableFor is the table of a provider type. Simulated providers answer as
// OpenAI does.
func TableFor(providerType string) (*Table, bool) {
	if providerType == "simulated" {
		providerType = "openai"
	}
	t, ok := tables[providerType]
	return t, ok
}

// VendorOfHost names the kind of server behind a well-known host, or "".
func VendorOfHost(host string) string { return hosts[strings.ToLower(host)] }

// loadTables joins, for each type, the rows of proxies and of unmistakable
// codes, the type's own rows, and the rows that judge by status alone.
func loadTables() map[string]*Table {
	first, last := loadRules("first"), loadRules("last")
	out := map[string]*Table{}
	for _, name := range []string{"openai", "azure", "openai-compatible"} {
		out[name] = &Table{rules: slices.Concat(first, loadRules(name), last)}
	}
	return out
}

// loadRules reads an embedded table. A mistake in one is a mistake of the
// build, which the tests find.
func loadRules(name string) []rule {
	var rules []rule
	mustRead("rules/"+name+".json", &rules)
	for i := range rules {
		r := &rules[i]
		c, s := slices.Index(classNames[:], r.ClassIn), slices.Index(scopeNames[:], r.ScopeIn)
		if c < 0 || s < 0 || r.Reason == "" {
			panic("fault: bad row " + strconv.Itoa(i) + " in " + name)
		}
		r.class, r.scope = Class(c), Scope(s)
		if r.WaitIn != "" {
			d, err := time.ParseDuration(r.WaitIn)
			if err != nil {
				panic("fault: bad wait in " + name)
			}
			r.wait = d
		}
		if r.Prose != "" {
			r.prose = regexp.MustCompile(r.Prose)
		}
	}
	return rules
}

func loadHosts() (h map[string]string) {
	mustRead("rules/hosts.json", &h)
	return h
}

func mustRead(name string, into any) {
	data, err := ruleFiles.ReadFile(name)
	if err == nil {
		err = strict(data, into)
	}
	if err != nil {
		panic("fault: " + name + ": " + err.Error())
	}
}

// strict decodes JSON in which every key must be known.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Answer is an upstream's answer that is not a success.
type Answer struct {
	Vendor string // kind of server, "" when unknown
	Status int
	Header http.Header
	Body   []byte // its beginning, at most 64 KiB
	Now    time.Time
	// PassThrough says that the path names an object and not a model: its
	// absence is then the caller's business.
	PassThrough bool
}

// Classify judges an answer by its status.
func (t *Table) Classify(a Answer) Verdict {
	if a.PassThrough && a.Status == http.StatusNotFound {
		return Verdict{Class: Client, Scope: ScopeRequest, Reason: "not_found"}
	}
	return t.judge(a, parseError(a.Body))
}

// ClassifyEvent judges an error found inside a success: the payload of an
// event, or a whole JSON body. A code that no row knows but that is an HTTP
// status counts as that status, as gateways in front of others mean it.
// Whatever says no more than that something failed is an outage.
func (t *Table) ClassifyEvent(vendor string, data []byte, now time.Time) Verdict {
	a, e := Answer{Vendor: vendor, Status: http.StatusOK, Body: data, Now: now}, parseError(data)
	v := t.judge(a, e)
	if v.Reason != errorInSuccess {
		return v
	}
	status, err := strconv.Atoi(e.code)
	if err != nil || status < 400 || status > 599 {
		return v
	}
	a.Status = status
	if as := t.judge(a, e); as.Class != Outage {
		return as
	}
	return v
}

// errorInSuccess is the reason of the row that judges what no other row knows
// of the errors inside a success.
const errorInSuccess = "error_in_200"

func (t *Table) judge(a Answer, e errorBody) Verdict {
	wait, has := statedWait(a.Header, e, a.Now)
	if !has && limited(a.Status) {
		wait, has = resetWait(a.Header, a.Now)
	}
	for i := range t.rules {
		r := &t.rules[i]
		if !r.matches(a, e, has) {
			continue
		}
		v := Verdict{Class: r.class, Scope: r.scope, Reason: r.Reason, Again: r.Again, Elsewhere: r.Else, Breaker: r.class == Outage && !r.Neutral}
		if r.Words && !has {
			wait, has = proseWait(e.message)
		}
		if !has && r.wait > 0 {
			wait, has = r.wait, true
		}
		if has && (v.Class == Capacity || v.Class == Outage) {
			v.Wait, v.HasWait = wait, true
		}
		return v
	}
	return Verdict{Class: Outage, Scope: ScopeTarget, Reason: "protocol", Breaker: true, Elsewhere: true}
}

// limited reports whether the x-ratelimit headers explain a status. They come
// with every answer of some providers; beside a server fault their resets say
// nothing about when it ends.
func limited(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusPaymentRequired || status == http.StatusForbidden
}

func (r *rule) matches(a Answer, e errorBody, hasWait bool) bool {
	in := func(list []string, v string) bool { return len(list) == 0 || v != "" && slices.Contains(list, v) }
	switch {
	case len(r.Vendor) > 0 && !slices.Contains(r.Vendor, a.Vendor),
		!statusIn(r.Status, a.Status),
		!in(r.Code, e.code), !in(r.Type, e.kind), !in(r.Param, e.param), !in(r.Inner, e.inner),
		r.Flat && !e.flat, r.Said && !e.said, r.Empty && len(a.Body) > 0, r.NoWait && hasWait,
		r.prose != nil && !r.prose.MatchString(e.message):
		return false
	}
	if len(r.Detail) > 0 && !slices.ContainsFunc(r.Detail, func(w string) bool { return slices.Contains(e.details, w) }) {
		return false
	}
	for k, v := range r.Header {
		if !strings.EqualFold(a.Header.Get(k), v) {
			return false
		}
	}
	return true
}

func statusIn(list []string, status int) bool {
	if len(list) == 0 {
		return true
	}
	s := strconv.Itoa(status)
	return slices.ContainsFunc(list, func(want string) bool {
		return want == s || len(s) == 3 && want == s[:1]+"xx"
	})
}
