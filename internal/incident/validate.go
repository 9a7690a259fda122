package incident

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of texts, in characters.
const (
	maxTitle   = 120
	maxSummary = 1200
)

// ownPrefix is that of the records that come with the program.
const ownPrefix = "HT-"

var (
	goodID   = regexp.MustCompile(`^[A-Z]{2,8}-[0-9]{4}$`)
	goodSlug = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	goodName = regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)
)

const (
	minuteLayout = "2006-01-02T15:04Z"
	dayLayout    = "2006-01-02"
)

// checker checks one record against the vocabulary and itself.
type checker struct {
	*decoder
	r     *Record
	vocab *Vocabulary
}

func (c *checker) run() {
	if !goodID.MatchString(c.r.ID) {
		c.fault("id", quoted(c.r.ID)+" is not an id", "two to eight capital letters, a hyphen and four digits: ACME-0001")
	}
	c.texts()
	c.times()
	c.timeline()
	c.minutes()
	c.words()
	c.sources()
	c.claims()
	c.figures()
	c.conditions()
	c.relations()
}

func (c *checker) texts() {
	c.text("title", c.r.Title, maxTitle)
	c.text("provider", c.r.Provider, maxTitle)
	c.text("service", c.r.Service, maxTitle)
	c.text("summary", c.r.Summary, maxSummary)
}

// text checks what must be there and not be too long; 0 is any length.
func (c *checker) text(path, s string, most int) {
	switch n := utf8.RuneCountInString(s); {
	case n == 0 && c.at[path] != nil && len(c.faults) > 0 && c.faulty(path): // said already
	case n == 0:
		c.fault(path, "is missing", "say it, as short as it can be")
	case most == maxTitle && strings.Contains(s, "\n"):
		c.fault(path, "has more than one line", "write it in one")
	case most > 0 && n > most:
		c.fault(path, fmt.Sprintf("has %d characters, %d are allowed", n, most), "shorten it")
	}
}

// faulty reports whether something was said about a path.
func (c *checker) faulty(path string) bool {
	return slices.ContainsFunc(c.faults, func(f Fault) bool { return f.Path == path })
}

