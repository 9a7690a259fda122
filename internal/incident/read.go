package incident

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Bounds of what is read.
const (
	maxRecord     = 64 << 10
	maxVocabulary = 512 << 10
	maxFiles      = 5000
)

// vocabularyFile is the name of the one file of a folder that is not a record.
const vocabularyFile = "vocabulary.yaml"

// home is where the records that come with the program are in its source.
const home = "internal/incident/data"

// page is a record as it was read, with what is needed to say what is wrong
// with it.
type page struct {
	*decoder
	r *Record
}

// reader collects the files of all folders.
type reader struct {
	vocab  Vocabulary
	pages  map[string]page // by id
	faults Faults
}

func read(own fs.FS, folders []fs.FS) (*Library, error) {
	rd := &reader{pages: map[string]page{}}
	rd.folder(own, home)
	for _, f := range folders {
		rd.folder(f, nameOf(f))
	}
	for _, id := range slices.Sorted(maps.Keys(rd.pages)) {
		p := rd.pages[id]
		rd.checkRelated(p)
		rd.faults = append(rd.faults, p.all()...)
	}
	if len(rd.faults) > 0 {
		return nil, rd.faults.sorted()
	}
	records := make([]*Record, 0, len(rd.pages))
	for _, p := range rd.pages {
		records = append(records, p.r)
	}
	link(records)
	return newLibrary(rd.vocab, records), nil
}

// nameOf is a folder's path where it has one: os.DirFS is a string, which is
// the only way to learn it.
func nameOf(f fs.FS) string {
	if v := reflect.ValueOf(f); v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

// folder reads all files of a folder, its vocabulary first: the records use it.
func (rd *reader) folder(f fs.FS, name string) {
	files, err := list(f)
	if err != nil {
		rd.faults = append(rd.faults, Fault{File: path.Join(name, "."), Message: "cannot be read: " + plainError(err), Remedy: "name a folder that exists and can be read"})
	}
	if len(files) > maxFiles {
		rd.faults = append(rd.faults, Fault{File: path.Join(name, "."), Message: fmt.Sprintf("has more than %d files", maxFiles), Remedy: "split it"})
		return
	}
	if slices.Contains(files, vocabularyFile) {
		rd.vocabulary(f, name)
	}
	here := map[string]string{}
	for _, file := range files {
		if file != vocabularyFile {
			rd.record(f, name, file, here)
		}
	}
}

// list are the YAML files of a folder, in order. Names with a leading dot are
// not looked at: a mounted ConfigMap has such.
func list(f fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(f, ".", func(name string, e fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case base != "." && strings.HasPrefix(base, "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case len(files) > maxFiles:
			return fs.SkipAll
		case !e.IsDir() && (path.Ext(base) == ".yaml" || path.Ext(base) == ".yml"):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

func plainError(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

// load reads a file that may not be longer than a bound.
func (rd *reader) load(f fs.FS, shown, file string, most int64) ([]byte, bool) {
	// A pipe would be waited for without end, and a device read to the bound.
	info, err := fs.Stat(f, file)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	var data []byte
	if err == nil {
		data, err = readUpTo(f, file, most+1)
	}
	switch {
	case err != nil:
		rd.faults = append(rd.faults, Fault{File: shown, Message: "cannot be read: " + plainError(err), Remedy: "make it readable, or remove it"})
		return nil, false
	case int64(len(data)) > most:
		rd.faults = append(rd.faults, Fault{File: shown, Message: fmt.Sprintf("is longer than %d KiB", most>>10), Remedy: "a record is a page: shorten it"})
		return nil, false
	}
	return data, true
}

func readUpTo(f fs.FS, file string, most int64) ([]byte, error) {
	r, err := f.Open(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, most))
}

func (rd *reader) record(f fs.FS, folder, file string, here map[string]string) {
	shown := path.Join(folder, file)
	data, ok := rd.load(f, shown, file, maxRecord)
	if !ok {
		return
	}
	r := &Record{Origin: shown}
	d := decode(shown, data, r)
	if len(d.at) == 0 { // nothing was read of it: the rest would be missing everywhere
		rd.faults = append(rd.faults, d.all()...)
		return
	}
	ours := folder == home
	(&checker{decoder: d, r: r, vocab: &rd.vocab}).run()
	base := strings.TrimSuffix(path.Base(file), path.Ext(file))
	_, replaces := rd.pages[r.ID]
	switch {
	case !goodID.MatchString(r.ID): // said by the checker
	case r.ID != base:
		d.fault("id", r.ID+" is in a file named "+path.Base(file), "name the file "+r.ID+".yaml")
	case here[r.ID] != "":
		d.fault("id", r.ID+" is also in "+here[r.ID], "give one of them another id")
	case !ours && strings.HasPrefix(r.ID, ownPrefix) && !replaces:
		d.fault("id", "there is no "+r.ID+" to replace", "records of your own have another prefix, such as ACME-0001")
	}
	if len(d.faults) > 0 {
		rd.faults = append(rd.faults, d.all()...)
		d.faults, d.unshown = nil, 0
	}
	if r.ID != "" {
		here[r.ID] = shown
		rd.pages[r.ID] = page{d, r}
	}
}

func (rd *reader) checkRelated(p page) {
	for i, id := range p.r.Related {
		if _, ok := rd.pages[id]; !ok {
			known := slices.Collect(maps.Keys(rd.pages))
			p.fault(fmt.Sprintf("related[%d]", i), "there is no record "+quoted(id), didYouMean(nearest(id, known), "remove it"))
		}
	}
}

// link makes relations mutual: a record that is added need not be entered in
// those it relates to.
func link(records []*Record) {
	byID := map[string]*Record{}
	for _, r := range records {
		byID[r.ID] = r
	}
	for _, r := range records {
		for _, id := range r.Related {
			if o := byID[id]; !slices.Contains(o.Related, r.ID) {
				o.Related = append(o.Related, r.ID)
			}
		}
	}
	for _, r := range records {
		slices.Sort(r.Related)
	}
}
