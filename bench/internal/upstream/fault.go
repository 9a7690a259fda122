package upstream

import "fmt"

// Fault is how the upstream misbehaves.
type Fault int32

// The faults.
const (
	None       Fault = iota
	Hang             // read the call, never answer
	Storm            // 503 for every call
	Half             // 500 for every second call, at random
	Limited          // 429 with Retry-After: 5
	Slow             // nothing for Shape.Slow, then a good answer
	ResetFirst       // a stream breaks before its first content, JSON half-way
	ResetMid         // a stream breaks after five chunks, JSON half-way
	ErrorFirst       // 200 with an error as first event, or as JSON body
	ErrorMid         // an error event after five chunks, or as JSON body
)

var faultNames = []string{"none", "hang", "503", "share50", "429", "slow", "reset-first", "reset-mid", "error-first", "error-mid"}

// String is the name used on the control endpoint.
func (f Fault) String() string {
	if f < 0 || int(f) >= len(faultNames) {
		return fmt.Sprintf("Fault(%d)", int32(f))
	}
	return faultNames[f]
}

// MarshalText writes the name.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name.
func (f *Fault) UnmarshalText(text []byte) error {
	for i, name := range faultNames {
		if name == string(text) {
			*f = Fault(i)
			return nil
		}
	}
	return fmt.Errorf("no fault is called %q", text)
}
