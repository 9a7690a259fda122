package drill

import _ "embed"

//go:generate go run ./gen

//go:embed schema.json
var schema []byte

// Schema is the JSON schema of a scenario file, for editors.
func Schema() []byte { return schema }

// Choices are the words that a field may hold, by its type and name in Go; nil
// where there is no such list.
func Choices(field string) []string {
	switch field {
	case "Workload.Priority":
		return priorities
	case "Layer.On":
		return occasions
	case "Fault.Mode":
		return modes
	case "Action.Do":
		return deeds
	}
	return nil
}

// NamePattern is what the names in a scenario look like.
func NamePattern() string { return names.String() }
