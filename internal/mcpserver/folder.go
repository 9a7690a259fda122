package mcpserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of a folder that is looked through.
const (
	maxEntries = 50_000
	maxDepth   = 64
)

// folder is the one below which files may be read. Links that lead out of it
// are refused before anything is read.
type folder struct {
	path string // with its links resolved
	root *os.Root
}

func openFolder(path string) (*folder, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, fmt.Errorf("open the root of files: %w; name a folder that is there with --root", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open the root of files: %w; name a folder with --root", err)
	}
	return &folder{real, root}, nil
}

// paths are the files and folders that are asked for, as package collect reads
// them. They are named as seen from the root.
func (f *folder) paths(asked []string) ([]string, error) {
	var out []string
	left := maxEntries
	for _, p := range asked {
		local := filepath.FromSlash(p)
		if filepath.IsAbs(local) {
			rel, err := filepath.Rel(f.path, local)
			if err != nil {
				rel = local
			}
			local = rel
		}
		if local = filepath.Clean(local); !filepath.IsLocal(local) {
			return nil, refuse("%q is not below the folder that this process may read; name paths as seen from it", plain(p, shortText))
		}
		if err := f.inside(local, 0, &left); err != nil {
			return nil, err
		}
		out = append(out, filepath.Join(f.path, local))
	}
	return out, nil
}

// inside refuses what leads out of the root, at path or below.
func (f *folder) inside(path string, depth int, left *int) error {
	if *left--; *left < 0 || depth > maxDepth {
		return refuse("there are more than %d files, or folders more than %d deep; name the folders that matter", maxEntries, maxDepth)
	}
	shown := plain(filepath.ToSlash(path), shortText)
	info, err := f.root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && depth > 0:
		return nil // a link to nothing; reading says so
	case errors.Is(err, fs.ErrNotExist):
		return refuse("there is no file or folder %q below the folder that this process may read", shown)
	case err != nil:
		return refuse("%q cannot be read, or leads out of the folder that this process may read", shown)
	case !info.IsDir() && !info.Mode().IsRegular():
		if depth > 0 {
			return nil // not read in folders
		}
		return refuse("%q is neither a file nor a folder", shown)
	case !info.IsDir():
		return nil
	}
	dir, err := f.root.Open(path)
	if err != nil {
		return refuse("%q cannot be read", shown)
	}
	entries, err := dir.ReadDir(*left + 1)
	dir.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return refuse("%q cannot be read", shown)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" {
			continue // not read in folders
		}
		if err := f.inside(filepath.Join(path, e.Name()), depth+1, left); err != nil {
			return err
		}
	}
	return nil
}
