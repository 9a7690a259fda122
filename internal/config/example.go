package config

import _ "embed"

//go:generate go run ./gen

//go:embed schema.json
var schema []byte

//go:embed example.yaml
var example []byte

// Schema is the JSON schema of a configuration file, for editors.
func Schema() []byte { return schema }

// Example is the commented configuration that hourthree init writes.
func Example() []byte { return example }
