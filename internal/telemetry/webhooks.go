package telemetry

import "github.com/prometheus/client_golang/prometheus"

// WebhookReading is what became of the messages to one webhook.
type WebhookReading struct {
	Webhook    string
	Deliveries map[string]int64 // by result
	Waiting    int
}

type webhooks struct {
	read                func() []WebhookReading
	deliveries, waiting *prometheus.Desc
}

// Webhooks registers the metrics of webhooks; read is called on every scrape.
func Webhooks(reg prometheus.Registerer, read func() []WebhookReading) {
	reg.MustRegister(&webhooks{
		read:       read,
		deliveries: prometheus.NewDesc("hourthree_webhook_deliveries_total", "Messages to webhooks by what became of them: delivered, refused by the receiver, failed after all tries, dropped for want of room.", []string{"webhook", "result"}, nil),
		waiting:    prometheus.NewDesc("hourthree_webhook_waiting", "Messages that wait for a webhook.", []string{"webhook"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (w *webhooks) Describe(ch chan<- *prometheus.Desc) {
	ch <- w.deliveries
	ch <- w.waiting
}

// Collect implements prometheus.Collector.
func (w *webhooks) Collect(ch chan<- prometheus.Metric) {
	for _, r := range w.read() {
		for result, n := range r.Deliveries {
			ch <- prometheus.MustNewConstMetric(w.deliveries, prometheus.CounterValue, float64(n), r.Webhook, result)
		}
		ch <- prometheus.MustNewConstMetric(w.waiting, prometheus.GaugeValue, float64(r.Waiting), r.Webhook)
	}
}
