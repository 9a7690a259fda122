package drill

import (
	"context"
	"slices"
	"time"
)

// local is a failure that the proxy saw itself: no connection, a reset, its own
// limit of time.
func local(r reply) bool { return r.broken && !r.begun || r.late }

// statuses is a condition: one of these statuses was answered.
func statuses(list ...int) func(reply) bool {
	return func(r reply) bool { return slices.Contains(list, r.status) }
}

// either is a condition: one of these holds.
func either(conditions ...func(reply) bool) func(reply) bool {
	return func(r reply) bool {
		return slices.ContainsFunc(conditions, func(holds func(reply) bool) bool { return holds(r) })
	}
}

func unsent(r reply) bool { return r.unsent }
func broken(r reply) bool { return r.broken && !r.begun }
func any5xx(r reply) bool { return r.status >= 500 }

// proxies are the policies of proxies and gateways in wide use with their
// documented parameters, named by these. What the documents leave to whoever
// runs them is chosen in favour of the policy: targets are in an order of
// preference, all workers of a proxy share what they know, and a call gets half
// the time that its caller has.
var proxies = []kind{
	{"passive-1-in-10s", "proxy with passive health checks: 1 connection error or timeout takes a target out for 10 s, then one trial; what was not sent goes to the next target at once, any status is the answer (nginx: max_fails, fail_timeout, proxy_next_upstream)", proxied(passive1).make},
	{"passive-1-in-10s-5xx", "the same, set to pass requests on that were sent, and to take 429, 500 and 502 to 504 for failures (nginx: non_idempotent, http_429, http_500 to http_504)", proxied(passive5xx).make},
	{"cooldown-half-in-60s", "gateway with cool-downs: 3 calls at a target without a pause, then the next; a 429, or failures of more than half of at least 5 calls in a minute, cool it for 5 s (LiteLLM router: num_retries, order, cooldown_time)", proxied(cooldown).make},
	{"retry-5-backoff-60s", "gateway without a breaker: 5 retries at each target after 1 s, doubled, obeying up to 60 s of Retry-After, then the next target (Portkey: retry, fallback)", proxied(retry5).make},
	{"ejection-5-budget-20", "proxy with outlier detection: 5 failures in a row eject a target for 30 s times the ejections so far, one target at a time; one retry on 5xx, retries at most 20 % of the requests under way (Envoy: outlier_detection, retry_budget)", proxied(ejection5).make},
	{"ejection-1-retry-5", "the same with the provider fallback of its gateway: one failure ejects for 5 s times the ejections so far, any number of targets; 5 retries on 500 and without a connection, a target after the other, after 0.1 s to 10 s (Envoy AI Gateway: provider fallback)", proxied(ejection1).make},
}

// proxied is a model of a policy and its gates for n targets.
func proxied(how func(n int) (policy, []gatekeeper)) modelled {
	return func(p *play, instance int) caller { return newProxy(p, instance, how) }
}

// looping is proxied with a gate of the same kind for each target.
func looping(how func() policy, gate func() gatekeeper) modelled {
	return proxied(func(n int) (policy, []gatekeeper) {
		var gates []gatekeeper
		for range n {
			gates = append(gates, gate())
		}
		return how(), gates
	})
}

// proxy is one instance: a loop for each model.
type proxy map[string]*loop

func newProxy(p *play, instance int, how func(n int) (policy, []gatekeeper)) proxy {
	out := proxy{}
	for _, w := range p.Workloads {
		if out[w.Model] == nil {
			servers := p.serving(w.Model)
			policy, gates := how(len(servers))
			out[w.Model] = newLoop(p, servers, policy, gates)
			out[w.Model].instance = instance
		}
	}
	return out
}

func (x proxy) call(ctx context.Context, c call) reply { return x[c.Model].call(ctx, c) }

// gatesOf makes n gates. The documents of those that use it exempt a target that
// has no alternative.
func gatesOf(n int, gate func() gatekeeper) (gates []gatekeeper) {
	for range n {
		if n == 1 {
			return []gatekeeper{open{}}
		}
		gates = append(gates, gate())
	}
	return gates
}

// passive1 is nginx as it comes, the targets after the first being its backups.
//
// max_fails=1, fail_timeout=10s, and that a single server is exempt:
// https://nginx.org/en/docs/http/ngx_http_upstream_module.html#server
//
// proxy_next_upstream "error timeout"; a POST that was sent is not passed on;
// statuses are neither passed on nor counted unless they are listed:
// https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_next_upstream
//
// The one trial after fail_timeout: ngx_http_upstream_get_peer and
// ngx_http_upstream_free_round_robin_peer in
// github.com/nginx/nginx, src/http/ngx_http_upstream_round_robin.c. That servers
// which are all out stay out until then: docs/xml/nginx/changes.xml, "will not
// reset number of failures". Several backups would share the calls; here they are
// taken in order.
func passive1(n int) (policy, []gatekeeper) {
	return policy{each: 1, moves: unsent, empty: 502}, gatesOf(n, func() gatekeeper {
		return &passive{limit: 1, window: 10 * time.Second, counts: local}
	})
}

