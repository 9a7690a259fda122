package mcpserver

import (
	"context"
	"fmt"

	"github.com/hourthree/hourthree/internal/layers"
	"github.com/hourthree/hourthree/internal/retrypath"
)

type pathIn struct {
	Workload string `json:"workload" jsonschema:"NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME"`
	RunID    string `json:"run_id,omitempty" jsonschema:"of audit_run or audit_manifests; none for the last run"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

type pathsOut struct {
	Summary string `json:"summary"`
	RunID   string `json:"run_id"`
	Paths   []path `json:"paths" jsonschema:"most calls first"`
	rest
}

// path is a way from a client to a model.
type path struct {
	Client   string    `json:"client"`
	Known    bool      `json:"client_known" jsonschema:"false where the client was not read and an SDK is assumed"`
	Host     string    `json:"host"`
	To       string    `json:"to"`
	Calls    int       `json:"calls" jsonschema:"that one call becomes at worst, the first included"`
	Class    string    `json:"class" jsonschema:"of failure, in which it does"`
	Formula  string    `json:"formula"`
	Layers   []layer   `json:"layers" jsonschema:"the client's first"`
	Products []product `json:"products" jsonschema:"for each class of failure"`
	Repeated []string  `json:"repeated" jsonschema:"classes that more than one layer repeats"`
	Nesting  []string  `json:"nesting" jsonschema:"time limits that do not nest"`
	Notes    []string  `json:"notes" jsonschema:"what was assumed, and where the path could not be followed"`
}

type layer struct {
	Name      string         `json:"name"`
	Product   string         `json:"product"`
	Object    string         `json:"object"`
	Place     string         `json:"place"`
	Attempts  map[string]int `json:"attempts" jsonschema:"for each class of failure"`
	Fallbacks int            `json:"fallbacks"`
	Budget    float64        `json:"budget,omitempty" jsonschema:"share of calls that may be repeats"`
	Timeout   float64        `json:"timeout_seconds,omitempty"`
	PerTry    float64        `json:"per_try_seconds,omitempty"`
	Assumed   string         `json:"assumed,omitempty" jsonschema:"why the numbers were not read"`
}

type product struct {
	Class     string   `json:"class"`
	Calls     int      `json:"calls"`
	PerTarget int      `json:"per_target"`
	Steady    float64  `json:"steady" jsonschema:"calls for each call when budgets are spent"`
	Budgets   []string `json:"budgets" jsonschema:"layers whose budget bounds it"`
	Repeats   []string `json:"repeats" jsonschema:"layers that repeat"`
}

func (s *Server) auditPath(ctx context.Context, in pathIn) (*pathsOut, error) {
	k, err := s.auditor.run(in.RunID)
	if err != nil {
		return nil, err
	}
	subject := k.id + " " + in.Workload
	at, err := placeAt(subject, in.Cursor)
	if err != nil {
		return nil, err
	}
	if err := s.auditor.begin(ctx); err != nil {
		return nil, err
	}
	paths, err := k.paths().Named(in.Workload)
	s.auditor.end()
	if err != nil {
		return nil, refuse("%s", plain(err.Error(), someText))
	}
	out := &pathsOut{RunID: k.id, Summary: fmt.Sprintf("No way from %s to a model was found in what was read.", plain(in.Workload, shortText))}
	if len(paths) > 0 {
		w := paths[0]
		out.Summary = fmt.Sprintf("%s to a model. At worst one call becomes %s (%s): %s.",
			counted(len(paths), "way"), counted(w.Worst.Calls, "call"), w.Worst.Class, plain(w.Formula(), someText))
	}
	sections := []section{part("paths", mapped(paths, k.path), &out.Paths)}
	out.rest = fill(subject, room(out), at, sections)
	return out, nil
}

// mostLayers bounds what is shown of one path.
const mostLayers = 12

func (k *kept) path(p retrypath.Path) path {
	out := path{
		Client: plain(p.Client.String(), shortText), Known: p.Known, Host: plain(p.Host, shortText), To: plain(p.To, shortText),
		Calls: p.Worst.Calls, Class: string(p.Worst.Class), Formula: plain(p.Formula(), someText),
		Layers: mapped(p.Layers[:min(len(p.Layers), mostLayers)], k.layer),
		Products: mapped(p.Products, func(x retrypath.Product) product {
			return product{string(x.Class), x.Calls, x.PerTarget, x.Steady, plains(x.Budgets, mostLayers, shortText), plains(x.Repeats, mostLayers, shortText)}
		}),
		Repeated: mapped(p.Repeated, func(c layers.Class) string { return string(c) }),
		Nesting:  mapped(p.Nesting[:min(len(p.Nesting), mostLayers)], func(f retrypath.Fault) string { return plain(f.Text, someText) }),
		Notes:    plains(p.Notes, mostLayers, someText),
	}
	if more := len(p.Layers) - mostLayers; more > 0 {
		out.Notes = append(out.Notes, counted(more, "layer")+" more are not shown")
	}
	return out
}

func (k *kept) layer(l retrypath.Layer) layer {
	attempts := map[string]int{}
	for c, n := range l.Attempts {
		attempts[string(c)] = n
	}
	return layer{
		plain(l.Name, shortText), plain(l.Product, maxWord), plain(l.Object.String(), shortText), k.where(l.Place.File, l.Place.Line),
		attempts, l.Fallbacks, l.Budget, l.Timeout, l.PerTry, plain(l.Assumed, shortText),
	}
}
