package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hourthree/hourthree/internal/event"
)

// RolloutReading is where the newest rollout stands.
type RolloutReading struct {
	State    string  // none, baking, promoted, halted, reverted, replaced
	Exposure float64 // share of the requests that the new version serves
}

// rolloutStates are all states that a reading may have.
var rolloutStates = [...]string{"none", "baking", "promoted", "halted", "reverted", "replaced"}

type rollouts struct {
	read            func() RolloutReading
	state, exposure *prometheus.Desc
}

// Rollouts registers what is known of rollouts; read is called on every scrape.
func Rollouts(reg prometheus.Registerer, read func() RolloutReading) {
	reg.MustRegister(&rollouts{
		read:     read,
		state:    prometheus.NewDesc("hourthree_rollout_state", "1 for the state of the newest rollout of a configuration.", []string{"state"}, nil),
		exposure: prometheus.NewDesc("hourthree_rollout_exposure_ratio", "Share of the requests of the last minute that a configuration on its way has served.", nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (r *rollouts) Describe(ch chan<- *prometheus.Desc) {
	ch <- r.state
	ch <- r.exposure
}

// Collect implements prometheus.Collector.
func (r *rollouts) Collect(ch chan<- prometheus.Metric) {
	now := r.read()
	for _, s := range rolloutStates {
		ch <- prometheus.MustNewConstMetric(r.state, prometheus.GaugeValue, boolean(s == now.State), s)
	}
	ch <- prometheus.MustNewConstMetric(r.exposure, prometheus.GaugeValue, now.Exposure)
}

// arms are the names of the versions.
var arms = map[event.Arm]string{event.Control: "control", event.Candidate: "candidate"}
