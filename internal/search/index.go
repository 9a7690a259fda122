package search

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"

	"github.com/hourthree/hourthree/internal/incident"
)

// fieldClaims is the field whose fragments have a kind.
const fieldClaims = "claims"

// field is a part of a record that is searched, and what a match in it counts.
type field struct {
	name   string
	weight float64
	texts  func(*incident.Record) []string
}

// fields are what is searched, what tells most first.
var fields = []field{
	{"title", 3, func(r *incident.Record) []string { return []string{r.Title} }},
	{"summary", 2.5, func(r *incident.Record) []string { return []string{r.Summary} }},
	{"root_cause", 1.5, func(r *incident.Record) []string { return []string{r.RootCause} }},
	{"trigger", 1.5, func(r *incident.Record) []string { return []string{r.Trigger} }},
	{"provider", 1.5, func(r *incident.Record) []string {
		return append([]string{r.Provider, r.Service, r.Date}, r.Regions...)
	}},
	{"conditions", 1, func(r *incident.Record) []string {
		var list []string
		for _, c := range r.Conditions {
			list = append(list, c.Text)
		}
		return list
	}},
	{"timeline", 1, func(r *incident.Record) []string {
		var list []string
		for _, m := range r.Timeline {
			list = append(list, m.What)
		}
		return list
	}},
	{fieldClaims, 1, func(r *incident.Record) []string {
		var list []string
		for _, c := range r.Claims {
			list = append(list, c.Text)
		}
		return list
	}},
	{"lessons", 0.8, func(r *incident.Record) []string { return r.Lessons }},
	{"detection", 0.6, func(r *incident.Record) []string { return []string{r.Detection} }},
	{"remediation", 0.6, func(r *incident.Record) []string { return r.Remediation }},
}

// The fields of a record's words: their names and other names, their meanings,
// and the words themselves.
const (
	fieldWords    = "words"
	fieldMeanings = "meanings"
	fieldTags     = "tags"
)

// weights is what a match counts, by field.
var weights = func() map[string]float64 {
	w := map[string]float64{fieldWords: 1.5, fieldMeanings: 0.4, fieldTags: 2}
	for _, f := range fields {
		w[f.name] = f.weight
	}
	return w
}()

// searched are the names of all fields, in order: sums of scores have one too.
var searched = slices.Sorted(maps.Keys(weights))

// index is a built Index; immutable.
type index struct {
	bleve    bleve.Index
	analyzer analysis.Analyzer
	thesaur  *thesaurus
	holds    map[string]int // in how many records a stem is
	records  int
}

// workers guards bleve's workers, which are the process's own.
var workers sync.Mutex

// bleve starts workers with the program; they are needed while an index is
// built, and then only.
func init() { bleve.Config.Shutdown() }

func newIndex(l *incident.Library, t *thesaurus) (*index, error) {
	workers.Lock()
	defer workers.Unlock()
	bleve.Config.SetAnalysisQueueSize(1)
	defer bleve.Config.Shutdown()
	m := indexMapping()
	b, err := bleve.NewUsing("", m, scorch.Name, scorch.Name, nil)
	if err != nil {
		return nil, fmt.Errorf("make the search index: %w", err)
	}
	ix := &index{bleve: b, analyzer: m.AnalyzerNamed(en.AnalyzerName), thesaur: t, holds: map[string]int{}, records: len(l.All())}
	t.stem(ix.stems)
	batch := b.NewBatch()
	for _, r := range l.All() {
		doc := document(l, r)
		if err := batch.Index(r.ID, doc); err != nil {
			return nil, fmt.Errorf("index %s: %w", r.ID, err)
		}
		ix.count(doc)
	}
	if err := b.Batch(batch); err != nil {
		return nil, fmt.Errorf("build the search index: %w", err)
	}
	return ix, nil
}

func indexMapping() *mapping.IndexMappingImpl {
	m := bleve.NewIndexMapping()
	m.DefaultAnalyzer = en.AnalyzerName
	m.DefaultMapping = bleve.NewDocumentStaticMapping()
	for name := range weights {
		f := bleve.NewTextFieldMapping()
		f.Store, f.DocValues, f.IncludeInAll = false, false, false
		f.Analyzer = en.AnalyzerName
		if name == fieldTags {
			f.Analyzer = "keyword"
		}
		m.DefaultMapping.AddFieldMappingsAt(name, f)
	}
	return m
}

// document is a record as it is searched.
func document(l *incident.Library, r *incident.Record) map[string]any {
	doc := map[string]any{}
	for _, f := range fields {
		doc[f.name] = strings.Join(f.texts(r), "\n")
	}
	var tags, words, meanings []string
	for _, facet := range incident.Facets() {
		known := l.Vocabulary().Words(facet)
		for _, slug := range r.Words(facet) {
			w := known[slug]
			tags = append(tags, slug)
			words = append(append(words, strings.ReplaceAll(slug, "-", " "), w.Title), w.Also...)
			meanings = append(meanings, w.Meaning)
		}
	}
	doc[fieldTags] = tags
	doc[fieldWords], doc[fieldMeanings] = strings.Join(words, "\n"), strings.Join(meanings, "\n")
	return doc
}

// count notes which stems a record has.
func (ix *index) count(doc map[string]any) {
	seen := map[string]bool{}
	for _, v := range doc {
		if text, ok := v.(string); ok {
			for _, s := range ix.stems(text) {
				seen[s] = true
			}
		}
	}
	for s := range seen {
		ix.holds[s]++
	}
}

// stems are the words of a text as they are indexed: without stop words.
func (ix *index) stems(text string) []string {
	var list []string
	for _, t := range ix.analyzer.Analyze([]byte(text)) {
		list = append(list, string(t.Term))
	}
	return list
}

// rarity is how much a stem tells: the fewer records have it, the more.
func (ix *index) rarity(stem string) float64 {
	return math.Log(1 + float64(ix.records)/float64(1+ix.holds[stem]))
}
