package config

import (
	"strconv"
	"time"
)

// Bounds of a rollout: one of more stages, or of longer ones, is never through.
const (
	maxStages   = 20
	maxBake     = 24 * time.Hour
	maxPatience = 7 * 24 * time.Hour
)

// rollout checks the stages of a rollout and its times against each other.
func (k *checker) rollout() {
	r := k.c.Rollout
	if r == nil {
		return
	}
	const path = "rollout"
	stages := path + ".stages"
	if r.By == "region" && len(r.Stages) > 0 {
		k.error(stages, "has no meaning with by: region, where each stage is one region more", "leave it out")
	}
	if len(r.Stages) > maxStages {
		k.error(stages, "has more than "+strconv.Itoa(maxStages)+" stages", "")
	}
	for i, s := range r.Stages {
		if i > 0 && s <= r.Stages[i-1] {
			k.error(stages+"["+strconv.Itoa(i)+"]", "must be above the stage before", "shares rise from stage to stage")
		}
	}
	if n := len(r.Stages); n > 0 && r.Stages[n-1] != 1 {
		k.error(stages, "must end with 100%", "the last stage is everything")
	}
	if n := len(r.Stages); n > 0 && r.By == "share" && r.Stages[0] > 0.5 {
		k.warning(stages, "begins with more than half of the traffic: a mistake hits most callers at once", "begin with 1%")
	}
	if b := r.Bake.Duration(); b < time.Minute || b > maxBake {
		k.error(path+".bake", "must be 1m to 24h", "")
	}
	if p := r.Patience.Duration(); p > maxPatience {
		k.error(path+".patience", "must be at most 168h", "")
	} else if p < r.Bake.Duration() {
		k.error(path+".patience", "is shorter than bake: every stage would fail", "")
	}
	if regions := k.regions(); r.By == "region" && len(regions) < 2 {
		k.warning(path+".by", "is region, and the providers name fewer than two: there is one stage, everything", "set region at the providers, or by: share")
	}
}

// regions are those that the providers name.
func (k *checker) regions() map[string]bool {
	out := map[string]bool{}
	for _, p := range k.c.Providers {
		if p.Region != "" {
			out[p.Region] = true
		}
	}
	return out
}