// passive5xx is passive1 with "proxy_next_upstream error timeout http_429
// http_500 http_502 http_503 http_504 non_idempotent", which is no default. The
// same pages.
func passive5xx(n int) (policy, []gatekeeper) {
	fails := either(local, statuses(429, 500, 502, 503, 504))
	return policy{each: 1, moves: fails, empty: 502}, gatesOf(n, func() gatekeeper {
		return &passive{limit: 1, window: 10 * time.Second, counts: fails}
	})
}

// cooldown is the router of LiteLLM, each target a deployment of the model with
// an order of its own.
//
// DEFAULT_MAX_RETRIES 2, DEFAULT_COOLDOWN_TIME_SECONDS 5,
// DEFAULT_FAILURE_THRESHOLD_PERCENT 0.5,
// DEFAULT_FAILURE_THRESHOLD_MINIMUM_REQUESTS 5: github.com/BerriAI/litellm,
// litellm/constants.py.
//
// That a 429 cools at once, that more than the share is needed, and that a
// single deployment is exempt (it is until 1,000 calls of a minute all failed,
// which is left out): _should_cooldown_deployment in the same repository,
// litellm/router_utils/cooldown_handlers.py. allowed_fails at its default of 3
// changes nothing there.
//
// Retries stay at the lowest order that is not cooling, then comes the next
// order: _get_order_filtered_deployments, litellm/utils.py, and
// https://docs.litellm.ai/docs/router/learn/reliability. They do not wait while
// another deployment is well: _time_to_sleep_before_retry, litellm/router.py.
func cooldown(n int) (policy, []gatekeeper) {
	return policy{each: 3, repeats: either(local, any5xx, statuses(408, 409, 429)), empty: 429}, gatesOf(n, func() gatekeeper {
		return &cooling{least: 5, share: 0.5, window: time.Minute, pause: 5 * time.Second}
	})
}

// retry5 is Portkey with its retries and its fallback switched on.
//
// At most 5, on 429, 500, 502, 503, 504 and 529, Retry-After if it is switched
// on, 60 s of it in all: https://portkey.ai/docs/product/ai-gateway/automatic-retries.
//
// That only a 429's Retry-After counts, that the rest of the pauses is left out
// after one was obeyed, that a broken connection is repeated and a timeout is
// not: github.com/Portkey-AI/gateway, src/handlers/retryHandler.ts.
//
// 1 s, doubled, without an upper bound and without jitter: the defaults of the
// library it uses, https://github.com/tim-kos/node-retry, and randomize: false.
//
// Any other status than 2xx is taken to the next target:
// https://portkey.ai/docs/product/ai-gateway/fallbacks.
func retry5(n int) (policy, []gatekeeper) {
	return policy{
		each:    6,
		repeats: either(broken, statuses(429, 500, 502, 503, 504, 529)),
		pause:   backoff{base: time.Second},
		obeys:   time.Minute,
	}, slices.Repeat([]gatekeeper{open{}}, n)
}

// ejection5 is Envoy with outlier detection, a retry budget and the retry policy
// "5xx" switched on, each target a priority of one cluster.
//
// consecutive_5xx 5, base_ejection_time 30 s, max_ejection_time 300 s, interval
// 10 s, max_ejection_percent 10 but one at least: github.com/envoyproxy/envoy,
// api/envoy/config/cluster/v3/outlier_detection.proto. How the time of an
// ejection grows and shrinks, and that errors of its own count as 5xx:
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/outlier.
//
// budget_percent 20, min_retry_concurrency 3: the same repository,
// api/envoy/config/cluster/v3/circuit_breaker.proto.
//
// One retry, after a pause of a base of 25 ms with full jitter, 250 ms at most,
// on any 5xx and without an answer, but not after the limit of time:
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter.
func ejection5(n int) (policy, []gatekeeper) {
	again := either(broken, any5xx)
	c := &crowd{limit: 5, base: 30 * time.Second, most: 300 * time.Second, sweep: 10 * time.Second, percent: 10}
	return policy{
		each: 2, total: 2, repeats: again, moves: again,
		pause:  backoff{base: 25 * time.Millisecond, most: 250 * time.Millisecond, jitter: true},
		budget: &allowance{share: 0.2, least: 3},
		panics: true,
	}, c.join(n)
}

// ejection1 is Envoy AI Gateway as its example of a fallback sets it up.
//
// numRetries 5, numAttemptsPerPriority 1, baseInterval 100 ms, maxInterval 10 s,
// on 500 and connect-failure: github.com/envoyproxy/ai-gateway,
// site/docs/capabilities/traffic/provider-fallback.md.
//
// baseEjectionTime 5 s, interval 2 s, maxEjectionPercent 100,
// consecutive5XxErrors 1: the same repository,
// examples/provider_fallback/fallback.yaml. The bound of 300 s as in ejection5.
func ejection1(n int) (policy, []gatekeeper) {
	c := &crowd{limit: 1, base: 5 * time.Second, most: 300 * time.Second, sweep: 2 * time.Second, percent: 100}
	return policy{
		each: 1, total: 6, around: true, moves: either(unsent, statuses(500)),
		pause: backoff{base: 100 * time.Millisecond, most: 10 * time.Second, jitter: true}, paced: true,
		panics: true,
	}, c.join(n)
}
