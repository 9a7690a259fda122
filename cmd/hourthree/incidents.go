package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hourthree/hourthree/internal/incident"
	"github.com/hourthree/hourthree/internal/library"
	"github.com/hourthree/hourthree/internal/search"
)

func incidentsCommand() *cobra.Command {
	var o shelf
	c := &cobra.Command{
		Use: "incidents", Short: "The library of public incidents: search, read, and add your own",
		Long: `The library of public incidents. Every claim in it has a kind (confirmed,
reported, derived, unconfirmed, illustrative) and a source; every condition
names the checks that look for it, and what can be replayed its drill.

Exit 0; 1: there is no such incident, or validate found faults; 2: usage, such
as a word that is not in the vocabulary.`,
	}
	c.PersistentFlags().StringArrayVar(&o.folders, "library", nil, "folder with records of your own; may be given again")
	c.PersistentFlags().StringVar(&o.format, "format", "table", "table, json or markdown")
	c.AddCommand(incidentsSearch(&o), incidentsGet(&o), incidentsList(&o), incidentsTopic(&o), incidentsVocab(&o),
		incidentsStats(&o), incidentsNew(), incidentsValidate(&o), incidentsServe(&o))
	return c
}

// shelf is which library, and in what form it is shown.
type shelf struct {
	folders []string
	format  string
}

// open reads the library.
func (o *shelf) open() (*library.Library, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var folders []fs.FS
	for _, dir := range o.folders {
		folders = append(folders, os.DirFS(dir))
	}
	l, err := incident.Open(folders...)
	if err != nil {
		return nil, fmt.Errorf("the library cannot be used:\n%w", err)
	}
	return library.New(l)
}

func (o *shelf) check() error {
	if !slices.Contains([]string{"table", "json", "markdown"}, o.format) {
		return fmt.Errorf("--format %q: use table, json or markdown", o.format)
	}
	return nil
}

// show opens the library and shows what make finds in it.
func (o *shelf) show(c *cobra.Command, find func(*library.Library) (view, error)) error {
	l, err := o.open()
	if err != nil {
		return err
	}
	v, err := find(l)
	if missing := (*library.NotFound)(nil); errors.As(err, &missing) {
		return exit{exitFindings, err}
	}
	if unknown := (*incident.UnknownWord)(nil); errors.As(err, &unknown) && len(unknown.Near) == 0 {
		for _, f := range l.Word(unknown.Word) {
			return fmt.Errorf("%w; %s %s is one", err, f.Facet, f.Slug)
		}
	}
	if err != nil {
		return err
	}
	return write(c.OutOrStdout(), o.format, v)
}

// picks are the flags that select records.
type picks struct {
	words  map[incident.Facet]*[]string
	filter incident.Filter
}

func (p *picks) flags(c *cobra.Command) {
	p.words = map[incident.Facet]*[]string{}
	for _, f := range incident.Facets() {
		p.words[f] = new([]string)
		c.Flags().StringSliceVar(p.words[f], string(f), nil, "with this "+string(f)+"; may be given again for alternatives")
	}
	c.Flags().StringVar(&p.filter.Provider, "provider", "", "whose provider or service has this in its name")
	c.Flags().StringVar(&p.filter.Since, "since", "", "that began on this date or later: 2026, 2026-05 or 2026-05-29")
	c.Flags().StringVar(&p.filter.Until, "until", "", "that began on this date or before")
	c.Flags().StringVar(&p.filter.Check, "check", "", "with a condition that this check of the audit looks for")
	c.Flags().StringVar(&p.filter.Drill, "drill", "", "that this drill replays")
}

func (p *picks) chosen() incident.Filter {
	f := p.filter
	f.Words = map[incident.Facet][]string{}
	for facet, words := range p.words {
		if len(*words) > 0 {
			f.Words[facet] = *words
		}
	}
	return f
}

