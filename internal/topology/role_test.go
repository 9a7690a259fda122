package topology

import "testing"

func TestHosts(t *testing.T) {
	for in, want := range map[string]string{
		"https://User:pass@API.OpenAI.com:443/v1": "api.openai.com", "llm.llm:4000": "llm.llm", "api.openai.com.": "api.openai.com",
		"$(HOST)": "", "http://10.0.0.1:80": "", "": "", "http://[::1]/": "", "://": "", "http://%zz": "",
	} {
		if got := hostOf(in); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
	for host, want := range map[string]bool{
		"api.openai.com": true, "contoso-sc.openai.azure.com": true, "API.ANTHROPIC.COM": true, "europe-west1-aiplatform.googleapis.com": true,
		"openai.com": false, "api.openai.com.evil.example": false, "notapi.openai.com": false, "storage.googleapis.com": false, "": false,
	} {
		if Provider(host) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
}
