package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxWebhooks bounds the queues and the series that webhooks make.
const maxWebhooks = 16

var (
	// ofWebhook are the headers that a message has by itself.
	ofWebhook = []string{"content-type", "content-encoding", "user-agent", "accept", "hourthree-delivery"}
	// ofAlert are the labels that an alert has by itself.
	ofAlert   = []string{"alertname", "severity", "router", "outage", "event", "subject"}
	labelName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)
)

// notify checks who is told what is noticed.
func (k *checker) notify() {
	n := k.c.Notify
	if n == nil {
		return
	}
	if n.Router != clean(n.Router) || len(n.Router) > longestName {
		k.error("notify.router", "must be one line of at most 200 bytes", "")
	}
	if u, err := url.Parse(n.Dashboard); n.Dashboard != "" && (err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil) {
		k.error("notify.dashboard", "must be an http or https address with a host and without a user", "")
	}
	if len(n.Webhooks) > maxWebhooks {
		k.error("notify.webhooks", "are more than 16", "let one of them hand messages on")
	}
	for _, name := range slices.Sorted(maps.Keys(n.Webhooks)) {
		k.webhook("notify.webhooks."+name, n.Webhooks[name])
	}
}

func (k *checker) webhook(path string, w Webhook) {
	k.webhookAddress(path+".url", w)
	for header, v := range w.Headers {
		lower := strings.ToLower(header)
		if !headerName.MatchString(header) || slices.Contains(notSettable, lower) || slices.Contains(ofWebhook, lower) {
			k.error(path+".headers."+header, "is not a header that can be set", "")
		} else if strings.ContainsFunc(v.value, func(r rune) bool { return r > '~' }) {
			k.error(path+".headers."+header, "has characters that a header cannot carry", "")
		}
	}
	for label, v := range w.Labels {
		switch {
		case !labelName.MatchString(label) || slices.Contains(ofAlert, label):
			k.error(path+".labels."+label, "is not a label that can be set", "letters, digits and _, and none of "+strings.Join(ofAlert, ", "))
		case v != clean(v) || len(v) > longestName:
			k.error(path+".labels."+label, "must be one line of at most 200 bytes", "")
		}
	}
	if t := w.Timeout.Duration(); t < 100*time.Millisecond || t > time.Minute {
		k.error(path+".timeout", "must be 100ms to 1m", "")
	}
}

// webhookAddress checks an address without showing it.
func (k *checker) webhookAddress(path string, w Webhook) {
	if w.URL.value == "" {
		return // reported
	}
	u, err := url.Parse(w.URL.value)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		k.error(path, "must be an http or https address with a host", "")
	case u.User != nil || u.Fragment != "":
		k.error(path, "must have no user and no fragment", "a credential belongs in headers")
	case u.Scheme == "http" && !w.Insecure && !loopback(hostPort{host: u.Hostname()}):
		k.error(path, "would be sent to without encryption", "use https, or set insecure: true")
	case w.Kind == "alertmanager" && u.RawQuery != "":
		k.error(path, "must have no query", "it is the address of an Alertmanager")
	}
}
