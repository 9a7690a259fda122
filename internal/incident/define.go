package incident

import (
	"fmt"
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
		name := from.Type().Field(i).Tag.Get("yaml")
		have, _ := to.Field(i).Interface().(map[string]Word)
		if have == nil {
			have = map[string]Word{}
			to.Field(i).Set(reflect.ValueOf(have))
		}
		words, _ := from.Field(i).Interface().(map[string]Word)
		for _, s := range slices.Sorted(maps.Keys(words)) {
			d.define(name, s, words[s], have)
		}
	}
	rd.faults = append(rd.faults, d.all()...)
}

// define adds a word to those of its facet.
func (d *decoder) define(facet, s string, w Word, have map[string]Word) {
	at := facet + "." + s
	_, twice := have[s]
	switch {
	case !goodSlug.MatchString(s):
		d.fault(at, quoted(s)+" is not a word", "small letters, digits and hyphens")
	case twice:
		d.fault(at, "the word is there already", "remove it: a folder adds words and changes none")
	case w.Meaning == "":
		d.fault(at, "has no meaning", "say in a sentence what it means")
	case facet == "conditions" && (w.Title == "" || w.Fails == ""):
		d.fault(at, "a condition has a title and says when it fails", "add title and fails")
	}
	for _, a := range w.Also {
		for _, other := range slices.Sorted(maps.Keys(have)) {
			if slug(a) == other || slices.ContainsFunc(have[other].Also, func(b string) bool { return slug(a) == slug(b) }) {
				d.fault(at, fmt.Sprintf("%s is also a name for %s", quoted(a), other), "a name stands for one word of a facet")
			}
		}
	}
	have[s] = w
}
