package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a configuration file.
const maxFile = 8 << 20

// Default is the configuration of an empty file.
func Default() *Config {
	return &Config{
		Listen: "127.0.0.1:8080",
		Admin:  Admin{Listen: "127.0.0.1:8081"},
		Defaults: Defaults{
			Timeouts: Timeouts{Connect: Duration(3 * time.Second), Idle: Duration(30 * time.Second), Total: Duration(10 * time.Minute)},
			Retry:    Retry{Attempts: 3, Ratio: 0.1, MaxRatio: 1, PerSuccess: 0.1},
			Breaker: Breaker{
				Window: Duration(10 * time.Second), MinRequests: 20, FailureRatio: 0.5, CoolDown: Duration(5 * time.Second),
				MaxCoolDown: Duration(time.Minute), Probes: 3, Ramp: Duration(time.Minute),
			},
			Queue: Queue{Length: 1000, Bytes: 64 << 20, Wait: Duration(200 * time.Millisecond)},
		},
		HTTP: HTTP{
			MaxBody: 64 << 20, MaxHeader: 32 << 10, HeaderTimeout: Duration(5 * time.Second),
			WriteTimeout: Duration(30 * time.Second), Drain: Duration(10 * time.Minute),
		},
	}
}

// Load reads and checks a file. The error is Problems, or that of reading.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	c, ps, err := Check(path, env)
	if err != nil {
		return nil, err
	}
	if ps.fatal() {
		return nil, ps
	}
	return c, nil
}

// Check reads a file and returns everything there is to say about it,
// warnings included.
func Check(path string, env func(string) (string, bool)) (*Config, Problems, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > maxFile {
		return nil, nil, fmt.Errorf("read configuration: %s is larger than %s", path, Bytes(maxFile))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	c, ps := Parse(path, data, env)
	return c, ps, nil
}

// Parse checks a document. The configuration is usable when none of the
// problems is an error.
func Parse(file string, data []byte, env func(string) (string, bool)) (*Config, Problems) {
	d := &decoder{file: file, lines: strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), env: env, at: map[string]*yaml.Node{}}
	c := Default()
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		d.syntax(err)
		return c, d.problems
	}
	if len(doc.Content) == 0 {
		d.note(nil, "", "the file is empty", "hourthree init writes an example")
		return c, d.problems
	}
	d.value(doc.Content[0], reflect.ValueOf(c).Elem(), "", nil)
	c.complete()
	(&checker{decoder: d, c: c}).run()
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return c, d.problems
}

// syntax notes what the YAML library says, with its place.
func (d *decoder) syntax(err error) {
	p := Problem{File: d.file, Message: strings.TrimPrefix(err.Error(), "yaml: ")}
	var le *yaml.LoadErrors
	if errors.As(err, &le) && len(le.Errors) > 0 {
		first := le.Errors[0]
		p.Line, p.Column, p.Message = first.Mark.Line, max(1, first.Mark.Column), first.Message
	}
	if p.Line >= 1 && p.Line <= len(d.lines) {
		p.source = d.lines[p.Line-1]
	}
	d.problems = append(d.problems, p)
}

// complete fills in what depends on other fields.
func (c *Config) complete() {
	for name, m := range c.Models {
		for i := range m.Targets {
			t := &m.Targets[i]
			if t.Order == 0 {
				t.Order = 1
			}
			if t.Weight == 0 {
				t.Weight = 1
			}
		}
		c.Models[name] = m
	}
}

// ID is a short digest of the settings, secrets by their digest only, so that
// replicas can be compared.
func (c *Config) ID() string {
	text, err := yaml.Marshal(c)
	if err != nil {
		return "unknown"
	}
	h := sha256.New()
	h.Write(text)
	for _, w := range c.Workloads {
		for _, k := range w.Keys {
			sum := sha256.Sum256([]byte(k.value))
			text = append(text, sum[:]...)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}
