package library

import (
	_ "embed"
	"fmt"
	"sync"

	"go.yaml.in/yaml/v4"
)

//go:embed openapi.yaml
var openAPIFile []byte

// openAPI is the description of the REST interface, as it is served.
var openAPI = sync.OnceValues(func() (any, error) {
	var doc any
	if err := yaml.Load(openAPIFile, &doc); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	return doc, nil
})
