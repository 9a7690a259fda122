package incident

import (
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
)

// vocabulary reads a folder's words and adds them to those there are.
func (rd *reader) vocabulary(f fs.FS, folder string) {
	shown := path.Join(folder, vocabularyFile)
	data, ok := rd.load(f, shown, vocabularyFile, maxVocabulary)
	if !ok {
		return
	}
	var v Vocabulary
	d := decode(shown, data, &v)
	from, to := reflect.ValueOf(v), reflect.ValueOf(&rd.vocab).Elem()
	for i := range from.NumField() {
		words, _ := from.Field(i).Interface().(map[string]Word)
		have, _ := to.Field(i).Interface().(map[string]Word)
		if have == nil {
			have = map[string]Word{}
			to.Field(i).Set(reflect.ValueOf(have))
		}
		facet := &definer{d, from.Type().Field(i).Tag.Get("yaml"), have, map[string]string{}}
		for _, s := range slices.Sorted(maps.Keys(have)) {
			facet.name(s, have[s])
		}
		for _, s := range slices.Sorted(maps.Keys(words)) {
			facet.define(s, words[s])
		}
	}
	rd.faults = append(rd.faults, d.all()...)
}

// definer adds words to one facet.
type definer struct {
	*decoder
	facet string
	have  map[string]Word
	names map[string]string // what each name stands for
}

func (d *definer) define(s string, w Word) {
	at := d.facet + "." + s
	_, twice := d.have[s]
	switch {
	case !goodSlug.MatchString(s):
		d.note(d.at[at], d.facet, quoted(s)+" is not a word", "small letters, digits and hyphens")
		return
	case d.facet == "kinds" && !slices.Contains(Kinds(), Kind(s)), d.facet == "access" && !slices.Contains(accesses, s):
		d.fault(at, "there are no others in "+d.facet, "remove it")
	case twice:
		d.fault(at, "the word is there already", "remove it: a folder adds words and changes none")
	case w.Meaning == "":
		d.fault(at, "has no meaning", "say in a sentence what it means")
	case d.facet == "conditions" && (w.Title == "" || w.Fails == ""):
		d.fault(at, "a condition has a title and says when it fails", "add title and fails")
	}
	d.name(s, w)
	d.have[s] = w
}

// name enters a word's names. A name stands for one word of a facet.
func (d *definer) name(s string, w Word) {
	for _, n := range append([]string{s}, w.Also...) {
		if other := d.names[slug(n)]; other != "" && other != s {
			d.fault(d.facet+"."+s, quoted(n)+" is also a name for "+other, "a name stands for one word of a facet")
		}
		d.names[slug(n)] = s
	}
}
