package config

import (
	"maps"
	"slices"
	"time"
)

// Notify is who outside is told what is noticed, by webhooks. What is sent is in docs/webhooks.md: never a prompt, an answer or a key. A change takes effect with a reload, and what waits for a webhook is kept.
type Notify struct {
	// The name under which this router appears. Default: the name of the machine.
	Router string `yaml:"router"`
	// Address of the operator's pages as those who read the messages reach it, http or https, for a link in each message. Default: no link.
	Dashboard string `yaml:"dashboard"`
	// Who is told, by names of your choice, 16 at most. The names are labels of metrics.
	Webhooks map[string]Webhook `yaml:"webhooks"`
}

// Webhook is an address that is told.
type Webhook struct {
	// Where messages are posted, http or https. It is treated as a secret, because often it is one: write it as ${NAME} or ${file:/path}. For alertmanager the address of the Alertmanager; /api/v2/alerts is appended.
	URL Secret `yaml:"url" required:"true"`
	// Shape of the messages: generic is a JSON document of this router's own; slack is what Slack's incoming webhooks take, and Mattermost's; alertmanager are alerts that stand while an outage is open.
	Kind string `yaml:"kind" enum:"generic,slack,alertmanager"`
	// What is told: outage, action (of operators and of the rule), rollout, configuration. Default: all of them.
	Events []string `yaml:"events" enum:"outage,action,rollout,configuration"`
	// Headers of every message, such as Authorization. Their values are treated as secrets and go to this address alone; redirects are not followed.
	Headers map[string]Secret `yaml:"headers"`
	// Labels of every message, and of every alert, for routing.
	Labels map[string]string `yaml:"labels"`
	// Time for one try.
	Timeout Duration `yaml:"timeout"`
	// How often a message is tried again, at most for 15 minutes.
	Retries int `yaml:"retries" min:"0" max:"20"`
	// Let an http address be on another machine: what is sent, headers included, can be read on the way.
	Insecure bool `yaml:"insecure"`
}

// DefaultWebhook is a webhook where nothing else is said.
func DefaultWebhook() Webhook {
	return Webhook{Kind: "generic", Timeout: Duration(10 * time.Second), Retries: 8}
}

func (w *Webhook) setDefaults() { *w = DefaultWebhook() }

// secrets calls f with every secret, in an order of their names.
func (n *Notify) secrets(f func(Secret)) {
	if n == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.Webhooks)) {
		w := n.Webhooks[name]
		f(w.URL)
		for _, header := range slices.Sorted(maps.Keys(w.Headers)) {
			f(w.Headers[header])
		}
	}
}
