//go:build conformance

package conformance

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
)

// startServer runs an upstream of test/clients, which prints its URL.
func startServer(t *testing.T, file string, args ...string) (url string, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command("node", append([]string{file}, args...)...)
	cmd.Dir = clientsDir
	var said tail
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it ends with its input, or was killed by the test
	})
	var hello struct {
		URL string `json:"url"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &hello) != nil || hello.URL == "" {
		t.Fatalf("%s did not start: %v, %q, %s", file, err, line, said.String())
	}
	return hello.URL, cmd
}

// TestThirdPartyMock serves a mock that the project did not write, as an
// OpenAI and as an Azure upstream.
func TestThirdPartyMock(t *testing.T) {
	url, _ := startServer(t, "mock.mjs")
	r := startRouter(t, conf{"workloads": workloads(),
		"providers": conf{
			"mock":       conf{"type": "openai", "base_url": url + "/v1", "api_key": upstreamKey},
			"mock-azure": conf{"type": "azure", "base_url": url, "api_key": upstreamKey},
		},
		"models": conf{"gpt-5": order("mock/gpt-5-mini"), "deployed": order("mock-azure/gpt-5-prod")},
	})
	for _, model := range []string{"gpt-5", "deployed"} {
		for _, c := range clients() {
			t.Run(model+"/"+c.name(), func(t *testing.T) {
				for _, scenario := range []string{"chat", "stream"} {
					got := c.run(t, job{Scenario: scenario, Origin: r.origin, Key: userKey, Model: model, Prompt: "where"})
					if got.Error != nil || got.Text != plainText || got.Finish != "stop" {
						t.Errorf("%s: %+v, error %+v", scenario, got, got.Error)
					}
				}
				for _, scenario := range []string{"tools", "streamTools"} {
					got := c.run(t, job{Scenario: scenario, Origin: r.origin, Key: userKey, Model: model})
					if got.Error != nil || !calledTool(got) {
						t.Errorf("%s: %+v, error %+v", scenario, got, got.Error)
					}
				}
				got := c.run(t, job{Scenario: "embed", Origin: r.origin, Key: userKey, Model: model})
				if got.Error != nil || len(got.Vectors) != 2 || !slices.Equal(got.Vectors[0], vector) {
					t.Errorf("embed: %+v, error %+v", got, got.Error)
				}
				got = c.run(t, job{Scenario: "chat", Origin: r.origin, Key: userKey, Model: model, Prompt: "fail"})
				if got.Error == nil || got.Error.Status != 400 {
					t.Errorf("fail: %+v, error %+v", got, got.Error)
				}
			})
		}
	}
	for _, c := range clients()[:3] {
		for scenario, has := range map[string]bool{"responses": true, "responsesStream": c.name() == "openai"} {
			if !has || c.name() == "openai-azure" {
				continue // the dated Azure API has no such path
			}
			t.Run(scenario+"/"+c.name(), func(t *testing.T) {
				got := c.run(t, job{Scenario: scenario, Origin: r.origin, Key: userKey, Model: "gpt-5", Prompt: "where"})
				if got.Error != nil || got.Text != plainText {
					t.Errorf("%+v, error %+v", got, got.Error)
				}
			})
		}
	}
}
