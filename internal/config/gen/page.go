package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/hourthree/hourthree/internal/config"
)

const head = `# Configuration

One YAML file, strict: an unknown or repeated name is an error, a wrong value
is an error, and a setting that this version would ignore is an error. All
problems are reported at once, each with its place and the remedy:

` + "```sh" + `
hourthree init                     # writes a commented hourthree.yaml that starts as it stands
hourthree validate hourthree.yaml  # exit 0 good, 2 it would be refused; --strict: 1 on warnings
hourthree serve -c hourthree.yaml
` + "```" + `

**References.** A value may hold ` + "`${NAME}`, `${NAME:-default}` or `${file:/path}`" + `. A
variable that is unset or empty and a file that is missing or empty are errors,
never an empty key. ` + "`$$`" + ` is a dollar sign. Only values are replaced, after
parsing: nothing put in can change the structure.

**Units.** Durations are written as ` + "`500ms`, `30s`, `10m`" + `; a bare number is refused,
except 0 where 0 has a meaning. Sizes are written as ` + "`64MiB`, `10MB`" + ` or in bytes.

**Secrets** (keys and header values) appear in no log, error, metric or page.
An excerpt below an error shows the names of settings and plain values only;
everything else in the line becomes ` + "`***`" + `.

**Reload.** The file is read again when it changes and on SIGHUP. Requests in
flight keep the settings they began with; a target that stays keeps its health.
A file with an error is refused and the old settings stay.

This page is made from the types in internal/config by ` + "`go generate`" + `;
[config.schema.json](config.schema.json) is the same for editors. Examples are
in [examples](../examples).
`

type pageWriter struct {
	comments map[string]string // Type or Type.Field -> text
	seen     map[reflect.Type]bool
	page     bytes.Buffer
}

func (w *pageWriter) write() []byte {
	w.page.WriteString(head)
	w.section(reflect.ValueOf(*config.Default()), "")
	return w.page.Bytes()
}

// section is the table of one struct, followed by those of its sections.
func (w *pageWriter) section(v reflect.Value, path string) {
	t := v.Type()
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	title := "`" + path + "`"
	if path == "" {
		title = "The file"
	}
	fmt.Fprintf(&w.page, "\n## %s\n\n%s\n\n| setting | default | meaning |\n|---|---|---|\n", title, sentence(t.Name(), w.comments[t.Name()]))
	for i := range t.NumField() {
		w.row(t, v, i)
	}
	for i := range t.NumField() {
		if in, ok := inner(v.Field(i)); ok {
			w.section(in, strings.TrimPrefix(path+"."+t.Field(i).Tag.Get("yaml"), ".")+element(v.Field(i).Kind()))
		}
	}
}

// sentence turns "Admin is the listener." into "The listener."
func sentence(name, comment string) string {
	for _, verb := range []string{" is ", " are "} {
		if rest, ok := strings.CutPrefix(comment, name+verb); ok {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return comment
}

func element(kind reflect.Kind) string {
	switch kind {
	case reflect.Map:
		return ".<name>"
	case reflect.Slice:
		return "[]"
	}
	return ""
}

func (w *pageWriter) row(t reflect.Type, v reflect.Value, i int) {
	f := t.Field(i)
	shown := ""
	if text, ok := defaultOf(v.Field(i)); ok {
		shown = "`" + text + "`"
	}
	if f.Tag.Get("required") != "" {
		shown = "needed"
	}
	text := w.comments[t.Name()+"."+f.Name]
	if e := f.Tag.Get("enum"); e != "" {
		text += " One of `" + strings.ReplaceAll(e, ",", "`, `") + "`."
	}
	fmt.Fprintf(&w.page, "| `%s` | %s | %s |\n", f.Tag.Get("yaml"), shown, escape(text))
}

// escape keeps <name>, {model} and | as they are in a table.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(s)
}
