package topology

import (
	"testing"
)

func TestNamesOfHosts(t *testing.T) {
	g := New(objects(t, serviceOf("llm-gateway")), "")
	for host, want := range map[string]string{
		"llm-gateway.llm": "llm-gateway.llm.svc.cluster.local", "llm-gateway.llm.svc": "llm-gateway.llm.svc.cluster.local",
		"llm-gateway.llm.svc.cluster.local": "llm-gateway.llm.svc.cluster.local", "vllm": "vllm.apps.svc.cluster.local",
		"api.openai.com": "api.openai.com", "*.llm.svc.cluster.local": "*.llm.svc.cluster.local",
	} {
		if got := g.Edges().FullIn(host, "apps"); got != want {
			t.Errorf("%s is %s, want %s", host, got, want)
		}
	}
	for text, want := range map[string]string{
		"https://LLM.example.com:8443/v1": "llm.example.com", "llm.example.com/v1": "llm.example.com", "http://$(HOST)/v1": "", "": "",
		"os.environ/URL": "os.environ", "http://[::1]:80": "::1", "https://": "",
	} {
		if a, _ := ParseAddress(text); a.Host != want {
			t.Errorf("%q has host %q, want %q", text, a.Host, want)
		}
	}
}
