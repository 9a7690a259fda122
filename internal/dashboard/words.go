package dashboard

import (
	"fmt"
	"hash/fnv"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hourthree/hourthree/internal/admin"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/rollout"
)

// functions are what templates may call.
var functions = template.FuncMap{
	"name":    func(v any) string { return display(v, longest) },
	"text":    func(v any) string { return display(v, longestText) },
	"key":     key,
	"clock":   clock,
	"span":    span,
	"left":    left,
	"until":   func(now, t time.Time) string { return left(now, &t) },
	"ago":     func(now, t time.Time) string { return span(now.Sub(t)) },
	"percent": percent,
	"rate":    rate,
	"count":   count,
	"bytes":   byteSize,
	"ms":      millis,
	"two":     func(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) },
	"met":     met,
	"burn":    burn,
	"bar":     func(f float64) string { return strconv.FormatFloat(100*min(max(f, 0), 1), 'f', 1, 64) },
	"path":    url.PathEscape,
	"measure": measured,
	"used":    used,
	"words":   func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"spaced":  func(subject string) string { return strings.Replace(subject, ":", " ", 1) },
	"add":     func(a, b int) int { return a + b },
}

// longest is how many characters of a name are shown, longestText of a sentence.
const (
	longest     = 160
	longestText = 600
)

// display is a name or a sentence as text: without what would turn or hide the text
// around it, and not longer than a page can bear.
func display(v any, most int) string {
	s := fmt.Sprint(v)
	s = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, s)
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// clock is a moment in UTC: the time, and the day where it is another one.
func clock(now, t time.Time) string {
	now, t = now.UTC(), t.UTC()
	if now.Format(time.DateOnly) == t.Format(time.DateOnly) {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// span is a length of time in at most two units.
func span(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %02d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %02d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %02d h", s/86400, s/3600%24)
}

// left is how long something lasts still, nothing once it is over.
func left(now time.Time, t *time.Time) string {
	if t == nil || !t.After(now) {
		return ""
	}
	return span((t.Sub(now) + time.Second - 1).Truncate(time.Second)) // of 0.3 s there is still something left
}

// percent never rounds up to all, or down to nothing.
func percent(f float64) string {
	switch p := 100 * f; {
	case math.IsNaN(f):
		return "–"
	case p > 0 && p < 0.05:
		return "< 0.1 %"
	case p < 100 && p > 99.95:
		return "> 99.9 %"
	case p == math.Trunc(p):
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
}

// rate is in requests a second.
func rate(f float64) string {
	switch {
	case math.IsNaN(f):
		return "–"
	case f > 0 && f < 0.005:
		return "< 0.01/s"
	case f < 10:
		return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 2, 64), ".00") + "/s"
	case f < 1000:
		return strconv.FormatFloat(f, 'f', 1, 64) + "/s"
	}
	return count(f) + "/s"
}

// count is a number of things, thousands apart by a thin space.
func count(v any) string {
	var n int64
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int64:
		n = v
	case *int64:
		n = *v
	case float64:
		n = int64(math.Round(v))
	}
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func byteSize(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 10<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func millis(d time.Duration) string {
	if d < 10*time.Second {
		return count(d.Milliseconds()) + " ms"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// measured is a value of a rollout's measure as people read it.
func measured(m rollout.Measure, v float64) string {
	switch m.Name {
	case "success", "client", "relabelled", "capacity":
		return percent(v)
	case "class_mix":
		return strconv.FormatFloat(v, 'f', 2, 64) + " bits"
	case "first_content":
		if v == 0 { // not measured
			return "–"
		}
		return strconv.FormatFloat(v, 'f', 2, 64) + " ×"
	case "memory":
		return byteSize(int64(v))
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// used is a limit with what may come of it at once, nothing without a limit. Of slots
// it is how many are taken, and nothing where nobody counts.
func used(b admin.Bound, of string) string {
	u := b.Use
	if u == nil {
		u = &admin.Use{}
	}
	say := func(free *int64, most int64) string {
		switch {
		case most == 0:
			return ""
		case free == nil:
			return count(most) + "/min"
		}
		return count(most) + "/min, " + count(*free) + " free now"
	}
	switch of {
	case "requests":
		return say(u.RequestsLeft, b.RPM)
	case "tokens":
		return say(u.TokensLeft, b.TPM)
	case "slots":
		if b.Use == nil && b.Concurrency == 0 {
			return ""
		}
		in := count(u.InFlight)
		if b.Concurrency > 0 {
			in += " of " + count(b.Concurrency)
		}
		return in
	}
	if b.USDPerDay == 0 {
		return ""
	}
	most := strconv.FormatFloat(b.USDPerDay, 'f', 2, 64)
	if u.USDSpent == nil {
		return most
	}
	return strconv.FormatFloat(*u.USDSpent, 'f', 2, 64) + " of " + most
}

// key is an id for an element about something with this name: the same at each
// showing, and whatever the name is made of.
func key(kind string, name any) string {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, name) // a hash takes everything
	return kind + "-" + strconv.FormatUint(h.Sum64(), 36)
}

// met is the share of an objective's requests that succeeded, of none all.
func met(b detect.Budget) float64 {
	if b.Good+b.Bad == 0 {
		return 1
	}
	return float64(b.Good) / float64(b.Good+b.Bad)
}

// burn is how many times too fast its budget goes over the shortest window.
func burn(b detect.Budget) float64 {
	if len(b.Burns) == 0 {
		return 0
	}
	return b.Burns[0].Rate
}
