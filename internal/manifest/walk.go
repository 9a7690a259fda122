package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxFolders bounds folders in folders.
const maxFolders = 64

// folder reads the manifests in a folder and below, in the order of names.
func (r *reader) folder(ctx context.Context, dir string, depth int) error {
	name := filepath.ToSlash(dir)
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > maxFolders {
		r.note(Problem{File: name, Lost: true, What: fmt.Sprintf("is more than %d folders deep", maxFolders), Remedy: "name it by itself"})
		return nil
	}
	if !r.enter(dir) {
		r.note(Problem{File: name, What: "leads to a folder that was read already", Remedy: "nothing is needed; it was read once"})
		return nil
	}
	entries, err := r.list(dir)
	if err != nil {
		r.note(Problem{File: name, What: "cannot be read: " + reason(err), Remedy: "make it readable, or leave it out", Lost: true})
		return nil
	}
	chart := r.special(name, entries)
	for _, e := range entries {
		full := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || r.skip[filepath.ToSlash(full)] {
			continue
		}
		if chart && (e.Name() == "templates" || e.Name() == "charts" || strings.HasPrefix(e.Name(), "values")) {
			continue
		}
		info, err := os.Stat(full)
		switch {
		case err != nil && read(e.Name()):
			r.note(Problem{File: filepath.ToSlash(full), What: "cannot be read: " + reason(err), Remedy: "correct the link, or remove it", Lost: true})
		case err != nil:
		case info.IsDir():
			if err := r.folder(ctx, full, depth+1); err != nil {
				return err
			}
		case info.Mode().IsRegular() && read(e.Name()):
			r.file(full, info)
		}
	}
	return nil
}

// extension is that of a file's name, in small letters: some systems do not tell
// them apart.
func extension(name string) string { return strings.ToLower(filepath.Ext(name)) }

// read says that files of that name are read in folders.
func read(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".conf", ".cfg"}, extension(name))
}

// enter says that a folder was not read before. Links may lead in circles.
func (r *reader) enter(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return true // reading it will say why
	}
	first := !r.seen[real]
	r.seen[real] = true
	return first
}

// list are the entries of a folder by name, as far as the bound allows.
func (r *reader) list(dir string) ([]os.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(r.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > r.entries {
		entries = entries[:r.entries]
		r.note(Problem{File: filepath.ToSlash(dir), Lost: true, Remedy: "name the folders that matter",
			What: fmt.Sprintf("was read in part: there are more than %d files", r.opts.MaxEntries)})
	}
	r.entries -= len(entries)
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// special finds Helm charts and Kustomize folders, whose files are not what
// will be applied, and notes which of them are left out.
func (r *reader) special(dir string, entries []os.DirEntry) (chart bool) {
	for _, e := range entries {
		switch e.Name() {
		case "Chart.yaml":
			chart = true
			r.skip[path.Join(dir, e.Name())] = true
			r.note(Problem{File: dir, Lost: true, What: "is a Helm chart that is not rendered; its templates were not read",
				Remedy: "render first: helm template NAME " + dir + " | hourthree audit -"})
		case "kustomization.yaml", "kustomization.yml", "Kustomization":
			patches := r.patches(filepath.Join(dir, e.Name()))
			for _, p := range patches {
				r.skip[path.Join(dir, p)] = true
			}
			r.skip[path.Join(dir, e.Name())] = true
			what := "is a Kustomize file that is not built: its patches are not applied, the files are judged as they stand"
			if n := len(patches); n > 0 {
				what += fmt.Sprintf("; not read as patches: %s", strings.Join(patches[:min(n, 10)], ", "))
				if n > 10 {
					what += fmt.Sprintf(" and %d more", n-10)
				}
			}
			r.note(Problem{File: path.Join(dir, e.Name()), What: what,
				Remedy: "build first: kustomize build " + dir + " | hourthree audit -"})
		}
	}
	return chart
}

// patches are the files that a Kustomize file applies to others: they are parts
// of objects, not objects.
func (r *reader) patches(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil
	}
	var out []string
	objects := map[string]bool{} // what is named as one is no patch
	for _, d := range split(file, text) {
		trees, _ := d.parse(bounds{depth: r.opts.MaxDepth, expanded: r.opts.MaxExpanded}, words{})
		for _, t := range trees {
			for _, field := range []string{"resources", "bases", "components"} {
				list, _ := At(t.value, field).([]any)
				for _, e := range list {
					if s, ok := e.(string); ok {
						objects[path.Clean(s)] = true
					}
				}
			}
			for _, field := range []string{"patches", "patchesStrategicMerge", "patchesJson6902", "replacements", "transformers", "generators", "configurations"} {
				list, _ := At(t.value, field).([]any)
				for _, e := range list {
					if s, ok := e.(string); ok && !strings.Contains(s, "\n") {
						out = append(out, s)
					} else if s, ok := At(e, "path").(string); ok {
						out = append(out, s)
					}
				}
			}
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(p string) bool { return objects[path.Clean(p)] })
}
