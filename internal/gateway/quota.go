package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/hourthree/hourthree/internal/admit"
	"github.com/hourthree/hourthree/internal/fault"
	"github.com/hourthree/hourthree/internal/wire"
	"github.com/hourthree/hourthree/internal/workload"
)

// Quotas are what a snapshot knows of models and money.
type Quotas struct {
	Models  map[string]*admit.Limiter // limits of a model for all callers, by its name
	Before  map[string]*admit.Limiter // those of the configuration that this one is to replace, where they differ: both hold
	Dearest map[string]admit.Price    // what a request for a model may cost, by the model's name
	Prices  map[string]admit.Price    // what a target charges, by its name
}

// counted reports a request that tokens are counted for: one with a body of
// JSON. Files are none.
func (x *inbound) counted() bool {
	return x.upload == nil && x.r.Body != nil && x.r.Body != http.NoBody && (x.where.json || isJSON(x.r.Header))
}

// foresee is what a body of a size is likely to cost; most is what the caller
// allows for the answer, 0 for any number.
func (x *inbound) foresee(bytes, most int64) (input, output int64) {
	if !x.counted() {
		return 0, 0
	}
	input, output = x.workload.Estimate(bytes, most)
	if x.where.endpoint == wire.Embeddings {
		output = 0
	}
	return input, output
}

// enter takes the limits that depend on the model, and puts what the body tells
// in place of the first estimate.
func (x *inbound) enter() bool {
	var use admit.Use
	if x.envelope.Model != "" {
		input, output := x.foresee(int64(len(x.body)), int64(x.envelope.MaxTokens))
		use = admit.Use{Tokens: input + output, Cost: x.Quotas.Dearest[x.model.Name].Cost(input, 0, output)}
	}
	now := time.Now()
	for _, l := range x.modelLimiters() {
		if refusal, ok := x.ticket.Enter(now, l, use.Tokens); !ok {
			return x.limited(refusal)
		}
	}
	if refusal, ok := x.ticket.Revise(now, use); !ok {
		return x.limited(refusal)
	}
	x.rates(now)
	return true
}

// modelLimiters are the limits of the model, and of the workload for it.
func (x *inbound) modelLimiters() (l [3]*admit.Limiter) {
	if x.model != nil {
		l = [3]*admit.Limiter{x.Quotas.Models[x.model.Name], x.workload.ForModel(x.model.Name), x.Quotas.Before[x.model.Name]}
	}
	return l
}

// rates tells the caller what is left of its limits, in OpenAI's headers: of the
// tightest one, where there is one.
func (x *inbound) rates(now time.Time) {
	all, model := x.key.Limiters(), x.modelLimiters()
	copy(all[2:], model[:]) // the first two are the workload and its key
	requests, tokens := admit.Binding(now, all[:]...)
	if x.values == nil && requests.PerMinute+tokens.PerMinute > 0 {
		x.values = make([]string, 0, rateHeaders+failureHeaders)
	}
	if requests.PerMinute > 0 {
		x.rate("X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", requests)
	}
	if tokens.PerMinute > 0 {
		x.rate("X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", tokens)
	}
}

// rateHeaders is how many of them there are.
const rateHeaders = 6

func (x *inbound) rate(most, remaining, reset string, r admit.Rate) {
	x.header(most, strconv.FormatInt(r.PerMinute, 10))
	x.header(remaining, strconv.FormatInt(r.Left, 10))
	x.header(reset, (r.Reset + time.Millisecond - 1).Truncate(time.Millisecond).String())
}

// limited answers what a limit of the caller, or the memory, refuses.
func (x *inbound) limited(r admit.Refusal) bool {
	x.rates(time.Now())
	if r.Reason == admit.ReasonMemory {
		return x.overloaded()
	}
	x.over = r.Owner != admit.OfModel
	if r.Owner == "" {
		x.refuse(fault.Verdict{Class: fault.Capacity, Reason: "workload_" + r.Reason, Wait: r.Wait, HasWait: true}, x.shut(r))
		return false
	}
	x.again = time.Now().Add(r.Wait)
	reason := string(r.Owner) + "_" + r.Reason
	x.turnAway(fault.Refusal{Class: fault.Capacity, Reason: reason, Code: reason, Wait: r.Wait, Exact: r.Reason != admit.ReasonConcurrency}, x.reached(r))
	return false
}

