package manifest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Options say what to read, and how much of it at most.
type Options struct {
	// Paths are files, folders, or "-" for standard input.
	Paths []string
	// Namespace is that of objects which name none, default "default".
	Namespace string
	Stdin     io.Reader // default os.Stdin

	MaxFile      int64 // bytes of one file, default 32 MiB
	MaxTotal     int64 // bytes of all files, default 64 MiB
	MaxDocuments int   // in all files, default 100,000
	MaxDepth     int   // of values in values, default 100
	MaxExpanded  int   // values that the aliases of one document stand for, default 100,000
	MaxEntries   int   // in all folders, default 100,000
}

// DefaultOptions are the bounds that hold where none are given.
var DefaultOptions = Options{
	Namespace: "default", MaxFile: 32 << 20, MaxTotal: 64 << 20,
	MaxDocuments: 100_000, MaxDepth: 100, MaxExpanded: 100_000, MaxEntries: 100_000,
}

func (o *Options) setDefaults() {
	d := DefaultOptions
	o.Namespace = cmp.Or(o.Namespace, d.Namespace)
	o.MaxFile, o.MaxTotal = cmp.Or(o.MaxFile, d.MaxFile), cmp.Or(o.MaxTotal, d.MaxTotal)
	o.MaxDocuments, o.MaxDepth = cmp.Or(o.MaxDocuments, d.MaxDocuments), cmp.Or(o.MaxDepth, d.MaxDepth)
	o.MaxExpanded, o.MaxEntries = cmp.Or(o.MaxExpanded, d.MaxExpanded), cmp.Or(o.MaxEntries, d.MaxEntries)
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
}

// bounds are what one document may cost.
type bounds struct {
	depth, expanded int
	spent           *int // adds up what aliases stand for; nil for nobody who asks
}

// maxLaughs is how many documents may have as many aliases as one may: each takes
// the time of a large one, and a small file has many.
const maxLaughs = 100

// maxProblems is what is said about one document or one input; more is counted.
const maxProblems = 1000

// Set is everything that was read.
type Set struct {
	Objects  []*Object // in the order of the files, without those that a later one replaces
	Problems []Problem // in the order of the files
}

// Read reads objects and configurations from files. A fault in one document
// costs that document alone and is a Problem. An error means that nothing can
// be said: a path that is not there, or ctx is done.
func Read(ctx context.Context, opts Options) (*Set, error) {
	opts.setDefaults()
	r := &reader{opts: opts, left: opts.MaxTotal, entries: opts.MaxEntries, seen: map[string]bool{}, skip: map[string]bool{}}
	for _, path := range opts.Paths {
		if err := r.path(ctx, path); err != nil {
			return nil, err
		}
	}
	if r.unread > 0 {
		r.note(Problem{File: opts.Paths[0], Lost: true, What: fmt.Sprintf("%d files were not read: all files together have more than %s", r.unread, size(opts.MaxTotal)),
			Remedy: "give fewer files, or allow more with --max-total"})
	}
	if err := r.parse(ctx); err != nil {
		return nil, err
	}
	return r.set(), nil
}

// reader collects pieces of input, reads them side by side, and keeps the order.
type reader struct {
	opts    Options
	left    int64 // bytes
	entries int
	docs    int
	unread  int
	seen    map[string]bool // real paths
	skip    map[string]bool // paths of files in folders that are no objects
	pieces  []piece
}

// piece is one document, or a problem that has none.
type piece struct {
	doc      document
	kind     string // of a text that is neither YAML nor JSON
	objects  []*Object
	problems []Problem
	expanded int // values that aliases in it stand for
}

func (r *reader) note(p Problem) { r.pieces = append(r.pieces, piece{problems: []Problem{p}}) }

func (r *reader) path(ctx context.Context, name string) error {
	if name == "-" {
		r.content("-", r.opts.Stdin)
		return ctx.Err()
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	if info.IsDir() {
		return r.folder(ctx, name, 0)
	}
	r.file(name, info)
	return ctx.Err()
}

// file reads a file that is named or was found in a folder.
func (r *reader) file(path string, info os.FileInfo) {
	name := filepath.ToSlash(path)
	if real, err := filepath.EvalSymlinks(path); err == nil && info.Mode().IsRegular() {
		if real, err = filepath.Abs(real); err == nil {
			if r.seen[real] {
				return
			}
			r.seen[real] = true
		}
	}
	if info.Mode().IsRegular() && info.Size() > r.opts.MaxFile {
		r.note(r.tooLarge(name, size(info.Size())))
		return
	}
	f, err := os.Open(path)
	if err != nil {
		r.note(Problem{File: name, What: "cannot be read: " + reason(err), Remedy: "make it readable, or leave it out", Lost: true})
		return
	}
	defer f.Close()
	r.content(name, f)
}

// reason is an error without the path, which stands before it.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func (r *reader) tooLarge(name, has string) Problem {
	return Problem{File: name, Lost: true, What: fmt.Sprintf("has %s, more than the %s that one file may have", has, size(r.opts.MaxFile)),
		Remedy: "split it, or allow more with --max-file"}
}

