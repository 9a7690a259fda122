package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a configuration file.
const maxFile = 8 << 20

// Load reads and checks a file. The error is always Problems.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	c, ps := Check(path, env)
	if ps.Fatal() {
		return nil, ps
	}
	return c, nil
}

// Check reads a file and returns everything there is to say about it,
// warnings included. The configuration is usable when nothing is fatal.
func Check(path string, env func(string) (string, bool)) (*Config, Problems) {
	data, err := read(path)
	if err != nil {
		return Default(), Problems{{File: path, Message: "cannot be read: " + err.Error()}}
	}
	return Parse(path, data, env)
}

// read returns the file without its name in the error, which the problem has.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxFile+1)); len(data) > maxFile {
			err = fmt.Errorf("it is larger than %s", Bytes(maxFile))
		}
		if err == nil {
			return data, nil
		}
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return nil, err
}

// Parse checks a document. The configuration is usable when nothing is fatal.
func Parse(file string, data []byte, env func(string) (string, bool)) (*Config, Problems) {
	d := &decoder{file: file, env: env, page: newPage(data), at: map[string]*yaml.Node{}, referred: map[string]string{}}
	c := Default()
	var doc yaml.Node
	err := yaml.Load(data, &doc)
	switch {
	case err != nil && strings.Contains(err.Error(), "no documents"), err == nil && len(doc.Content) == 0:
		d.note(nil, Problem{Message: "the file is empty", Hint: "hourthree init writes an example"})
	case err != nil:
		d.page.names = true // nothing was recognised
		d.syntax(err)
	default:
		d.value(doc.Content[0], reflect.ValueOf(c).Elem(), "", "")
		if d.nodes > maxNodes {
			d.problems = Problems{{File: file, Message: fmt.Sprintf("the file has more than %d values", maxNodes), Hint: "aliases of lists multiply"}}
			break
		}
		(&checker{decoder: d, c: c}).run()
	}
	return c, d.finish()
}

// finish puts the problems in file order and adds the excerpts, which need to
// know all that may be shown.
func (d *decoder) finish() Problems {
	ps := d.problems
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	for i := range ps {
		ps[i].excerpt, ps[i].caret = d.page.excerpt(ps[i].Line, ps[i].Column)
	}
	if d.unshown > 0 {
		ps = append(ps, Problem{File: d.file, Message: fmt.Sprintf("%d more problems are not shown", d.unshown)})
	}
	return ps
}

// syntax notes what the YAML library says, with its place.
func (d *decoder) syntax(err error) {
	p := Problem{File: d.file, Message: "this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	var le *yaml.LoadError
	if errors.As(err, &le) {
		p.Line, p.Column, p.Message = le.Mark.Line, le.Mark.Column, "this is not YAML: "+le.Message
	}
	switch {
	case strings.Contains(p.Message, "anchor"): // it quotes the value
		p.Message, p.Hint = "a value that begins with * is an alias, and there is no such anchor", "put the value in quotes"
	case strings.Contains(p.Message, "single document"):
		p.Message = "the file must be one document, without a further ---"
	}
	p.Message = clean(p.Message)
	d.problems = append(d.problems, p)
}

// ID is a short digest of the settings, keys included, by which replicas are
// compared and a reload is seen to have changed something. It reveals nothing
// of the keys.
func (c *Config) ID() string {
	h := sha256.New()
	text, err := yaml.Dump(c) // sorted by name, secrets hidden
	if err != nil {
		return "unknown"
	}
	h.Write(text)
	secret := func(s Secret) {
		sum := sha256.Sum256([]byte(s.value))
		h.Write(sum[:])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		secret(p.APIKey)
		for _, header := range slices.Sorted(maps.Keys(p.Headers)) {
			secret(p.Headers[header])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Workloads)) {
		for _, k := range c.Workloads[name].Keys {
			secret(k)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Admin.Keys)) {
		secret(c.Admin.Keys[name].Key)
	}
	if o := c.Admin.OIDC; o != nil {
		secret(o.ClientSecret)
	}
	if o := c.Telemetry.OTLP; o != nil {
		for _, header := range slices.Sorted(maps.Keys(o.Headers)) {
			secret(o.Headers[header])
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}
