package admin

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/history"
)

// TestHistory: the parameters reach the history as they are meant, what it answers is
// served, and a mistake is told by the name of its parameter.
func TestHistory(t *testing.T) {
	var got history.Query
	var at time.Time
	v := 1.5
	h := Handler(Options{
		Metrics: http.NotFoundHandler(),
		History: func(now time.Time, q history.Query) (history.Answer, error) {
			if got, at = q, now; q.Subject == "none" {
				return history.Answer{}, errors.New("subject: must be empty")
			}
			return history.Answer{Step: 10, At: []int64{20, 30}, Series: []history.Series{{Name: "offered", Unit: "per_second", Values: []*float64{&v, nil}}}}, nil
		},
		Totals: func(now time.Time) history.Totals {
			return history.Totals{At: now, Windows: []history.Window{{Name: "1m", Seconds: 55}}}
		},
	})
	w := get(t, h, "localhost", "/api/v1/history?from=-3h&to=2026-05-29T09:00:00Z&step=1m&series=offered,failed&subject=workload:a/b")
	body := strings.Join(strings.Fields(w.Body.String()), "")
	if w.Code != 200 || body != `{"step":10,"at":[20,30],"series":[{"name":"offered","subject":"","unit":"per_second","values":[1.5,null]}]}` {
		t.Errorf("%d %s", w.Code, body)
	}
	if ago := at.Sub(got.From); ago != 3*time.Hour || !got.To.Equal(time.Date(2026, 5, 29, 9, 0, 0, 0, time.UTC)) || got.Step != time.Minute || len(got.Series) != 2 || got.Subject != "workload:a/b" {
		t.Errorf("%+v", got)
	}
	get(t, h, "localhost", "/api/v1/history?from=1780045200&to=now&step=600&series=")
	if got.From.Unix() != 1780045200 || !got.To.IsZero() || got.Step != 10*time.Minute || got.Series != nil || got.Subject != "" {
		t.Errorf("%+v", got)
	}
	if w := get(t, h, "localhost", "/api/v1/history/totals"); w.Code != 200 || !strings.Contains(w.Body.String(), `"per_second": null`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for query, want := range map[string]string{
		"from=yesterday": "from: \"yesterday\" is no time; write 2026", "to=3h": "to: \"3h\" is no time", "to=-1": "to: ", "from=99999999999999": "from: ",
		"step=fast": "step: \"fast\" is no length", "step=0": "step: ", "step=-10s": "step: ", "series=a&series=b": "series", "since=1h": "is not a parameter; there are from, to",
		"subject=" + strings.Repeat("x", 600): "subject: is longer", "subject=none": "subject: must be empty.",
	} {
		w := get(t, h, "localhost", "/api/v1/history?"+query)
		if w.Code != 400 || !strings.Contains(strings.ReplaceAll(w.Body.String(), `\"`, `"`), want) {
			t.Errorf("%s: %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
	if w := get(t, Handler(Options{Metrics: http.NotFoundHandler()}), "localhost", "/api/v1/history"); w.Code != 404 {
		t.Errorf("without a history: %d", w.Code)
	}
}
