package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/detect"
	"github.com/hourthree/hourthree/internal/notify"
	"github.com/hourthree/hourthree/internal/rollout"
	"github.com/hourthree/hourthree/internal/spelling"
	"github.com/hourthree/hourthree/internal/steer"
	"github.com/hourthree/hourthree/internal/telemetry"
)

// notifier makes the part that tells webhooks, and shows what becomes of them.
func (a *App) notifier(reg prometheus.Registerer) (err error) {
	a.notify, err = notify.New(notify.Options{Version: a.opt.Version, Random: a.opt.Random, Dial: a.opt.Network.Dial, Log: a.log})
	if err != nil {
		return err
	}
	telemetry.Webhooks(reg, func() (all []telemetry.WebhookReading) {
		for _, r := range a.notify.Stats() {
			all = append(all, telemetry.WebhookReading{
				Webhook: r.Webhook, Waiting: r.Waiting,
				Deliveries: map[string]int64{"delivered": r.Delivered + r.Renewed, "refused": r.Refused, "failed": r.Failed + r.Unrenewed, "dropped": r.Dropped},
			})
		}
		return all
	})
	return nil
}

// routerName is the configured name or the machine's.
func routerName(c *config.Notify) string {
	name := ""
	if c != nil {
		name = c.Router
	}
	if name == "" {
		name, _ = os.Hostname()
	}
	return cmp.Or(name, "hourthree")
}

// webhooks are the configured ones as they are told.
func webhooks(c *config.Notify) map[string]notify.Settings {
	out := map[string]notify.Settings{}
	if c == nil {
		return out
	}
	for name, w := range c.Webhooks {
		out[name] = webhook(c, w)
	}
	return out
}

func webhook(c *config.Notify, w config.Webhook) notify.Settings {
	s := notify.Settings{
		URL: w.URL.Reveal(), Format: notify.Format(w.Kind), Labels: w.Labels, Timeout: w.Timeout.Duration(), Retries: w.Retries, Dashboard: c.Dashboard,
		Router: routerName(c), Headers: make(map[string]string, len(w.Headers)),
	}
	for k, v := range w.Headers {
		s.Headers[k] = v.Reveal()
	}
	for _, e := range w.Events {
		s.Kinds = append(s.Kinds, notify.Kind(e))
	}
	return s
}

// noticed passes on what is noticed of outages.
func (a *App) noticed(n detect.Notice) {
	if a.opt.Noticed != nil {
		a.opt.Noticed(n)
	}
	a.notify.Noticed(n)
}

// announce tells webhooks of a change; became is how a rollout has ended.
func (a *App) announce(e steer.Entry, became rollout.State) {
	if n, ok := (notify.Change{At: e.At, Who: e.Who, What: e.What, Subject: e.Subject, Why: e.Why, Became: string(became)}).Notice(); ok {
		a.notify.Tell(n)
	}
}

// TestWebhook sends one message to a webhook of a configuration.
func TestWebhook(ctx context.Context, c *config.Config, name, version string) (notify.Delivery, error) {
	if c.Notify == nil || len(c.Notify.Webhooks) == 0 {
		return notify.Delivery{}, errors.New("the configuration has no webhooks; add notify: {webhooks: {NAME: {url: …}}}")
	}
	w, ok := c.Notify.Webhooks[name]
	if !ok {
		names := slices.Sorted(maps.Keys(c.Notify.Webhooks))
		hint := "configured: " + strings.Join(names, ", ")
		if near := spelling.Nearest(name, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		return notify.Delivery{}, fmt.Errorf("webhook %q is not configured; %s", name, hint)
	}
	opt := notify.Options{Version: version}
	return notify.Send(ctx, opt, webhook(c.Notify, w), notify.Test(time.Now())), nil
}
