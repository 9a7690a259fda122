package audit

import (
	"time"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/manifest"
)

// Options select and tune.
type Options struct {
	Checks      []string // ids or groups; empty for all
	Namespaces  []string // of objects that are reported on; empty for all
	MaxAttempts int      // on a path, default 10
	Waivers     []Waiver
	NoInline    bool      // annotations do not waive
	Today       time.Time // for the expiry of waivers
	Library     *incident.Library
	Context     string // namespace of objects that name none, default "default"
}

// Input is what was collected.
type Input struct {
	Objects  []*manifest.Object
	Problems []manifest.Problem
	// Gaps are the kinds that could not be read from a cluster.
	Gaps []Gap
	// Served are the kinds that the cluster serves; nil when no cluster was read.
	Served []Resource
}

// Gap is a kind that could not be read, or only in part.
type Gap struct {
	Resource
	Reason Reason
	Detail string
}
