package queue

// Priority is how much the requests of a workload matter to its operator. A
// smaller one is served first and refused last.
type Priority uint8

// The priorities, from the most important on.
const (
	Critical Priority = iota
	Interactive
	Batch
	NumPriorities
)

var priorityNames = [NumPriorities]string{"critical", "interactive", "batch"}

// String is the word in configuration, metrics and pages.
func (p Priority) String() string {
	if p >= NumPriorities {
		return "unknown"
	}
	return priorityNames[p]
}

// ParsePriority reads the word. Nothing said is Interactive.
func ParsePriority(word string) (p Priority, ok bool) {
	if word == "" {
		return Interactive, true
	}
	for i, name := range priorityNames {
		if name == word {
			return Priority(i), true
		}
	}
	return 0, false
}