// shut says why a workload's requests are not let in, whatever its limits, and
// whether this one was read.
func (x *inbound) shut(r admit.Refusal) string {
	name := "Workload " + x.workload.Name()
	switch {
	case r.Reason == workload.ReasonRepeats && x.body == nil:
		return name + " repeats failed requests more often than one in ten and one a second. This repeat was not read."
	case r.Reason == workload.ReasonRepeats:
		return name + " repeats failed requests more often than one in ten and one a second. This repeat was not carried out."
	case r.Reason == workload.ReasonUnread:
		return name + " repeats failed requests so often that not all of its requests are looked at. This one was not read."
	}
	return name + " is in quarantine until an operator releases it. The request was not read."
}

// units say what a limit counts.
var units = map[string]string{
	admit.ReasonRPM: "requests a minute", admit.ReasonTPM: "tokens a minute",
	admit.ReasonConcurrency: "requests at once", admit.ReasonUSD: "US dollars for a day of UTC",
}

// reached names the limit that refuses, and the setting behind it.
func (x *inbound) reached(r admit.Refusal) string {
	who, setting := "Workload "+x.workload.Name(), "workloads."+x.workload.Name()
	at := " has reached its own limit of "
	switch r.Owner {
	case admit.OfKey:
		who, setting = "This key of workload "+x.workload.Name(), setting+".key_limits"
	case admit.OfModel:
		who, setting = "Model "+x.model.Name, "models."+x.model.Name+".limits"
		at = " is, for all its callers together, at its limit of "
	case admit.OfWorkloadModel:
		setting += ".model_limits." + x.model.Name
		at = " is, for model " + x.model.Name + ", at its limit of "
	default:
		setting += ".limits"
	}
	return who + at + units[r.Reason] + " (" + setting + "." + r.Reason + ")."
}

// used is what the request cost: nothing where no call was made, what the answer
// reports where it does, also where that is nothing. Otherwise it is estimated
// from what was sent and delivered, which is partial: leaving early is not free.
func (x *inbound) used() (u wire.Usage, partial bool) {
	switch {
	case x.out.Attempts == 0:
		return u, false
	case x.out.Usage.Present:
		return x.out.Usage, false
	case x.envelope.Model == "" || !x.billed() || !x.counted():
		return u, false
	}
	u.Input, _ = x.foresee(int64(len(x.body)), 0)
	u.Output = x.out.Delivered
	if x.out.Committed && u.Output == 0 && x.where.endpoint != wire.Embeddings {
		u.Output = max(0, x.out.BytesOut) / bytesPerToken
	}
	return u, true
}

// billed reports a call that its provider may charge for without saying how
// much: not one that it refused, failed with a status, or never received.
func (x *inbound) billed() bool {
	switch v := x.out.Verdict; v.Class {
	case fault.OK, fault.Canceled, fault.Deadline:
		return true
	case fault.Outage:
		return x.out.Committed || x.out.Status < http.StatusMultipleChoices && v.Reason != "connect"
	}
	return x.out.Committed
}

// settle replaces what was estimated by what the request cost, and learns from
// it.
func (x *inbound) settle() (u wire.Usage, partial bool, cost admit.Money) {
	u, partial = x.used()
	cost = x.Quotas.Prices[x.out.Target].Cost(u.Input, u.Cached, u.Output)
	x.ticket.Leave(time.Now(), admit.Use{Tokens: u.Input + u.Output, Cost: cost})
	if x.sent.class == fault.OK && x.sent.degraded == "" && x.counted() {
		x.learn(u)
	}
	return u, partial, cost
}

// learn takes note of what a whole answer was long. A stream that does not say so
// was as long as what was delivered.
func (x *inbound) learn(u wire.Usage) {
	output := u.Output
	switch {
	case x.where.endpoint == wire.Embeddings:
		output = -1
	case !u.Present:
		u.Input, output = 0, x.out.Delivered
		if output == 0 {
			return
		}
	}
	x.workload.Learn(int64(len(x.body)), u.Input, output)
}
