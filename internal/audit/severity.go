package audit

import "fmt"

var severities = [...]string{Low: "low", Medium: "medium", High: "high", Critical: "critical"}

func (s Severity) String() string {
	if s < Low || s > Critical {
		return fmt.Sprintf("severity(%d)", uint8(s))
	}
	return severities[s]
}

// ParseSeverity reads low, medium, high or critical.
func ParseSeverity(text string) (Severity, error) {
	for s := Low; s <= Critical; s++ {
		if severities[s] == text {
			return s, nil
		}
	}
	return 0, fmt.Errorf("severity %q is none of low, medium, high, critical", text)
}

// MarshalText writes the severity's name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the severity's name.
func (s *Severity) UnmarshalText(p []byte) (err error) {
	*s, err = ParseSeverity(string(p))
	return err
}
