package hourthree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/hourthree/hourthree/internal/"

type room struct {
	pure bool
	may  []string
}

// rooms reads the table of ARCHITECTURE.md.
func rooms(t *testing.T) map[string]room {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\w+) \| (yes|no) \| [^|]* \| ([^|]*) \|$`)
	out := map[string]room{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		r := room{pure: m[2] == "yes"}
		for _, name := range strings.Split(m[3], ",") {
			if name = strings.TrimSpace(name); name != "-" {
				r.may = append(r.may, name)
			}
		}
		out[m[1]] = r
	}
	return out
}

type source struct {
	path string
	file *ast.File
}

func sources(t *testing.T, dir string) (code, tests []source) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, p := range paths {
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(p, "_test.go") {
			tests = append(tests, source{p, f})
		} else {
			code = append(code, source{p, f})
		}
	}
	return code, tests
}

// TestImports holds the import table, in both directions: what is imported is
// allowed, and what is allowed is imported.
func TestImports(t *testing.T) {
	table := rooms(t)
	dirs, _ := filepath.Glob("internal/*")
	for _, dir := range dirs {
		name := filepath.Base(dir)
		r, ok := table[name]
		if !ok {
			t.Errorf("internal/%s is not in the table of ARCHITECTURE.md", name)
			continue
		}
		used := map[string]bool{}
		code, _ := sources(t, dir)
		for _, s := range code {
			for _, imp := range s.file.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				if rest, ok := strings.CutPrefix(path, module); ok {
					used[rest] = true
					if !slices.Contains(r.may, rest) {
						t.Errorf("%s imports %s, which the table does not allow", s.path, rest)
					}
				}
			}
		}
		for _, may := range r.may {
			if !used[may] {
				t.Errorf("the table lets %s import %s, which it does not", name, may)
			}
		}
	}
	for name := range table {
		if _, err := os.Stat(filepath.Join("internal", name)); err != nil {
			t.Errorf("the table has %s, the tree has not", name)
		}
	}
}

// TestPureRooms: policies take time and randomness as arguments, start no
// goroutine and do no I/O.
func TestPureRooms(t *testing.T) {
	banned := map[string][]string{
		"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
		"net":  {"Dial", "DialTimeout", "Listen", "ListenPacket", "LookupHost", "LookupIP", "LookupAddr", "LookupCNAME"}, // its error types are data
		"os":   nil, "math/rand": nil, "math/rand/v2": nil, "crypto/rand": nil, "log": nil, "log/slog": nil,
	}
	for name, r := range rooms(t) {
		if !r.pure {
			continue
		}
		code, _ := sources(t, filepath.Join("internal", name))
		for _, s := range code {
			for _, imp := range s.file.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				if calls, ok := banned[path]; ok && calls == nil {
					t.Errorf("%s imports %s: the room is pure", s.path, path)
				}
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine: the room is pure", s.path)
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && slices.Contains(banned[x.Name], n.Sel.Name) {
						t.Errorf("%s uses %s.%s: the room is pure", s.path, x.Name, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// TestPackageDocs: each package has exactly one package comment, and it says
// more than a name.
func TestPackageDocs(t *testing.T) {
	var dirs []string
	for _, root := range []string{"internal", "cmd", "bench"} {
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() != "testdata" {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	for _, dir := range dirs {
		code, _ := sources(t, dir)
		if len(code) == 0 {
			continue
		}
		docs := 0
		for _, s := range code {
			if s.file.Doc != nil {
				docs++
				if len(s.file.Doc.Text()) < 60 {
					t.Errorf("%s: the package comment says too little", s.path)
				}
			}
		}
		if docs != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, docs)
		}
	}
}

// TestTestnetIsForTests: the scripted network and the scripted API server never
// reach the product.
func TestTestnetIsForTests(t *testing.T) {
	_ = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/testnet/") || strings.HasPrefix(path, "internal/kubetest/") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if name, _ := strconv.Unquote(imp.Path.Value); name == module+"testnet" || name == module+"kubetest" {
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
}

// waysOut are the names of net/http that make calls.
var waysOut = []string{"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"}

// TestOneWayOut: upstream calls are made by provider alone, which asks for a
// ticket from admission, and attempt alone has provider make them (I13). The
// drills are not part of the router: their clients and models call by themselves.
// Nor is cluster: the transport that it wraps goes to a Kubernetes API server.
// Nor is otlp: its client is for the collector's library, which makes the calls.
// Nor is access: it asks an OpenID provider who signs in.
func TestOneWayOut(t *testing.T) {
	dirs, _ := filepath.Glob("internal/*")
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if name == "drill" || name == "testnet" || name == "cluster" || name == "otlp" || name == "access" || name == "simulate" { // simulate is a RoundTripper itself
			continue
		}
		code, _ := sources(t, dir)
		for _, s := range code {
			ast.Inspect(s.file, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				from, _ := sel.X.(*ast.Ident)
				if from != nil && from.Name == "http" && slices.Contains(waysOut, sel.Sel.Name) && name != "provider" {
					t.Errorf("%s uses http.%s: calls to upstreams are provider's to make", s.path, sel.Sel.Name)
				}
				if sel.Sel.Name == "RoundTrip" && name != "provider" && name != "attempt" {
					t.Errorf("%s makes a call: calls to upstreams are attempt's to make", s.path)
				}
				return true
			})
		}
	}
}
