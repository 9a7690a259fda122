package config

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a Go duration such as 500ms, 30s or 10m. A bare number is
// refused, except 0: whether it meant seconds or milliseconds is not guessed.
type Duration time.Duration

// Duration returns it as Go has it.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String writes it as it is configured: 10m, not 10m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// MarshalText writes it as it is configured.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// maxDuration is beyond any use, and far from where sums overflow.
const maxDuration = 10_000 * time.Hour

func (d *Duration) parse(text string) error {
	if text == "0" {
		*d = 0
		return nil
	}
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("must be a duration such as 500ms, 30s or 10m")
	case v < 0:
		return errors.New("must not be negative")
	case v > maxDuration:
		return fmt.Errorf("must be at most %s", Duration(maxDuration))
	}
	*d = Duration(v)
	return nil
}

// AutoDuration is a duration above 0, or auto: learned from healthy calls.
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

// MarshalText writes it as it is configured.
func (a AutoDuration) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a *AutoDuration) parse(text string) error {
	var d Duration
	if text != "auto" {
		if err := d.parse(text); err != nil {
			return fmt.Errorf("%w, or auto", err)
		}
		if d == 0 {
			return errors.New("must be above 0, or auto")
		}
	}
	a.fixed = d
	return nil
}

// Bytes is a size such as 64MiB, 10MB or 4096.
type Bytes int64

// Bytes returns the number of bytes.
func (b Bytes) Bytes() int64 { return int64(b) }

// MarshalText writes it as it is configured.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// maxBytes is 1 PiB: beyond any machine, and exact as a float.
const maxBytes = 1 << 50

var (
	sizeForm  = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKMG]i?B|B)?$`)
	sizeUnits = map[string]float64{"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// String writes it in the largest binary unit that fits.
func (b Bytes) String() string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if size := Bytes(sizeUnits[unit]); b != 0 && b%size == 0 {
			return strconv.FormatInt(int64(b/size), 10) + unit
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads a size.
func ParseBytes(text string) (Bytes, error) {
	var b Bytes
	err := b.parse(text)
	return b, err
}

func (b *Bytes) parse(text string) error {
	bad := errors.New("must be a size such as 64MiB, 10MB or 4096")
	m := sizeForm.FindStringSubmatch(text)
	if m == nil {
		return bad
	}
	size, ok := sizeUnits[m[2]]
	f, err := strconv.ParseFloat(m[1], 64)
	if !ok || err != nil {
		return bad
	}
	if f*size > maxBytes {
		return errors.New("is larger than any machine has")
	}
	*b = Bytes(f * size)
	return nil
}

// AutoBytes is a size above 0, or auto: taken from the machine.
type AutoBytes struct{ fixed Bytes }

// FixedBytes is a size that was set.
func FixedBytes(n int64) AutoBytes { return AutoBytes{fixed: Bytes(n)} }

// Bytes is the configured size, 0 for auto.
func (a AutoBytes) Bytes() int64 { return int64(a.fixed) }

// String writes it as it is configured.
func (a AutoBytes) String() string {
	if a.fixed == 0 {
		return "auto"
	}
	return a.fixed.String()
}

// MarshalText writes it as it is configured.
func (a AutoBytes) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

func (a *AutoBytes) parse(text string) error {
	var b Bytes
	if text != "auto" {
		if err := b.parse(text); err != nil {
			return fmt.Errorf("%w, or auto", err)
		}
		if b == 0 {
			return errors.New("must be above 0, or auto")
		}
	}
	a.fixed = b
	return nil
}

// Share is a part of a whole, such as 5% or 0.05: above 0 and at most 1.
type Share float64

// String writes it as a percentage.
func (s Share) String() string { return strconv.FormatFloat(float64(s)*100, 'g', 6, 64) + "%" }

// MarshalText writes it as a percentage.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Share) parse(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f > 0 && f <= 1) { // also what is no number
		return errors.New("must be a share such as 5% or 0.05: above 0, at most 100%")
	}
	*s = Share(f)
	return nil
}

// Secret is a value that no printed form shows: not as text, YAML or JSON,
// not in a log line, and under no formatting verb.
type Secret struct{ value string }

// NewSecret wraps a value.
func NewSecret(v string) Secret { return Secret{v} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// String hides the value; it is empty when there is none.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "***"
}

// Format hides the value under every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText hides the value, in YAML and JSON alike.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

func (s *Secret) parse(text string) error {
	text = strings.TrimSpace(text) // a file or a variable often ends in a newline
	if text == "" {
		return errors.New("must not be empty")
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			return errors.New("must be one line without control characters")
		}
	}
	s.value = text
	return nil
}
