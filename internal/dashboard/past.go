package dashboard

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/history"
)

// stretch is how far back a plot goes.
type stretch struct {
	Name string
	Text string
	Back time.Duration
	Step time.Duration // a multiple of what is kept for so long
}

var stretches = [...]stretch{
	{"1h", "hour", time.Hour, 20 * time.Second},
	{"24h", "day", 24 * time.Hour, 5 * time.Minute},
	{"7d", "week", 7 * 24 * time.Hour, 30 * time.Minute},
}

func stretchOf(name string) stretch {
	for _, s := range stretches {
		if s.Name == name {
			return s
		}
	}
	return stretches[0]
}

// past is a plot with what it says to who cannot see it.
type past struct {
	Subject string
	Series  string // names, with commas
	Range   stretch
	Ranges  [len(stretches)]stretch
	Rows    []lineSummary
	At      []time.Time // of the table's rows
	Failed  string
}

// lineSummary is one series in words: where it lies, and a few of its values.
type lineSummary struct {
	Name, Unit              string
	Least, Mean, Most, Last float64
	Values                  []float64 // NaN where nothing is known
}

// tableRows is how many values the table in place of a plot has.
const tableRows = 12

// past asks for what a plot shows, nil where no past is kept.
func (o Options) past(now time.Time, subject string, series []string, back string) *past {
	if o.History == nil {
		return nil
	}
	p := &past{Subject: subject, Series: strings.Join(series, ","), Range: stretchOf(back), Ranges: stretches}
	a, err := o.History(now, history.Query{From: now.Add(-p.Range.Back), To: now, Step: p.Range.Step, Series: series, Subject: subject})
	if err != nil {
		p.Failed = err.Error()
		return p
	}
	width := (len(a.At) + tableRows - 1) / tableRows
	for i := 0; i < len(a.At); i += width {
		p.At = append(p.At, time.Unix(a.At[i], 0))
	}
	for _, name := range series {
		if i := slices.IndexFunc(a.Series, func(s history.Series) bool { return s.Name == name && s.Subject == subject }); i >= 0 {
			p.Rows = append(p.Rows, summarise(a.Series[i], width))
		}
	}
	return p
}

// summarise takes means of so many values for each row of the table.
func summarise(s history.Series, width int) lineSummary {
	l := lineSummary{Name: s.Name, Unit: s.Unit, Least: math.NaN(), Most: math.NaN(), Last: math.NaN()}
	sum, n := 0.0, 0
	part, m := 0.0, 0
	for i, v := range s.Values {
		if v != nil {
			sum, n, part, m, l.Last = sum+*v, n+1, part+*v, m+1, *v
			if n == 1 {
				l.Least, l.Most = *v, *v
			}
			l.Least, l.Most = min(l.Least, *v), max(l.Most, *v)
		}
		if (i+1)%width == 0 || i+1 == len(s.Values) {
			l.Values = append(l.Values, part/float64(m)) // of none it is NaN
			part, m = 0, 0
		}
	}
	l.Mean = sum / float64(n)
	return l
}

// Say is a value of the series as people read it.
func (l lineSummary) Say(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case l.Unit == "per_second":
		return rate(v)
	case l.Unit == "bytes":
		return byteSize(int64(v))
	case l.Unit == "seconds":
		return millis(time.Duration(v * float64(time.Second)))
	case l.Unit == "ratio":
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return count(v)
}

// longestSubject bounds what is asked for in an address.
const longestSubject = 400

// plot serves what a plot draws.
func (o Options) plot(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	subject, series := q.Get("subject"), strings.Split(q.Get("series"), ",")
	if o.History == nil || len(subject) > longestSubject || len(series) > 12 {
		o.lost(w, r)
		return
	}
	now, s := time.Now(), stretchOf(q.Get("range"))
	a, err := o.History(now, history.Query{From: now.Add(-s.Back), To: now, Step: s.Step, Series: series, Subject: subject})
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // a reader that has left is told nothing
		return
	}
	body, err := json.Marshal(a)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	tagged(w, r, body)
}

// plotted are the plots of a subject's kind, each with series of one unit.
var plotted = map[string][]struct {
	Title  string
	Series []string
}{
	"": {
		{"Requests a second", flowSeries},
		{"In flight and waiting", []string{"in_flight", "queued"}},
		{"Memory for requests", []string{"memory"}},
		{"First content, median and 95 % of requests", []string{"first_content_p50", "first_content_p95"}},
	},
	"workload": {
		{"Requests a second", flowSeries},
		{"Amplification", []string{"amplification_in", "amplification_out"}},
	},
	"target": {
		{"Calls a second", []string{"attempts", "failed"}},
		{"In flight", []string{"in_flight"}},
	},
}

var flowSeries = []string{"offered", "goodput", "attempts", "refused", "degraded", "failed"}

type pastPage struct {
	Subject string
	Plots   []titled
}

type titled struct {
	Title string
	*past
}

func showPast(o Options, f *frame, r *http.Request) (string, any) {
	q := r.URL.Query()
	v := pastPage{Subject: q.Get("subject")}
	if o.History == nil || len(v.Subject) > longestSubject {
		return "", nil
	}
	kind, _, _ := strings.Cut(v.Subject, ":")
	for _, p := range plotted[kind] {
		one := o.past(f.Now, v.Subject, p.Series, q.Get("range"))
		if len(one.Rows) > 0 || one.Failed != "" {
			v.Plots = append(v.Plots, titled{p.Title, one})
		}
	}
	return "The past", v
}
