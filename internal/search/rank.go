package search

import (
	"context"
	"maps"
	"math"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search/query"

	"github.com/hourthree/hourthree/internal/incident"
)

const (
	// idScore puts a record that is named by its id before all others.
	idScore = 1000
	// otherName is what a match of another name counts, of the name itself.
	otherName = 0.6
	// partOfName is what a match of one word counts, of a name of several.
	partOfName = 0.3
	// typo is what a match of a word that is spelt a little differently counts.
	typo = 0.7
	// coverage is how much the share of the words that a record has counts.
	coverage = 1.0
	// scale rounds scores, for bleve adds up in no certain order.
	scale = 1e6
	// mostConcepts bounds the work for one query.
	mostConcepts = 40
)

// concept is one thing that is looked for: a word or a known name of several,
// with what else it is called.
type concept struct {
	stems  []string   // as typed
	other  [][]string // other names, as stems
	tags   []string   // words of the vocabulary
	fuzzy  string     // as typed, when no record has it
	weight float64    // how much it tells
}

// concepts reads what was typed. The longest known names win.
func (ix *index) concepts(text string) []concept {
	stems := ix.stems(strings.Map(plain, text))
	var list []concept
	seen := map[string]bool{}
	for i := 0; i < len(stems) && len(list) < mostConcepts; {
		c, n := ix.concept(stems[i:])
		i += n
		if key := strings.Join(c.stems, " "); !seen[key] {
			seen[key] = true
			list = append(list, c)
		}
	}
	return list
}

// plain keeps what words are made of: a tokenizer takes a:b for one.
func plain(r rune) rune {
	if unicode.In(r, unicode.L, unicode.N, unicode.M) || strings.ContainsRune("'’._-", r) {
		return r
	}
	return ' '
}

// concept is the one that stems begin with, and how many of them it takes.
func (ix *index) concept(stems []string) (concept, int) {
	for n := min(len(stems), ix.thesaur.longest); n > 0; n-- {
		if m := ix.thesaur.byStems[strings.Join(stems[:n], " ")]; m != nil {
			return ix.weigh(concept{stems: stems[:n], other: m.other, tags: m.tags}), n
		}
	}
	c := concept{stems: stems[:1]}
	if ix.holds[stems[0]] == 0 && len(stems[0]) >= 5 {
		c.fuzzy = stems[0]
	}
	return ix.weigh(c), 1
}

func (ix *index) weigh(c concept) concept {
	for _, s := range c.stems {
		c.weight = max(c.weight, ix.rarity(s))
	}
	return c
}

// query looks for a concept in all fields.
func (c concept) query() query.Query {
	q := bleve.NewDisjunctionQuery()
	for _, name := range searched {
		w := weights[name]
		if name == fieldTags {
			continue
		}
		q.AddQuery(named(c.stems, name, w))
		if len(c.stems) > 1 {
			for _, s := range c.stems {
				q.AddQuery(named([]string{s}, name, w*partOfName))
			}
		}
		for _, o := range c.other {
			q.AddQuery(named(o, name, w*otherName))
		}
		if c.fuzzy != "" {
			f := bleve.NewFuzzyQuery(c.fuzzy)
			f.SetField(name)
			f.SetBoost(w * typo)
			f.SetFuzziness(1 + min(1, len(c.fuzzy)/9))
			f.Prefix = 1
			q.AddQuery(f)
		}
	}
	for _, t := range c.tags {
		tag := bleve.NewTermQuery(t)
		tag.SetField(fieldTags)
		tag.SetBoost(weights[fieldTags])
		q.AddQuery(tag)
	}
	return q
}

// named looks for a name in a field.
func named(stems []string, field string, boost float64) query.Query {
	if len(stems) == 1 {
		q := bleve.NewTermQuery(stems[0])
		q.SetField(field)
		q.SetBoost(boost)
		return q
	}
	q := bleve.NewPhraseQuery(stems, field)
	q.SetBoost(boost)
	return q
}

// match is a record that has some of what is looked for.
type match struct {
	id     string
	record *incident.Record
	score  float64
	had    float64            // weight of the concepts that it has
	fields map[string]float64 // score by field
	stems  map[string]bool    // that matched
}

func (m *match) place() place { return place{m.score, m.id} }

func compare(a, b *match) int { return before(a.place(), b.place()) }

// match looks for concepts and returns by id what has some of them, and all of
// the phrases.
func (ix *index) match(ctx context.Context, concepts []concept, phrases []string) (map[string]*match, error) {
	matches := map[string]*match{}
	total := 0.0
	for _, c := range concepts {
		total += c.weight
		if err := ix.add(ctx, c, matches); err != nil {
			return nil, err
		}
	}
	for _, m := range matches {
		m.score = math.Round(m.score*math.Pow(m.had/total, coverage)*scale) / scale
	}
	for _, p := range phrases {
		have, err := ix.having(ctx, ix.stems(p))
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(matches, func(id string, _ *match) bool { return have != nil && !have[id] })
	}
	return matches, nil
}

// add looks for one concept. bleve scores a record lower the fewer of the
// fields have it; that is taken back, for the fields are alternatives.
func (ix *index) add(ctx context.Context, c concept, matches map[string]*match) error {
	q := c.query()
	req := bleve.NewSearchRequestOptions(q, ix.records, 0, false)
	req.IncludeLocations = true
	res, err := ix.bleve.SearchInContext(ctx, req)
	if err != nil {
		return err
	}
	alternatives := float64(len(q.(*query.DisjunctionQuery).Disjuncts))
	for _, hit := range res.Hits {
		m := matches[hit.ID]
		if m == nil {
			m = &match{id: hit.ID, fields: map[string]float64{}, stems: map[string]bool{}}
			matches[hit.ID] = m
		}
		n := 0
		for _, terms := range hit.Locations {
			n += len(terms)
		}
		score := c.weight * hit.Score * alternatives / float64(max(n, 1))
		m.score += score
		m.had += c.weight
		for _, name := range searched {
			terms := hit.Locations[name]
			if len(terms) == 0 {
				continue
			}
			m.fields[name] += score * float64(len(terms)) * weights[name]
			for t := range terms {
				m.stems[t] = true
			}
		}
	}
	return nil
}

// having are the records that have a phrase in a field, nil for an empty one.
func (ix *index) having(ctx context.Context, stems []string) (map[string]bool, error) {
	if len(stems) == 0 {
		return nil, nil
	}
	q := bleve.NewDisjunctionQuery()
	for _, f := range searched {
		q.AddQuery(named(stems, f, 1))
	}
	res, err := ix.bleve.SearchInContext(ctx, bleve.NewSearchRequestOptions(q, ix.records, 0, false))
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, hit := range res.Hits {
		have[hit.ID] = true
	}
	return have, nil
}
