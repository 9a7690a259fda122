package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/history"
)

// longestSubject bounds a subject that is asked for.
const longestSubject = 512

// past serves GET of a stretch of the history.
func (o Options) past(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	q, err := queryOf(r, now)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error()+".")
		return
	}
	a, err := o.History(now, q)
	if err != nil {
		problem(w, http.StatusBadRequest, err.Error()+".")
		return
	}
	data(w, a)
}

// queryOf reads the parameters. What they may be together the history decides.
func queryOf(r *http.Request, now time.Time) (history.Query, error) {
	var q history.Query
	for name, values := range r.URL.Query() {
		if len(values) > 1 {
			return q, fmt.Errorf("%.40q: is given more than once", name)
		}
		var err error
		switch v := values[0]; name {
		case "from":
			q.From, err = moment(name, v, now)
		case "to":
			q.To, err = moment(name, v, now)
		case "step":
			q.Step, err = stepOf(v)
		case "series":
			if v != "" {
				q.Series = strings.Split(v, ",")
			}
		case "subject":
			if q.Subject = v; len(v) > longestSubject {
				err = fmt.Errorf("subject: is longer than %d bytes", longestSubject)
			}
		default:
			err = fmt.Errorf("%.40q: is not a parameter; there are from, to, step, series and subject", name)
		}
		if err != nil {
			return q, err
		}
	}
	return q, nil
}

// moment is a time: of RFC 3339, in Unix seconds, or so long ago.
func moment(name, v string, now time.Time) (time.Time, error) {
	if v == "" || v == "now" {
		return time.Time{}, nil // as if nothing were said: to is now then, from is not asked for
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return t, nil
	}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && n > 0 && n < 1<<40 {
		return time.Unix(n, 0), nil
	}
	if d, err := time.ParseDuration(v); err == nil && d < 0 {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("%s: %.40q is no time; write 2026-05-29T09:00:00Z, Unix seconds, or -3h for three hours ago", name, v)
}

// stepOf is a duration, or a number of seconds.
func stepOf(v string) (time.Duration, error) {
	if n, err := strconv.ParseInt(v, 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("step: %.40q is no length of a step; write 10s, 1m, 10m or a multiple of these", v)
	}
	return d, nil
}
