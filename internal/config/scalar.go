package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a Go duration such as 500ms, 30s or 10m. A bare number is
// refused, except 0.
type Duration time.Duration

// Duration returns it as Go has it.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String writes it as it is configured.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalYAML writes it as it is configured.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

func (d *Duration) parse(text string) error {
	if text == "0" {
		*d = 0
		return nil
	}
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("must be a duration such as 500ms, 30s or 10m")
	case v < 0:
		return fmt.Errorf("must not be negative")
	}
	*d = Duration(v)
	return nil
}

// AutoDuration is a duration, or auto: learned from healthy calls.
type AutoDuration struct{ fixed Duration }

// Fixed is the configured duration, 0 for auto.
func (a AutoDuration) Fixed() time.Duration { return time.Duration(a.fixed) }

// String writes it as it is configured.
func (a AutoDuration) String() string {
	if a.fixed == 0 {
		return "auto"
	}
	return a.fixed.String()
}

// MarshalYAML writes it as it is configured.
func (a AutoDuration) MarshalYAML() (any, error) { return a.String(), nil }

func (a *AutoDuration) parse(text string) error {
	if text == "auto" {
		a.fixed = 0
		return nil
	}
	var d Duration
	if err := d.parse(text); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	if d == 0 {
		return fmt.Errorf("must be above 0, or auto")
	}
	a.fixed = d
	return nil
}

// Bytes is a size such as 64MiB, 10MB or 4096. 0 stands for auto where auto
// is allowed.
type Bytes int64

// Bytes returns the number of bytes.
func (b Bytes) Bytes() int64 { return int64(b) }

// MarshalYAML writes it as it is configured.
func (b Bytes) MarshalYAML() (any, error) { return b.String(), nil }

var units = []struct {
	name string
	size int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}, {"", 1},
}

// String writes it in the largest binary unit that fits.
func (b Bytes) String() string {
	for _, u := range units[:3] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

func (b *Bytes) parse(text string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || f < 0 || f*float64(u.size) > 1<<50 {
			break
		}
		*b = Bytes(f * float64(u.size))
		return nil
	}
	return fmt.Errorf("must be a size such as 64MiB, 10MB or 4096")
}

// Secret is a value that no printed form shows.
type Secret struct{ value string }

// NewSecret wraps a value.
func NewSecret(v string) Secret { return Secret{v} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// String hides the value.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "***"
}

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// MarshalYAML hides the value.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// MarshalText hides the value, in JSON too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Secret) parse(text string) error {
	if strings.ContainsAny(text, "\r\n\x00") {
		return fmt.Errorf("must be one line")
	}
	if text == "" {
		return fmt.Errorf("must not be empty")
	}
	s.value = text
	return nil
}
