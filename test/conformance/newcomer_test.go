//go:build conformance

package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNewcomer follows the README in a fresh clone without any key in the
// environment: serve with no configuration, paste the printed line, then
// write a configuration, check it, and serve with that.
func TestNewcomer(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "hourthree")
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	run(t, nil, "git", "clone", "--quiet", source, clone)
	readme, err := os.ReadFile(filepath.Join(clone, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := func(verb string) *exec.Cmd {
		line := regexp.MustCompile(`(?m)^go run ./cmd/hourthree ` + verb + `[^#\n]*`).FindString(string(readme))
		if line == "" {
			t.Fatalf("the README has no command for %s", verb)
		}
		if strings.HasPrefix(verb, "serve") {
			line += " --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0"
		}
		c := exec.Command("sh", "-c", "exec "+line)
		c.Dir, c.Env = clone, withoutKeys()
		return c
	}
	try := func(r *router) {
		pasted := curlLine.FindStringSubmatch(r.log.String())
		if pasted == nil {
			t.Fatalf("serve printed no curl line:\n%s", r.log.String())
		}
		body := run(t, nil, "sh", "-c", pasted[1])
		var answer struct {
			Choices []struct {
				Message struct {
					Content string `json:"content"`
				} `json:"message"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Choices) != 1 || answer.Choices[0].Message.Content == "" {
			t.Errorf("%s\ngave %v: %s", pasted[1], err, body)
		}
	}
	r := startCommand(t, command("serve *(?:#|$)"))
	if said := strings.ToLower(r.log.String()); !strings.Contains(said, "simulated") {
		t.Errorf("serve does not say that its providers are simulated:\n%s", r.log.String())
	}
	try(r)
	for _, verb := range []string{"init", "validate"} {
		if out, err := command(verb).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, out)
		}
	}
	try(startCommand(t, command("serve -c")))
}

// withoutKeys is the environment with nothing that names a provider.
func withoutKeys() []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "OPENAI_") && !strings.HasPrefix(name, "AZURE_") && !strings.HasPrefix(name, "ANTHROPIC_") &&
			!strings.HasPrefix(name, "GEMINI_") && !strings.HasPrefix(name, "AWS_") && !strings.HasPrefix(name, "HOURTHREE_") {
			env = append(env, e)
		}
	}
	return env
}
