package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hourthree/hourthree/internal/drill"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is all that the template reads.
type page struct {
	CSS       template.CSS
	Title     string
	Names     []string
	Many      bool // contenders: their names stand upright
	Rows      []summaryRow
	Scenarios []scenarioView
}

type summaryRow struct {
	ID, Title, Name string
	Verdicts        []string
}

type scenarioView struct {
	ID, Title, Name, About string
	Incident, Times        string
	Facts, Ours            []string
	Marks                  []markView
	Runs                   []runView
	Criteria               []criterionView
	Many                   bool
}

type markView struct {
	N                    int
	Clock, Virtual, Text string
}

type criterionView struct {
	Name, Expr string
	Cells      []cellView
}

type cellView struct{ Class, Word, Said string }

type runView struct {
	ID, About string
	Figures   figures
	Workloads []workloadView
	Places    []place
	Timeline  timelineView
	Plots     []plotView
}

type workloadView struct {
	Name, Good, Up, In, P99          string
	Fresh, Degraded, Refused, GaveUp string
	Wrong, Statuses                  string
}

// HTML writes the results as one page that needs nothing else.
func HTML(w io.Writer, results []*drill.Result) error {
	results = present(results)
	p := page{CSS: template.CSS(pageCSS), Title: "Drills", Names: contenders(results)}
	p.Many = many(p.Names)
	if len(results) == 1 {
		p.Title = titleOf(results[0])
	}
	for i, r := range results {
		id := fmt.Sprintf("s%d", i+1)
		p.Scenarios = append(p.Scenarios, viewOf(id, r))
		row := summaryRow{ID: id, Title: titleOf(r), Name: clean(r.Scenario)}
		for _, name := range p.Names {
			row.Verdicts = append(row.Verdicts, verdictOf(r, name))
		}
		p.Rows = append(p.Rows, row)
	}
	var b strings.Builder
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// manyNames is how many contenders a table has side by side in full width.
const manyNames = 6

// many reports that names do not fit side by side.
func many(names []string) bool {
	letters := 0
	for _, n := range names {
		letters += utf8.RuneCountInString(n)
	}
	return len(names) > manyNames || letters > 80
}

func viewOf(id string, r *drill.Result) scenarioView {
	c := clockOf(r)
	v := scenarioView{
		ID: id, Title: titleOf(r), Name: clean(r.Scenario), Incident: clean(r.Incident), Times: c.span(),
		About: fmt.Sprintf("%s virtual, seed %d", short(r.Length), r.Seed),
		Facts: cleaned(r.Facts), Ours: cleaned(r.Ours), Criteria: criteriaOf(r), Many: len(r.Runs) > manyNames,
	}
	marks := inOrder(r.Marks)
	for i, m := range marks {
		v.Marks = append(v.Marks, markView{i + 1, c.stamp(m.At), short(m.At), clean(m.Text)})
	}
	top := tops(r, c)
	for i := range r.Runs {
		v.Runs = append(v.Runs, runOf(fmt.Sprintf("%sr%d", id, i+1), &r.Runs[i], c, marks, top))
	}
	return v
}

func runOf(id string, run *drill.Run, c clock, marks []drill.Mark, top map[string]float64) runView {
	v := runView{ID: id, About: clean(run.About), Figures: figuresOf(run), Places: placesOf(run), Timeline: timeline(id+"t", run, c, marks, top)}
	for i, p := range plotsOf(run, c) {
		if !p.shown(top) {
			continue
		}
		v.Plots = append(v.Plots, p.view(fmt.Sprintf("%sp%d", id, i+1), c, marks, top[p.key]))
	}
	for _, s := range run.Workloads {
		t := s.Totals
		v.Workloads = append(v.Workloads, workloadView{
			Name: clean(s.Name), Fresh: count(t.Fresh), Good: percent(t.Good, t.Fresh), Degraded: count(t.Degraded),
			Refused: count(t.Refused), GaveUp: count(t.Late), Wrong: count(t.Wrong), Statuses: statuses(t), Up: ratio(t.Upstream, t.Fresh), In: ratio(t.Inbound, t.Fresh),
			P99: millis(worstP99(&drill.Run{Workloads: []drill.Series{s}})),
		})
	}
	return v
}

// span is the incident's time, and how it relates to the virtual one.
func (c clock) span() string {
	rate := "One virtual second is one second of the incident."
	if c.factor != 1 {
		rate = fmt.Sprintf("One virtual second is %s of the incident.", short(time.Duration(c.factor*float64(time.Second))))
	}
	if !c.known() {
		return rate
	}
	from, to := c.when(0), c.when(c.length)
	end := "15:04"
	if from.YearDay() != to.YearDay() || from.Year() != to.Year() {
		end = "2 January 2006, 15:04"
	}
	return fmt.Sprintf("%s to %s UTC. %s", from.Format("2 January 2006, 15:04"), to.Format(end), rate)
}

// stamp is the time of a mark.
func (c clock) stamp(at time.Duration) string {
	if !c.known() {
		return none
	}
	return c.when(at).Format("2 Jan 15:04:05")
}

func cleaned(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, clean(s))
	}
	return out
}

// criteriaOf is a row for each criterion that any contender was judged by.
func criteriaOf(r *drill.Result) []criterionView {
	var out []criterionView
	rows := map[[2]string]int{}
	for i := range r.Runs {
		for _, j := range r.Runs[i].Criteria {
			key := [2]string{j.Name, j.Expr}
			at, ok := rows[key]
			if !ok {
				at = len(out)
				rows[key] = at
				cells := make([]cellView, len(r.Runs))
				for k := range cells {
					cells[k] = cellView{"", none, ""}
				}
				out = append(out, criterionView{clean(j.Name), clean(j.Expr), cells})
			}
			word, said := mark(j, r.Runs[i].Contender)
			out[at].Cells[i] = cellView{markClass(word), word, said}
		}
	}
	return out
}

func markClass(word string) string {
	switch word {
	case "met":
		return "pass"
	case "not yet", hollow:
		return "lacks"
	}
	return "FAIL"
}
