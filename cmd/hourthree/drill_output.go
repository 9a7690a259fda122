package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/hourthree/hourthree/internal/drill"
)

// output is a file for results. It is opened before anything is played, so that
// a path that cannot be written is told at once, and keeps what it holds until
// there are results.
type output struct {
	file    *os.File
	created bool
}

// open returns nil, which takes and keeps nothing, for no path.
func open(path string) (*output, error) {
	if path == "" {
		return nil, nil
	}
	_, err := os.Lstat(path)
	created := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	return &output{file: f, created: created}, nil
}

// write replaces what the file holds.
func (o *output) write(fill func(io.Writer) error) error {
	if o == nil {
		return nil
	}
	i, err := o.file.Stat()
	if err == nil && i.Mode().IsRegular() {
		err = o.file.Truncate(0)
	}
	if err == nil {
		err = fill(o.file)
	}
	err = errors.Join(err, o.file.Close())
	o.file = nil
	return err
}

func (o *output) json(v any) error {
	return o.write(func(w io.Writer) error {
		data, err := json.MarshalIndent(v, "", " ")
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
}

// drop leaves a file that was not written as it was.
func (o *output) drop() {
	if o == nil || o.file == nil {
		return
	}
	_ = o.file.Close() // nothing was written
	if o.created {
		_ = os.Remove(o.file.Name()) // an empty file does no harm
	}
}

// checkAgainst refuses a list of contenders that cannot be played.
func checkAgainst(names []string) error {
	if len(names) == 0 {
		return errors.New("--against: needs a contender; hourthree drill list shows them")
	}
	known := slices.Concat(drill.Names(), drill.Without())
	for i, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("contender %q does not exist; hourthree drill list shows them", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("--against: %s is there twice", name)
		}
	}
	return nil
}
