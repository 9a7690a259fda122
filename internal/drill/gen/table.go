package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/hourthree/hourthree/internal/drill"
)

// section is a table of what a scenario file says of its parts: a column for
// each setting that any of them has.
func section[T any](b *bytes.Buffer, title string, parts []T) {
	if len(parts) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	t := reflect.TypeFor[T]()
	var head []string
	rows := make([][]string, len(parts))
	for i := range t.NumField() {
		name := setting(t.Field(i))
		used := false
		for _, p := range parts {
			used = used || !reflect.ValueOf(p).Field(i).IsZero()
		}
		if name == "" || !used {
			continue
		}
		head = append(head, name)
		for k, p := range parts {
			rows[k] = append(rows[k], escape(cell(name, reflect.ValueOf(p).Field(i))))
		}
	}
	writeTable(b, head, rows)
}

// setting is a field's name in the file.
func setting(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if !f.IsExported() || name == "-" {
		return ""
	}
	return name
}

// cell is a value in a table; what is not set is empty, but for a time.
func cell(name string, v reflect.Value) string {
	if v.IsZero() && name != "at" && name != "rps" {
		return ""
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return span(x)
	case drill.Size:
		return size(x)
	case drill.Rate:
		return fmt.Sprintf("%g a second from %s", x.RPS, span(x.At))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return cell(name, v.Elem())
	case reflect.Bool:
		return "yes"
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, cell(name, v.Index(i)))
		}
		if v.Type().Elem().Kind() == reflect.Struct {
			return strings.Join(parts, "; ")
		}
		return strings.Join(parts, ", ")
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			f := setting(v.Type().Field(i))
			if f == "" {
				continue
			}
			switch text := cell(f, v.Field(i)); {
			case text == "yes":
				parts = append(parts, f)
			case text != "":
				parts = append(parts, f+" "+text)
			}
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(v.Interface())
}

// span is a duration without its empty parts.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func size(n drill.Size) string {
	for _, u := range []struct {
		of   drill.Size
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.of && n%u.of == 0 {
			return fmt.Sprintf("%d%s", n/u.of, u.name)
		}
	}
	return fmt.Sprint(int64(n))
}

// writeTable leaves out columns without content.
func writeTable(b *bytes.Buffer, head []string, rows [][]string) {
	var keep []int
	for i := range head {
		for _, row := range rows {
			if row[i] != "" {
				keep = append(keep, i)
				break
			}
		}
	}
	line := func(cells []string) {
		for _, i := range keep {
			b.WriteString("| " + cells[i] + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(keep)) + "|\n")
	for _, row := range rows {
		line(row)
	}
}

// escape keeps text as it is in a table and elsewhere.
func escape(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`).Replace(s)
}

// code is an expression in a table.
func code(s string) string {
	return "`" + strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`) + "`"
}