func incidentsSearch(o *shelf) *cobra.Command {
	var p picks
	var limit int
	c := &cobra.Command{
		Use: "search TEXT...", Short: "Find incidents by what you see",
		Long: `Find incidents by what you see, in plain words. A part in double quotes has to
occur as it stands.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New(`say what you see: hourthree incidents search "pods killed for memory after retries"`)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.show(c, func(l *library.Library) (view, error) {
				found, err := l.Search(c.Context(), search.Query{Text: strings.Join(args, " "), Filter: p.chosen(), Limit: limit})
				return foundView{found}, err
			})
		},
	}
	p.flags(c)
	c.Flags().IntVar(&limit, "limit", search.DefaultLimit, fmt.Sprintf("how many, at most %d", search.MaxLimit))
	return c
}

func incidentsGet(o *shelf) *cobra.Command {
	return &cobra.Command{
		Use: "get ID", Short: "Show an incident with its timeline, claims, conditions and drills", Args: one("name one incident: hourthree incidents get HT-0001"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.show(c, func(l *library.Library) (view, error) {
				d, err := l.Show(args[0])
				return detailView{d}, err
			})
		},
	}
}

// one refuses anything but one argument, with what to write.
func one(remedy string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New(remedy)
		}
		return nil
	}
}

func incidentsList(o *shelf) *cobra.Command {
	var p picks
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List incidents, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 0 {
				return fmt.Errorf("--limit %d: use 0 for all, or a number of incidents", limit)
			}
			return o.show(c, func(l *library.Library) (view, error) {
				list, err := l.Everything(p.chosen())
				if err == nil && limit > 0 {
					list.Incidents = list.Incidents[:min(limit, len(list.Incidents))]
				}
				return listView{list}, err
			})
		},
	}
	p.flags(c)
	c.Flags().IntVar(&limit, "limit", 0, "how many; 0 for all")
	return c
}

func incidentsTopic(o *shelf) *cobra.Command {
	return &cobra.Command{
		Use: "topic KIND WORD", Short: "Show what the library has under one word",
		Long: "Show what the library has under one word: the incidents, the words and conditions\nthat come with it, and the checks. KIND is cause, symptom, topic, component, domain\nor condition.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("name a kind and a word: hourthree incidents topic cause retry-amplification; hourthree incidents vocab lists them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return o.show(c, func(l *library.Library) (view, error) {
				s, err := l.Subject(args[0], args[1])
				return subjectView{s}, err
			})
		},
	}
}

func incidentsVocab(o *shelf) *cobra.Command {
	return &cobra.Command{
		Use: "vocab [WORD]", Short: "List the words that incidents are tagged with, or explain one", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.show(c, func(l *library.Library) (view, error) {
				if len(args) == 0 {
					return wordsView{l.Words()}, nil
				}
				m, err := l.Meaning(args[0])
				return meaningView{m}, err
			})
		},
	}
}

func incidentsStats(o *shelf) *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Say what the library holds, in numbers", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.show(c, func(l *library.Library) (view, error) {
				s := l.Stats()
				return statsView{&s}, nil
			})
		},
	}
}

func incidentsNew() *cobra.Command {
	var id, title string
	c := &cobra.Command{
		Use: "new [FOLDER]", Short: "Write a record of your own to fill in", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if err := ownID(id); err != nil {
				return err
			}
			path := filepath.Join(dir, id+".yaml")
			f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
			switch {
			case errors.Is(err, os.ErrExist):
				return fmt.Errorf("%s exists; give another id with --id", path)
			case errors.Is(err, os.ErrNotExist):
				return fmt.Errorf("there is no folder %s; make it first", dir)
			case err != nil:
				return err
			}
			_, err = f.Write(incident.Scaffold(id, title, time.Now()))
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Wrote %s. Fill it in, then:\n\n  hourthree incidents validate %s\n  hourthree incidents get %s --library %s\n", path, path, id, dir)
			return nil
		},
	}
	c.Flags().StringVar(&id, "id", "OWN-0001", "its id: two to eight capital letters, a hyphen and four digits")
	c.Flags().StringVar(&title, "title", "", "what happened, to whom, in one line")
	return c
}

func ownID(id string) error {
	prefix, digits, _ := strings.Cut(id, "-")
	capital := func(r rune) bool { return r < 'A' || r > 'Z' }
	digit := func(r rune) bool { return r < '0' || r > '9' }
	switch {
	case len(prefix) < 2 || len(prefix) > 8 || strings.ContainsFunc(prefix, capital) || len(digits) != 4 || strings.ContainsFunc(digits, digit):
		return fmt.Errorf("--id %q is not an id: two to eight capital letters, a hyphen and four digits, such as ACME-0001", id)
	case prefix == "HT":
		return fmt.Errorf("--id %s: HT- is for the records that come with the program; use a prefix of your own, such as ACME-0001", id)
	}
	return nil
}

// folder is one directory as a library folder, without what is below it. It is
// a string so that faults can name their file.
type folder string

func (d folder) Open(name string) (fs.File, error) { return os.DirFS(string(d)).Open(name) }

// Stat does not open the file, which may be a pipe.
func (d folder) Stat(name string) (fs.FileInfo, error) { return fs.Stat(os.DirFS(string(d)), name) }

// ReadDir lists the files of the directory.
func (d folder) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(os.DirFS(string(d)), name)
	return slices.DeleteFunc(entries, fs.DirEntry.IsDir), err
}

func incidentsValidate(o *shelf) *cobra.Command {
	return &cobra.Command{
		Use: "validate FOLDER|FILE...", Short: "Check records of your own", Args: cobra.MinimumNArgs(1),
		Long: `Check records of your own: every fault of every file, with its place and the
remedy. A folder is checked with all that is below it; of a file's folder the
other records are known too, and not judged.

Exit 0: all are good; 1: there are faults; 2: usage.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			faults, files, err := judge(args)
			if err != nil {
				return err
			}
			if err := write(c.OutOrStdout(), o.format, faultsView{faults, files}); err != nil {
				return err
			}
			if len(faults) > 0 {
				return silent(exitFindings)
			}
			return nil
		},
	}
}

