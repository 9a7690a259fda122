package admin

import (
	"net/http"
	"time"

	"github.com/hourthree/hourthree/internal/rollout"
)

// Rollout is what an operator sees of the configuration on its way, and what may be
// done about it. Without Status none of it is served.
type Rollout struct {
	// Status is that of the newest rollout; ok is false where there was none.
	Status func(now time.Time) (s rollout.Status, ok bool)
	// Promote goes to the next stage, Halt back to the version before, Retry rolls out
	// again what was taken back. Their errors say why that is not possible now.
	Promote, Halt, Retry func(by By, why string) error
}

// StateNone is the state where there has been no rollout since the start.
const StateNone rollout.State = "none"

// serve adds the paths of rollouts.
func (o Rollout) serve(mux *http.ServeMux) {
	if o.Status == nil {
		return
	}
	mux.HandleFunc("GET /api/v1/rollout", func(w http.ResponseWriter, _ *http.Request) {
		s, ok := o.Status(time.Now())
		if !ok {
			data(w, map[string]rollout.State{"state": StateNone})
			return
		}
		data(w, s)
	})
	for path, do := range map[string]func(By, string) error{"promote": o.Promote, "halt": o.Halt, "retry": o.Retry} {
		mux.HandleFunc("POST /api/v1/rollout/"+path, func(w http.ResponseWriter, r *http.Request) { steerRollout(w, r, do) })
	}
}

// steerRollout does what an operator asks for.
func steerRollout(w http.ResponseWriter, r *http.Request, do func(by By, why string) error) {
	var q struct {
		Who string `json:"who"` // of somebody on this machine, where nobody is asked who they are
		Why string `json:"why"`
	}
	if !operates(w, r) || !order(w, r, &q) {
		return
	}
	if q.Why = line(q.Why); q.Why == "" {
		problem(w, http.StatusBadRequest, "why: say in a few words why; it is kept with the change.")
		return
	}
	if err := do(byOf(r, q.Who), q.Why); err != nil {
		problem(w, http.StatusConflict, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
