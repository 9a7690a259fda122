package mcpserver

import (
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf is the schema of a type. Its lists are lists and never null, which
// some clients cannot read; fix sets what a type cannot say.
func schemaOf[T any](fix func(name string, s *jsonschema.Schema)) *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("the schema of a tool: %v", err)) // the type is the program's
	}
	plainTypes(s)
	if fix != nil {
		for name, p := range s.Properties {
			fix(name, p)
		}
	}
	return s
}

// plainTypes takes null out of the types of a schema and those in it.
func plainTypes(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(rest) == 1 {
		s.Type, s.Types = rest[0], nil
	}
	for _, p := range s.Properties {
		plainTypes(p)
	}
	plainTypes(s.Items)
	plainTypes(s.AdditionalProperties)
}

// Bounds of arguments.
const (
	maxLimit    = 25
	maxWords    = 20 // of a list of words
	maxWord     = 80
	maxCursor   = 300
	maxQuery    = 500
	maxManifest = 256 << 10
	maxPaths    = 50
)

// bounded gives an argument its bounds, by its name, which means the same in
// every tool.
func bounded(name string, s *jsonschema.Schema) {
	switch {
	case name == "limit":
		s.Minimum, s.Maximum = number(1), number(maxLimit)
	case name == "cursor":
		s.MaxLength = size(maxCursor)
	case name == "query":
		s.MinLength, s.MaxLength = size(1), size(maxQuery)
	case name == "yaml":
		s.MaxLength = size(maxManifest)
	case name == "paths":
		s.MaxItems, s.Items.MinLength, s.Items.MaxLength = size(maxPaths), size(1), size(1000)
	case s.Type == "array":
		s.MaxItems, s.Items.MinLength, s.Items.MaxLength = size(maxWords), size(1), size(maxWord)
	case name == "id" || name == "workload":
		s.MinLength, s.MaxLength = size(1), size(400)
	case s.Type == "string":
		s.MaxLength = size(253) // of a Kubernetes name
	}
	switch name {
	case "min_severity":
		s.Enum = []any{"low", "medium", "high", "critical"}
	case "state":
		s.Enum = []any{"fail", "waived"}
	case "kind_of_word":
		s.Enum = []any{"cause", "symptom", "topic", "component", "domain", "condition"}
	}
}

func size(n int) *int           { return &n }
func number(f float64) *float64 { return &f }
