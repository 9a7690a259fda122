package config

import (
	"maps"
	"slices"
	"strconv"
)

// Prices is what a target charges for the three kinds of tokens.
func (p Price) Prices() (input, cached, output float64) {
	cached = p.Input
	if p.CachedInput != nil {
		cached = *p.CachedInput
	}
	return p.Input, cached, p.Output
}

func samePrice(a, b *Price) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Input == b.Input && a.Output == b.Output && equal(a.CachedInput, b.CachedInput)
}

// budgets asks for a price wherever a budget may be spent.
func (k *checker) budgets() {
	priced := map[string]bool{} // targets that were looked at, by their place
	for _, name := range k.models {
		if k.c.Models[name].Limits.USDPerDay > 0 {
			k.priced(priced, name, "models."+name+".limits.usd_per_day")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.Workloads)) {
		w, path := k.c.Workloads[name], "workloads."+name
		for _, budget := range []struct {
			at string
			Limits
		}{{path + ".limits", w.Limits}, {path + ".key_limits", w.KeyLimits}} {
			if budget.USDPerDay > 0 {
				k.spends(priced, w, budget.at+".usd_per_day")
			}
		}
		for _, m := range slices.Sorted(maps.Keys(w.ModelLimits)) {
			at := path + ".model_limits." + m
			if !k.known(at, "model", m, k.models) {
				continue
			}
			if len(w.Models) > 0 && !slices.Contains(w.Models, m) {
				k.error(at, "is for a model that the workload may not use", "add it to models, or remove the limit")
			}
			if w.ModelLimits[m].USDPerDay > 0 {
				k.priced(priced, m, at+".usd_per_day")
			}
		}
	}
}

// spends holds a budget of a workload against everything that it may use.
func (k *checker) spends(priced map[string]bool, w Workload, budget string) {
	models := w.Models
	if len(models) == 0 {
		models = k.models
	}
	for _, m := range models {
		k.priced(priced, m, budget)
	}
	if len(w.Models) == 0 && len(k.c.Passthrough) > 0 {
		k.warning(budget, "does not count what calls below passthrough cost", "name models: a workload with a list of them may use no other path")
	}
}

// priced reports the targets of a model, its last resort and its fallbacks that
// have no price. Each is reported once.
func (k *checker) priced(done map[string]bool, model, budget string) {
	path := "models." + model
	if done[path] {
		return
	}
	done[path] = true
	m, ok := k.c.Models[model]
	if !ok {
		return // reported
	}
	for i, t := range m.Targets {
		if t.Price == nil {
			k.error(path+".targets["+strconv.Itoa(i)+"]", "has no price, which "+budget+" counts by",
				"add price: {input: USD, output: USD}, for a million tokens each; 0 where it is free")
		}
	}
	for _, s := range k.steps(model) {
		k.priced(done, s.to, budget)
	}
}
