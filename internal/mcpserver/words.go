package mcpserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
)

type topicIn struct {
	Kind   string `json:"kind_of_word" jsonschema:"what the word is"`
	Word   string `json:"word" jsonschema:"a slug of vocab, or another name for it"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

type topic struct {
	Summary    string   `json:"summary"`
	Kind       string   `json:"kind_of_word"`
	Slug       string   `json:"slug"`
	Meaning    string   `json:"meaning"`
	Also       []string `json:"also" jsonschema:"other names for it"`
	Title      string   `json:"title,omitempty" jsonschema:"of a condition"`
	Fails      string   `json:"fails,omitempty" jsonschema:"when a stack has the condition"`
	Checks     []string `json:"checks" jsonschema:"of the audit, that look for its conditions"`
	Conditions []count  `json:"conditions"`
	Together   []count  `json:"together" jsonschema:"words that occur with it"`
	Incidents  []short  `json:"incidents" jsonschema:"newest first"`
	rest
}

type count struct {
	Kind      string `json:"kind_of_word"`
	Slug      string `json:"slug"`
	Incidents int    `json:"incidents"`
}

type short struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Provider string `json:"provider"`
	Date     string `json:"date,omitempty"`
	Evidence int    `json:"evidence"`
}

func (s *Server) getTopic(_ context.Context, in topicIn) (*topic, error) {
	t, err := s.library.Subject(in.Kind, in.Word)
	if err != nil {
		return nil, told(err)
	}
	subject := in.Kind + " " + t.Slug
	at, err := placeAt(subject, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &topic{
		Kind: in.Kind, Slug: t.Slug, Meaning: plain(t.Word.Meaning, longText), Also: plains(t.Word.Also, maxWords, maxWord),
		Title: plain(t.Word.Title, shortText), Fails: plain(t.Word.Fails, someText),
		Summary: fmt.Sprintf("The %s %s has %s.", in.Kind, t.Slug, counted(len(t.Incidents), "incident")),
	}
	counts := func(c incident.Count) count { return count{string(c.Facet), c.Slug, c.Records} }
	sections := []section{
		part("checks", t.Checks, &out.Checks),
		part("conditions", mapped(t.Conditions, counts), &out.Conditions),
		part("together", mapped(t.Together, counts), &out.Together),
		part("incidents", mapped(t.Incidents, shortOf), &out.Incidents),
	}
	out.rest = fill(subject, room(out), at, sections)
	return out, nil
}

func shortOf(b library.Brief) short {
	return short{b.ID, plain(b.Title, shortText), plain(b.Provider, shortText), b.Date, b.Evidence}
}

type vocabIn struct {
	Word   string `json:"word,omitempty" jsonschema:"a slug or another name; none for all words"`
	Kind   string `json:"kind_of_word,omitempty" jsonschema:"words of this kind alone"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

type vocabulary struct {
	Summary    string            `json:"summary"`
	ClaimKinds map[string]string `json:"claim_kinds,omitempty" jsonschema:"what the kinds of claims mean; on the first page"`
	Words      []word            `json:"words"`
	rest
}

type word struct {
	Kind      string   `json:"kind_of_word"`
	Slug      string   `json:"slug"`
	Meaning   string   `json:"meaning"`
	Also      []string `json:"also"`
	Title     string   `json:"title,omitempty"`
	Fails     string   `json:"fails,omitempty"`
	Checks    []string `json:"checks"`
	Incidents int      `json:"incidents"`
}

func wordOf(f incident.Found) word {
	return word{
		string(f.Facet), f.Slug, plain(f.Word.Meaning, someText), plains(f.Word.Also, maxWords, maxWord), plain(f.Word.Title, shortText),
		plain(f.Word.Fails, someText), plains(f.Word.Checks, maxWords, maxWord), f.Records,
	}
}

func (s *Server) vocab(_ context.Context, in vocabIn) (*vocabulary, error) {
	subject := in.Kind + " " + in.Word
	at, err := placeAt(subject, in.Cursor)
	if err != nil {
		return nil, err
	}
	found, claimKinds, err := s.found(in)
	if err != nil {
		return nil, told(err)
	}
	out := &vocabulary{Summary: fmt.Sprintf("%s; get_topic tells what is under one.", counted(len(found), "word"))}
	if in.Cursor == "" {
		out.ClaimKinds = claimKinds
	}
	sections := []section{part("words", mapped(found, wordOf), &out.Words)}
	out.rest = fill(subject, room(out), at, sections)
	return out, nil
}

// found are the words that are asked for.
func (s *Server) found(in vocabIn) ([]incident.Found, map[string]string, error) {
	var found []incident.Found
	if in.Word != "" {
		m, err := s.library.Meaning(in.Word)
		if err != nil {
			return nil, nil, err
		}
		found = m.Found
	}
	all := s.library.Words()
	for _, k := range all.Kinds {
		if in.Word == "" {
			found = append(found, k.Words...)
		}
	}
	if in.Kind != "" {
		found = slices.DeleteFunc(slices.Clone(found), func(f incident.Found) bool { return string(f.Facet) != in.Kind })
		if len(found) == 0 {
			return nil, nil, refuse("there is no %s %q; ask without kind_of_word", in.Kind, cut(in.Word, maxWord))
		}
	}
	return found, all.ClaimKinds, nil
}

type topicsIn struct {
	Kind   string `json:"kind_of_word,omitempty" jsonschema:"words of this kind alone"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

type topics struct {
	Summary string  `json:"summary"`
	Topics  []theme `json:"topics"`
	rest
}

type theme struct {
	Kind      string `json:"kind_of_word"`
	Slug      string `json:"slug"`
	Meaning   string `json:"meaning"`
	Incidents int    `json:"incidents"`
}

func (s *Server) listTopics(_ context.Context, in topicsIn) (*topics, error) {
	at, err := placeAt("topics "+in.Kind, in.Cursor)
	if err != nil {
		return nil, err
	}
	var list []theme
	for _, t := range s.library.Topics().Topics {
		if in.Kind == "" || in.Kind == string(t.Kind) {
			list = append(list, theme{string(t.Kind), t.Slug, plain(t.Meaning, shortText), t.Incidents})
		}
	}
	out := &topics{Summary: fmt.Sprintf("%s with incidents; get_topic tells what is under one.", counted(len(list), "word"))}
	sections := []section{part("topics", list, &out.Topics)}
	out.rest = fill("topics "+in.Kind, room(out), at, sections)
	return out, nil
}