func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// content reads one file or standard input into documents.
func (r *reader) content(name string, from io.Reader) {
	if r.left <= 0 {
		r.unread++
		return
	}
	raw, err := io.ReadAll(io.LimitReader(from, min(r.opts.MaxFile, r.left)+1))
	switch {
	case err != nil:
		r.note(Problem{File: name, What: "cannot be read: " + reason(err), Remedy: "make it readable, or leave it out", Lost: true})
		return
	case int64(len(raw)) > r.opts.MaxFile:
		r.note(r.tooLarge(name, "more than "+size(r.opts.MaxFile)))
		return
	case int64(len(raw)) > r.left:
		r.left = 0
		r.unread++
		return
	}
	r.left -= int64(len(raw))
	text, notes := decodeText(name, raw)
	for _, p := range notes {
		r.note(p)
	}
	r.documents(name, text)
}

// documents cuts a file into what is read by itself.
func (r *reader) documents(name string, text []byte) {
	base, ext := filepath.Base(name), extension(name)
	manifests := ext == ".yaml" || ext == ".yml" || ext == ".json"
	if !manifests {
		if kind := productOfText(base, text); kind != "" {
			r.pieces = append(r.pieces, piece{doc: document{name, 1, text}, kind: kind})
			return
		}
		if ext == ".conf" || ext == ".cfg" {
			if _, maybe := mayConfigure(text); !maybe && len(bytes.TrimSpace(text)) > 0 {
				r.note(Problem{File: name, Line: 1, What: "is not the configuration of a known gateway", Remedy: expected})
				return
			}
		}
	}
	docs := split(name, text)
	if ext == ".json" {
		docs = []document{{file: name, line: 1, text: text}}
		if len(bytes.TrimSpace(text)) == 0 {
			docs = nil
		}
	}
	for i, d := range docs {
		if r.docs++; r.docs > r.opts.MaxDocuments {
			r.note(Problem{File: name, Line: d.line, Lost: true, Remedy: "give fewer files",
				What: fmt.Sprintf("%d documents were not read: there are more than %d", len(docs)-i, r.opts.MaxDocuments)})
			return
		}
		r.pieces = append(r.pieces, piece{doc: d})
	}
}

// parse reads all documents, on every processor: YAML is slow to read.
func (r *reader) parse(ctx context.Context) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, max(len(r.pieces), 1)) {
		wg.Go(func() {
			w := words{}
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(r.pieces) {
					return
				}
				r.pieces[i].read(bounds{depth: r.opts.MaxDepth, expanded: r.opts.MaxExpanded}, w)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}

func (p *piece) read(b bounds, w words) {
	switch {
	case p.doc.text == nil:
	case p.kind != "":
		p.objects = []*Object{{Group: FileGroup, Kind: p.kind, Name: fileName(p.doc.file), Text: p.doc.text, textLine: 1,
			Origin: Origin{File: p.doc.file, Line: 1}}}
	default:
		b.spent = &p.expanded
		p.objects, p.problems = p.doc.read(b, w)
	}
}

// fileName is the name of a gateway's own file.
func fileName(file string) string {
	if file == "-" {
		return "stdin"
	}
	return path.Base(file)
}

// set puts everything together.
func (r *reader) set() *Set {
	s := &Set{}
	left := maxLaughs * r.opts.MaxExpanded
	for _, p := range r.pieces {
		if left -= p.expanded; left < 0 && p.expanded > 0 {
			p.objects = nil
			p.problems = append(p.problems, Problem{File: p.doc.file, Line: p.doc.line, Lost: true, Remedy: "write the values out",
				What: fmt.Sprintf("was not read: the aliases of all documents stand for more than %d values", maxLaughs*r.opts.MaxExpanded)})
		}
		s.Objects = append(s.Objects, p.objects...)
		s.Problems = append(s.Problems, p.problems...)
	}
	settle(s.Objects, r.opts.Namespace)
	s.Objects, s.Problems = unique(s.Objects, s.Problems)
	if n := len(s.Problems) - maxProblems; n > 0 {
		lost := slices.ContainsFunc(s.Problems[maxProblems:], func(p Problem) bool { return p.Lost })
		s.Problems = append(s.Problems[:maxProblems], Problem{File: s.Problems[maxProblems].File, Lost: lost,
			What: fmt.Sprintf("%d more problems are not listed", n), Remedy: "correct those above first"})
	}
	return s
}
