package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"hourthree": func() { os.Exit(run()) }})
}

// TestScripts runs the command as a user does; each file in testdata is a
// session. With UPDATE_SCRIPTS=1 expected
// output is rewritten.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true, UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error { return os.Symlink(examples, filepath.Join(e.WorkDir, "examples")) },
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"code": code, "width": width, "cluster": clusterOf(t)},
	})
}

// code checks the exit code: code N command args...
func code(ts *testscript.TestScript, _ bool, args []string) {
	want := args[0]
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if e, ok := err.(interface{ ExitCode() int }); ok {
		got = string(rune('0' + e.ExitCode()))
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %s, want %s", got, want)
	}
}

// width checks that no line of a file (or stdout, stderr) is longer than 80
// columns.
func width(ts *testscript.TestScript, _ bool, args []string) {
	column := 0
	for _, r := range ts.ReadFile(args[0]) {
		if column++; r == '\n' {
			column = 0
		}
		if column > 80 {
			ts.Fatalf("%s has a line of more than 80 columns", args[0])
		}
	}
}

// TestErrorsAreHarmless: what an error quotes of a server or a file does nothing
// to a terminal.
func TestErrorsAreHarmless(t *testing.T) {
	if got := harmless("a\x1b[31m\u009b1m\u202e\r\x07b\nc\té"); got != "a\ufffd[31m\ufffd1m\ufffd\ufffd\ufffdb\nc\té" {
		t.Errorf("%q", got)
	}
}
