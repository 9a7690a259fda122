// Command gen writes what is made from the drills: the JSON schema of scenario
// files, from the types of package drill and their comments, and a page for
// each drill, from its scenario file and the recorded results. Run it with go
// generate ./internal/drill; a test holds the files to it.
//
// With -results FILE it first takes the results of FILE, which drill run --json
// has written, into the record. Scenarios that FILE has not keep theirs.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hourthree/hourthree/internal/drill"
	"github.com/hourthree/hourthree/internal/report"
)

func main() {
	log.SetFlags(0)
	results := flag.String("results", "", "take the results of this `file` of drill run --json into the record")
	version := flag.String("version", "", "of the router that they are of")
	dir := flag.String("dir", ".", "of package drill")
	flag.Parse()
	if err := run(*dir, *results, *version); err != nil {
		log.Fatal(err)
	}
}

// docs is where the pages are, from the package's directory.
const docs = "../../docs"

func run(dir, results, version string) error {
	if results != "" {
		if err := record(dir, results, version); err != nil {
			return err
		}
	}
	files, err := generate(dir)
	if err != nil {
		return err
	}
	stale, err := leftover(dir, files)
	if err != nil {
		return err
	}
	for _, path := range stale {
		if err := os.Remove(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files by their path from dir.
func generate(dir string) (map[string][]byte, error) {
	schema, err := schemaOf(filepath.Join(dir, "scenario.go"))
	if err != nil {
		return nil, err
	}
	scenarios, err := scenariosIn(filepath.Join(dir, "drills"))
	if err != nil {
		return nil, err
	}
	recorded, err := recordIn(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"schema.json": schema, docs + "/drill.schema.json": schema, docs + "/drills/README.md": index(scenarios, recorded),
	}
	for _, s := range scenarios {
		files[docs+"/drills/"+s.Name+".md"] = page(s, find(recorded, s.Name))
	}
	return files, nil
}

// leftover are pages of drills that are no more.
func leftover(dir string, files map[string][]byte) (stale []string, err error) {
	have, err := filepath.Glob(filepath.Join(dir, docs, "drills", "*.md"))
	for _, path := range have {
		if name := docs + "/drills/" + filepath.Base(path); files[name] == nil {
			stale = append(stale, name)
		}
	}
	return stale, err
}

// scenariosIn reads the files as they are written, without the defaults, by
// name. A file that cannot be played is an error.
func scenariosIn(dir string) ([]*drill.Scenario, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*drill.Scenario
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if _, err := drill.Parse(data); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s, err := plain(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *drill.Scenario) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

const recordPath = docs + "/drills/results.json"

// recordIn is the record; an absent one is empty.
func recordIn(dir string) ([]report.Summary, error) {
	path := filepath.Join(dir, recordPath)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []report.Summary
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// record takes results in, by scenario.
func record(dir, path, version string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	results, err := report.Decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	all, err := recordIn(dir)
	if err != nil {
		return err
	}
	for _, s := range report.Summarize(results) {
		s.Version = version
		for _, run := range s.Runs {
			for i := range run.Criteria { // the scenario file says both
				run.Criteria[i].Needs, run.Criteria[i].Fails = "", nil
			}
		}
		all = slices.DeleteFunc(all, func(o report.Summary) bool { return o.Scenario == s.Scenario })
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b report.Summary) int { return strings.Compare(a.Scenario, b.Scenario) })
	out, err := lines(all)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordPath), out, 0o644)
}

// lines is the record as JSON with a line for each run, so that a change of
// one is seen.
func lines(all []report.Summary) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("[")
	for i, s := range all {
		if i > 0 {
			out.WriteString(",")
		}
		runs := s.Runs
		s.Runs = nil
		head, err := compact(s)
		if err != nil {
			return nil, err
		}
		out.WriteString("\n" + strings.TrimSuffix(head, "null}") + "[")
		for k, run := range runs {
			if k > 0 {
				out.WriteString(",")
			}
			text, err := compact(run)
			if err != nil {
				return nil, err
			}
			out.WriteString("\n " + text)
		}
		out.WriteString("\n]}")
	}
	out.WriteString("\n]\n")
	return out.Bytes(), nil
}

// compact is JSON on one line, in which < and > stay as they are.
func compact(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(out.String()), err
}

func find(all []report.Summary, scenario string) *report.Summary {
	for i := range all {
		if all[i].Scenario == scenario {
			return &all[i]
		}
	}
	return nil
}
