// Package typedoc reads the comments of types and fields, from which schemas and
// reference pages are generated.
package typedoc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// Read returns the comments of a source file's types and their fields, by Type
// and Type.Field, on one line each; "" where there is none. A field's is what
// stands above it and behind it.
func Read(path string) (map[string]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.TypeSpec) // of a GenDecl of types
			out[spec.Name.Name] = oneLine(gen.Doc)
			st, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range st.Fields.List {
				for _, name := range field.Names {
					out[spec.Name.Name+"."+name.Name] = strings.TrimSpace(oneLine(field.Doc) + " " + oneLine(field.Comment))
				}
			}
		}
	}
	return out, nil
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
