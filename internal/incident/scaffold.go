package incident

import (
	"bytes"
	_ "embed"
	"strconv"
	"text/template"
	"time"
)

//go:embed scaffold.yaml.tmpl
var scaffoldText string

var scaffold = template.Must(template.New("").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(scaffoldText))

// Scaffold is a new record to fill in: what must be there and is not yet has
// no value, and reading the file says so; the rest is in comments.
func Scaffold(id, title string, date time.Time) []byte {
	var b bytes.Buffer
	_ = scaffold.Execute(&b, map[string]string{"ID": id, "Title": title, "Date": date.UTC().Format(dayLayout)}) // a bytes.Buffer takes all
	return b.Bytes()
}
