package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/term"

	"github.com/hourthree/hourthree/internal/render"
)

// auditOutput is a format and where it goes.
type auditOutput struct {
	format render.Format
	screen render.Screen
	file   *output // nil for standard output
	std    io.Writer
}

func (o auditOutput) write(a *render.Audit) error {
	fill := func(w io.Writer) error { return a.Write(w, o.format, o.screen) }
	if o.file == nil {
		return fill(o.std)
	}
	return o.file.write(fill)
}

// same says that two outputs are one file, however it is named.
func (o auditOutput) same(other auditOutput) bool {
	if o.file == nil || other.file == nil {
		return false
	}
	a, errA := o.file.file.Stat()
	b, errB := other.file.file.Stat()
	return errA == nil && errB == nil && a.Mode().IsRegular() && os.SameFile(a, b)
}

func drop(outs []auditOutput) {
	for _, o := range outs {
		o.file.drop()
	}
}

// open pairs formats and outputs by their order; what has no output goes to
// standard output, which takes one.
func (f *auditFlags) open(std io.Writer) ([]auditOutput, error) {
	formats := f.formats
	if len(formats) == 0 {
		formats = []string{string(render.Table)}
	}
	if len(f.outputs) > len(formats) {
		return nil, fmt.Errorf("--output %s: has no --format; give one for each", f.outputs[len(formats)])
	}
	var outs []auditOutput
	onStd := 0
	for i, name := range formats {
		format, err := render.ParseFormat(name)
		if err != nil {
			return outs, fmt.Errorf("--format: %w", err)
		}
		o := auditOutput{format: format, std: std}
		switch {
		case i >= len(f.outputs) || f.outputs[i] == "-":
			onStd++
			o.screen = screenOf(std)
		case f.outputs[i] == "":
			return outs, errors.New("--output: needs a file, or - for standard output")
		default:
			if o.file, err = open(f.outputs[i]); err != nil {
				return outs, fmt.Errorf("--output: %w", err)
			}
			if slices.ContainsFunc(outs, o.same) {
				o.file.drop()
				return outs, fmt.Errorf("--output %s: is there twice", f.outputs[i])
			}
		}
		outs = append(outs, o)
	}
	if onStd > 1 {
		return outs, errors.New("--format: only one can go to standard output; give the others an --output, in the same order")
	}
	return outs, nil
}

// screenOf is what a table is written for: colours on a terminal alone, and not
// where NO_COLOR asks for none.
func screenOf(w io.Writer) render.Screen {
	var s render.Screen
	file, ok := w.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil {
			s.Width = n
		}
		if os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
			s.Colour = render.Coloured
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s
}