// instant reads a time or a day.
func instant(s string) (time.Time, bool) {
	for _, layout := range []string{minuteLayout, dayLayout} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// date reads a day, a month or a year.
func date(s string) bool {
	return slices.ContainsFunc([]string{dayLayout, "2006-01", "2006"}, func(layout string) bool {
		_, err := time.Parse(layout, s)
		return err == nil
	})
}

// before compares two times as far as both say: a day is neither before nor
// after an hour of it.
func before(a, b string) bool {
	n := min(len(a), len(b))
	return a[:n] < b[:n]
}

func (c *checker) times() {
	r := c.r
	if r.Date != "" && !date(r.Date) {
		c.fault("date", quoted(r.Date)+" is not a date", "write it as 2026-05-29, 2026-05 or 2026")
	}
	for path, s := range map[string]string{"start": r.Start, "end": r.End} {
		if _, ok := instant(s); s != "" && !ok {
			c.fault(path, quoted(s)+" is not a time", "write it in UTC as 2026-05-29T09:20Z, or as a day")
			return
		}
	}
	switch {
	case r.Start != "" && !strings.HasPrefix(r.Start, r.Date) || r.Start != "" && r.Date == "":
		c.fault("date", quoted(r.Date)+" is not the day of the start, "+r.Start, "write "+r.Start[:len(dayLayout)])
	case r.Start != "" && r.End != "" && before(r.End, r.Start):
		c.fault("end", r.End+" is before the start, "+r.Start, "correct one of them")
	}
}

func (c *checker) timeline() {
	last := ""
	for i, m := range c.r.Timeline {
		path := fmt.Sprintf("timeline[%d]", i)
		c.text(path+".what", m.What, 0)
		if _, ok := instant(m.At); !ok {
			c.fault(path+".at", quoted(m.At)+" is not a time", "write it in UTC as 2026-05-29T09:20Z, or as a day")
			continue
		}
		if before(m.At, last) {
			c.fault(path+".at", m.At+" is before the entry above it, "+last, "put the timeline in order")
		}
		last = m.At
	}
}

// minutes checks the times to detect, acknowledge and resolve.
func (c *checker) minutes() {
	r, some := c.r, false
	for _, m := range []struct {
		path  string
		value *int
		late  bool // may be later than the end: some say so only afterwards
	}{{"time_to_detect", r.TimeToDetect, false}, {"time_to_acknowledge", r.TimeToAcknowledge, true}, {"time_to_resolve", r.TimeToResolve, false}} {
		some = some || m.value != nil
		switch {
		case m.value == nil:
		case *m.value < 0:
			c.fault(m.path, "is negative", "count the minutes from the start of the impact")
		case r.TimeToResolve != nil && !m.late && *m.value > *r.TimeToResolve:
			c.fault(m.path, fmt.Sprintf("%d minutes are more than the %d to resolve", *m.value, *r.TimeToResolve), "correct one of them")
		}
	}
	if some && r.TimeBasis == "" {
		c.fault("time_basis", "is missing", "say what the minutes are counted from, and who says so")
	}
	start, err1 := time.Parse(minuteLayout, r.Start)
	end, err2 := time.Parse(minuteLayout, r.End)
	if err1 != nil || err2 != nil || r.TimeToResolve == nil {
		return
	}
	if whole := int(end.Sub(start).Minutes()); *r.TimeToResolve > whole {
		c.fault("time_to_resolve", fmt.Sprintf("%d minutes are more than the %d from start to end", *r.TimeToResolve, whole), "correct one of them")
	}
}

func (c *checker) words() {
	c.word("domain", c.r.Domain, c.vocab.Domains)
	for _, t := range []struct {
		path  string
		list  []string
		known map[string]Word
	}{
		{"tags.causes", c.r.Tags.Causes, c.vocab.Causes},
		{"tags.symptoms", c.r.Tags.Symptoms, c.vocab.Symptoms},
		{"tags.topics", c.r.Tags.Topics, c.vocab.Topics},
		{"tags.components", c.r.Tags.Components, c.vocab.Components},
	} {
		if len(t.list) == 0 && t.path != "tags.components" {
			c.fault(t.path, "is empty", "give it at least one word")
		}
		for i, w := range t.list {
			c.word(fmt.Sprintf("%s[%d]", t.path, i), w, t.known)
		}
		c.once(t.path, t.list)
	}
}

// word checks one word of the vocabulary.
func (c *checker) word(path, w string, known map[string]Word) {
	if _, ok := known[w]; !ok && !c.faulty(path) {
		c.fault(path, quoted(w)+" is not a word of the vocabulary", didYouMean(near(w, known), "known are "+strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
	}
}

// near are the words nearest to w, by their other names too.
func near(w string, known map[string]Word) []string {
	var exact []string
	for _, s := range slices.Sorted(maps.Keys(known)) {
		if slices.ContainsFunc(known[s].Also, func(a string) bool { return slug(a) == slug(w) }) {
			exact = append(exact, s)
		}
	}
	if exact != nil {
		return exact
	}
	return nearest(w, slices.Sorted(maps.Keys(known)))
}

// once checks that a list says nothing twice.
func (c *checker) once(path string, list []string) {
	for i, w := range list {
		if w != "" && slices.Index(list, w) < i {
			c.fault(fmt.Sprintf("%s[%d]", path, i), w+" is there twice", "remove one")
		}
	}
}

func (c *checker) sources() {
	used := map[string]bool{}
	for _, cl := range c.r.Claims {
		used[cl.Source], used[cl.Second] = true, true
	}
	if len(c.r.Sources) == 0 {
		c.fault("sources", "is missing", "name at least one source")
	}
	for i, s := range c.r.Sources {
		path := fmt.Sprintf("sources[%d]", i)
		c.numbered(path, s.ID, "s", i)
		c.text(path+".title", s.Title, 0)
		c.text(path+".publisher", s.Publisher, 0)
		c.word(path+".access", s.Access, c.vocab.Access)
		if u, err := url.Parse(s.URL); s.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			c.fault(path+".url", quoted(s.URL)+" is not an address", "write it with https://, or leave it out")
		}
		if s.Date != "" && !date(s.Date) {
			c.fault(path+".date", quoted(s.Date)+" is not a date", "write it as 2026-05-29, 2026-05 or 2026")
		}
		if !used[s.ID] {
			c.fault(path, "no claim is from this source", "remove it, or name it in a claim")
		}
	}
}

// numbered checks an id that is a letter and the place in the list.
func (c *checker) numbered(path, id, letter string, i int) {
	if want := fmt.Sprintf("%s%d", letter, i+1); id != want {
		c.fault(path+".id", quoted(id)+" is not in its place", "number them in order: this one is "+want)
	}
}

func (c *checker) claims() {
	if len(c.r.Claims) == 0 {
		c.fault("claims", "is missing", "state at least one claim")
	}
	for i, cl := range c.r.Claims {
		path := fmt.Sprintf("claims[%d]", i)
		c.numbered(path, cl.ID, "c", i)
		c.text(path+".text", cl.Text, 0)
		c.word(path+".kind", string(cl.Kind), c.vocab.Kinds)
		if cl.Kind == Derived && cl.Basis == "" {
			c.fault(path+".basis", "is missing", "say how the claim follows from others")
		}
		first, ok := c.r.Source(cl.Source)
		if !ok && !c.faulty(path+".source") {
			c.fault(path+".source", "there is no source "+quoted(cl.Source), "name the id of one, such as s1")
		}
		second, ok := c.r.Source(cl.Second)
		switch {
		case cl.Second != "" && !ok:
			c.fault(path+".second", "there is no source "+quoted(cl.Second), "name the id of one, such as s2")
		case cl.Second != "" && publisher(first) == publisher(second):
			c.fault(path+".second", "is from the same publisher as "+cl.Source, "a second source is independent of the first")
		case cl.Kind == Confirmed && !(first.Official && first.read()) && cl.Second == "":
			c.fault(path+".kind", "is confirmed, and "+cl.Source+" is not the operator's own record, read as such", "name an independent source in second, or call it reported")
		}
	}
}

func (c *checker) figures() {
	for i, f := range c.r.Figures {
		path := fmt.Sprintf("figures[%d]", i)
		if !goodName.MatchString(f.Name) {
			c.fault(path+".name", quoted(f.Name)+" is not a name", "small letters, digits and underscores: peak_error_share")
		}
		c.text(path+".unit", f.Unit, 0)
		if !slices.ContainsFunc(c.r.Claims, func(cl Claim) bool { return cl.ID == f.Claim }) {
			c.fault(path+".claim", "there is no claim "+quoted(f.Claim), "name the claim that states the figure")
		}
	}
}

func (c *checker) conditions() {
	for i, x := range c.r.Conditions {
		path := fmt.Sprintf("conditions[%d]", i)
		c.word(path+".slug", x.Slug, c.vocab.Conditions)
		c.text(path+".text", x.Text, 0)
	}
	c.once("conditions", c.r.Words(Needs))
}

func (c *checker) relations() {
	for i, id := range c.r.Related {
		if id == c.r.ID {
			c.fault(fmt.Sprintf("related[%d]", i), "the record is related to itself", "remove it")
		}
	}
	c.once("related", c.r.Related)
	for i, d := range c.r.Drills {
		if !goodSlug.MatchString(d) {
			c.fault(fmt.Sprintf("drills[%d]", i), quoted(d)+" is not the name of a drill", "see hourthree drill list")
		}
	}
	c.once("drills", c.r.Drills)
}
