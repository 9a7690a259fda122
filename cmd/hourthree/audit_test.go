package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hourthree/hourthree/internal/kubetest"
)

// clusterOf is the script command "cluster FILE PLURAL...": an API server that has
// the objects of a file, or of the manifests of a folder, and does not let the
// named kinds be listed. KUBECONFIG names it.
func clusterOf(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		files, err := filepath.Glob(ts.MkAbs(args[0]) + "/*.yaml")
		ts.Check(err)
		if len(files) == 0 {
			files = []string{ts.MkAbs(args[0])}
		}
		var all []string
		for _, f := range files {
			data, err := os.ReadFile(f)
			ts.Check(err)
			all = append(all, string(data))
		}
		s := kubetest.New(t, strings.Join(all, "\n---\n"))
		for _, plural := range args[1:] {
			s.Faults[plural] = kubetest.Fault{Status: 403}
		}
		ts.Setenv("KUBECONFIG", s.Kubeconfig(t))
	}
}

// example is a command in a document, what it prints, and its exit code.
type example struct {
	line    int
	command string
	want    []string
	code    string
}

var exited = regexp.MustCompile(`^\[exit (\d)\]$`)

// examplesOf are what stands in the console blocks of a document: "$ command",
// the output, and "[exit N]" where that is not 0. A line of dots alone stands for
// any lines.
func examplesOf(text string) (list []example) {
	in := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == "```console"
		case !in:
		case strings.HasPrefix(line, "$ "):
			list = append(list, example{line: i + 1, command: line[2:], code: "0"})
		case exited.MatchString(line):
			list[len(list)-1].code = exited.FindStringSubmatch(line)[1]
		default:
			last := &list[len(list)-1]
			last.want = append(last.want, line)
		}
	}
	return list
}

// matches compares output with what a document has of it.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matches(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
}

// TestTheAuditDocumentIsRight runs each command of docs/audit.md.
func TestTheAuditDocumentIsRight(t *testing.T) { documentIsRight(t, "docs/audit.md", 10) }

// documentIsRight runs each command of a document, of which there are so many at
// least, one after the other in one folder that has the examples: output and exit
// code are as it says. With UPDATE_SCRIPTS=1 outputs without dots are written anew.
func documentIsRight(t *testing.T, name string, least int) {
	t.Helper()
	data, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	list := examplesOf(text)
	if len(list) < least {
		t.Fatalf("%d commands", len(list))
	}
	dir := t.TempDir()
	examples, err := filepath.Abs("../../examples")
	if err == nil {
		err = os.Symlink(examples, filepath.Join(dir, "examples"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		got, code := ran(t, dir, s.command)
		if code != s.code {
			t.Errorf("%s:%d: %s: exit %s, want %s\n%s", name, s.line, s.command, code, s.code, got)
		}
		lines := strings.Split(strings.TrimRight(got, "\n"), "\n")
		if got == "" {
			lines = nil
		}
		if matches(s.want, lines) {
			continue
		}
		if os.Getenv("UPDATE_SCRIPTS") != "" && !slices.Contains(s.want, "...") {
			text = strings.Replace(text, "$ "+s.command+"\n"+joined(s.want), "$ "+s.command+"\n"+joined(lines), 1)
			continue
		}
		t.Errorf("%s:%d: %s prints\n%s\nwant\n%s", name, s.line, s.command, got, strings.Join(s.want, "\n"))
	}
	if text != string(data) {
		if err := os.WriteFile("../../"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// ran runs a command line in a folder, on a terminal of 80 columns.
func ran(t *testing.T, dir, command string) (output, code string) {
	t.Helper()
	c := exec.Command("sh", "-c", command)
	c.Dir = dir
	c.Env = append(os.Environ(), "COLUMNS=80", "NO_COLOR=1")
	var b bytes.Buffer
	c.Stdout, c.Stderr = &b, &b
	err := c.Run()
	var e *exec.ExitError
	switch {
	case err == nil:
		return b.String(), "0"
	case errors.As(err, &e):
		return b.String(), string(rune('0' + e.ExitCode()))
	}
	t.Fatal(err)
	return "", ""
}

// TestTheAuditsFlagsAreThere: what the documents show and cannot be run here, such
// as steps of a pipeline, has flags that exist.
func TestTheAuditsFlagsAreThere(t *testing.T) {
	flag := regexp.MustCompile(`hourthree (audit[^|>"]*)`)
	n := 0
	for _, file := range []string{"../../docs/audit.md", "../../README.md"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "\\\n", " ")
		for _, block := range regexp.MustCompile("(?s)```(?:sh|yaml)\n.*?```").FindAllString(text, -1) {
			for _, m := range flag.FindAllStringSubmatch(block, -1) {
				args := strings.Fields(strings.Split(m[1], "\n")[0])
				if i := slices.Index(args, "#"); i >= 0 {
					args = args[:i]
				}
				if out, err := exec.Command("hourthree", append(args, "--help")...).CombinedOutput(); err != nil {
					t.Errorf("%s: hourthree %s: %s", file, strings.Join(args, " "), out)
				}
				n++
			}
		}
	}
	if n < 5 {
		t.Errorf("found %d commands", n)
	}
}
