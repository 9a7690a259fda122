package render

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"

	east "github.com/yuin/goldmark/extension/ast"

	"github.com/hourthree/hourthree/internal/audit"
	"github.com/hourthree/hourthree/internal/manifest"
	"github.com/hourthree/hourthree/internal/topology"
)

// hostile are texts that would change the structure of an output that took them
// as they are.
var hostile = []string{
	"a|b", "::error::x", "##[error]x", strings.Repeat("x", 70) + " ::stop-commands::y", "a\nb", "\r\n| x | y |", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u202egnp.exe", "\u200b\u2066", "\u009b31m", "\x7f", "\U000e0001", "\ufffe\uffff", "\x00", "\xff\xfe",
	"](javascript:alert(1))", "[x](javascript:alert(1))", "![x](http://evil/x.png)", "<script>alert(1)</script>", "<img src=x onerror=x>", "</details>",
	"`", "``", "`` ` ``", "```\n# head", "\\", "\\`", "*bold*", "_x_", "# head", "- item", "1. item", "> quote", "@team", "#123", "https://evil.example", "www.evil.example", "a@b.example",
	"]]>", "<![CDATA[", "&amp;", "&#x1b;", "\"", "'", "{0}", "[x](1)", "-->", "<!--", "$$x$$", "~~x~~", "\t", "   ", "",
}

// torture is the fixture with a text wherever one can come from outside.
func torture(t testing.TB, s string) *Audit {
	a := fixture(t)
	o := manifest.Ref{Kind: "Kind" + s, Namespace: s, Name: s}
	r := a.Report
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Object, f.Container, f.Path, f.Observed, f.Key = o, s, s, s, s
		f.Place.File = s
		f.Incidents = []string{s, "HT-0001"}
		if f.Waiver != nil {
			w := *f.Waiver
			w.Reason, w.Until, w.Place.File = s, s, s
			f.Waiver = &w
		}
		for k := range f.Related {
			f.Related[k].Note, f.Related[k].Object, f.Related[k].Place.File = s, o, s
		}
	}
	r.Open[0].Detail, r.Open[1].Object = s, &o
	r.Problems[0] = manifest.Problem{File: s, What: s, Remedy: s, Lost: true}
	r.Roles[0].By, r.Roles[1].Object = s, o
	past := audit.Past{Key: s, ID: "RTY-006", Object: o, Container: s, Severity: audit.High, State: audit.Fail, Place: topology.Place{File: s}}
	a.Diff = &audit.Diff{File: s, Fixed: []audit.Past{past}, Unknown: []audit.Past{past}}
	return a
}

// sound says what a text broke.
func sound(t testing.TB, a *Audit, complain func(format string, args ...any)) {
	for _, c := range string(written(t, a, Table)) {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
			complain("the table has %q", c)
		}
	}
	for line := range strings.Lines(string(written(t, a, Table))) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
			complain("the table has a runner's command: %s", line)
		}
	}
	var v any
	for _, f := range []Format{JSON, SARIF} {
		data := written(t, a, f)
		if err := json.Unmarshal(data, &v); err != nil {
			complain("%s: %v", f, err)
		}
		for _, c := range string(data) {
			if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
				complain("%s has %q", f, c)
			}
		}
	}
	if err := follows(t, officialSchema(t), written(t, a, SARIF)); err != nil {
		complain("SARIF: %v", err)
	}
	soundXML(written(t, a, JUnit), complain)
	soundMarkdown(written(t, a, Markdown), complain)
}

func soundXML(data []byte, complain func(string, ...any)) {
	d := xml.NewDecoder(bytes.NewReader(data))
	cases := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			complain("JUnit: %v", err)
			return
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "testcase" {
			cases++
		}
	}
	if cases < 6 {
		complain("JUnit has %d cases", cases)
	}
}

// soundMarkdown reads the comment as GitHub does: it has our links alone, no
// tags but ours, and as many rows as findings.
func soundMarkdown(data []byte, complain func(string, ...any)) {
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(data))
	rows, heads := 0, 0
	tag := func(s string) {
		for _, ours := range []string{"<details>", "<summary>", "</summary>", "</details>", "<sub>", "</sub>", "<!-- -->"} {
			s = strings.ReplaceAll(s, ours, "")
		}
		if strings.ContainsAny(s, "<>") {
			complain("Markdown has the tag %q", s)
		}
	}
	_ = ast.Walk(doc, func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			if !strings.HasPrefix(string(n.Destination), checkPage+"#") {
				complain("Markdown links to %s", n.Destination)
			}
		case *ast.AutoLink, *ast.Image, *ast.Blockquote, *east.Strikethrough:
			complain("Markdown has a %s", n.Kind())
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				s := n.Segments.At(i)
				tag(string(s.Value(data)))
			}
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				s := n.Lines().At(i)
				tag(strings.NewReplacer("&lt;", "", "&gt;", "").Replace(string(s.Value(data))))
			}
		case *ast.Heading:
			heads++
		case *ast.Text:
			if s := string(n.Value(data)); n.Parent().Kind() != ast.KindCodeSpan && (strings.Contains(s, "@team") || strings.Contains(s, "#123")) {
				complain("Markdown mentions somebody in %q", s)
			}
		case *east.TableRow:
			rows++
			if n.ChildCount() != 6 {
				complain("a row has %d cells", n.ChildCount())
			}
		}
		return ast.WalkContinue, nil
	})
	if rows != 5 || heads != 1 {
		complain("Markdown has %d rows and %d heads", rows, heads)
	}
}

// TestHostileTexts: names and values of manifests change no format's structure.
func TestHostileTexts(t *testing.T) {
	for _, s := range hostile {
		sound(t, torture(t, s), func(format string, args ...any) { t.Errorf("%q: "+format, append([]any{s}, args...)...) })
	}
}

func TestAnyTexts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(hostile), rapid.String()), 1, 4).Draw(r, "parts"), "")
		sound(t, torture(t, s), func(format string, args ...any) { r.Fatalf(format, args...) })
	})
}

// FuzzTexts is the same for the fuzzer.
func FuzzTexts(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1000 {
			t.Skip()
		}
		sound(t, torture(t, s), t.Errorf)
	})
}