// judge checks folders and files, and counts the files it looked at.
func judge(args []string) (faults incident.Faults, files int, err error) {
	var folders []fs.FS
	wanted := map[string]bool{} // files; a directory ends with a slash
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, 0, fmt.Errorf("%w; name a folder with records, or a record's file", err)
		}
		if info.IsDir() {
			folders, wanted[filepath.Clean(arg)+"/"] = append(folders, os.DirFS(filepath.Clean(arg))), true
			continue
		}
		if dir := folder(filepath.Dir(arg)); !slices.Contains(folders, fs.FS(dir)) {
			folders = append(folders, dir)
		}
		wanted[filepath.Clean(arg)] = true
	}
	l, err := incident.Open(folders...)
	if err != nil && !errors.As(err, &faults) {
		return nil, 0, err
	}
	ours := func(file string) bool {
		for w := range wanted {
			if file == w || strings.HasSuffix(w, "/") && (w == "./" || strings.HasPrefix(file, w) || file == strings.TrimSuffix(w, "/")) {
				return true
			}
		}
		return false
	}
	faults = slices.DeleteFunc(faults, func(f incident.Fault) bool { return !ours(filepath.Clean(f.File)) })
	if len(faults) == 0 && err == nil {
		for _, r := range l.All() {
			if ours(filepath.Clean(r.Origin)) && !strings.HasPrefix(r.Origin, "internal/incident/data/") {
				files++
			}
		}
	}
	slices.SortStableFunc(faults, func(a, b incident.Fault) int { return cmp.Compare(a.File, b.File) })
	return slices.Compact(faults), files, nil // a file may be named with its folder
}
