package app

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// named is an Azure upstream u1 with one public model name in front of one
// deployment name.
func named(public, deployment, version string) (setup, *fake) {
	u1 := upstream("u1", answers("from one"))
	s := setup{upstreams: []*fake{u1}, kind: "azure"}
	if version != "" {
		s.provider = map[string]string{"u1": "api_version: " + version}
	}
	text := strings.Replace(s.yaml(), "models:\n  m:\n", fmt.Sprintf("models:\n  %q:\n", public), 1)
	s.whole = strings.Replace(text, "model: real", fmt.Sprintf("model: %q", deployment), 1)
	return s, u1
}

// Breaks when a public name is taken from the path without decoding it, or a
// deployment name goes up without encoding.
func TestOddDeploymentNames(t *testing.T) {
	long := strings.Repeat("d", 198)
	for _, name := range []string{
		"gpt-4.1", "gpt.4..1", "...", "_-~", "a b", "org/model", "a/b/c", "50%", "a%2Fb", "q?x=1", "h#x", "a&b=c", "semi;colon", "plus+plus", "ümlaut", "日本", `back\slash`, "a:b@c", long,
	} {
		for _, version := range []string{"", "2024-10-21"} {
			for _, path := range []string{"/chat/completions", "/embeddings"} {
				t.Run(name+" "+version+path, func(t *testing.T) {
					s, u1 := named("p:"+name, name, version)
					run(t, s, func(r *rig) {
						public := url.PathEscape("p:" + name)
						r.good(r.do(ask{path: "/openai/deployments/" + public + path + "?api-version=2020-01-01", body: `{"messages":[],"input":"x"}`}), "from one")
						r.good(r.do(ask{path: "/v1" + path, body: fmt.Sprintf(`{"model":%q,"input":"x"}`, "p:"+name)}), "from one")
						r.counts(map[*fake]int{u1: 2})
						for i := range 2 {
							sent := u1.request(i)
							u, err := url.ParseRequestURI(sent.uri)
							if err != nil {
								t.Fatalf("went up to %q: %v", sent.uri, err)
							}
							want := "/openai/v1" + path
							if version != "" {
								want = "/openai/deployments/" + name + path
								if n := strings.Count(u.EscapedPath(), "/"); n != strings.Count(want, "/")-strings.Count(name, "/") {
									t.Errorf("the name is %d segments of %q", n, u.EscapedPath())
								}
							}
							if u.Path != want {
								t.Errorf("went up to %q, which is %q, want %q", sent.uri, u.Path, want)
							}
							if got := u.Query()["api-version"]; version != "" && (len(got) != 1 || got[0] != version) || version == "" && got != nil {
								t.Errorf("api-version %q", got)
							}
							if want := fmt.Sprintf(`"model":%q`, name); !strings.Contains(sent.body, want) {
								t.Errorf("body %q without %s", sent.body, want)
							}
						}
					})
				})
			}
		}
	}
}

// Breaks when a deployment of the path is looked up by less than its whole
// name, or its path is resolved upwards.
func TestDeploymentsThatAreNotServed(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		status int
	}{
		"other":            {"/openai/deployments/other/chat/completions", 404},
		"prefix":           {"/openai/deployments/m.x/chat/completions", 404},
		"escaped slash":    {"/openai/deployments/m%2Fx/chat/completions", 404},
		"slash in front":   {"/openai/deployments/%2Fm/chat/completions", 404},
		"dots":             {"/openai/deployments/%2e%2e/chat/completions", 404},
		"climbing name":    {"/openai/deployments/x%2F..%2Fm/chat/completions", 404},
		"NUL":              {"/openai/deployments/m%00/chat/completions", 404},
		"capitals":         {"/openai/deployments/M/chat/completions", 404},
		"very long":        {"/openai/deployments/" + strings.Repeat("m", 9000) + "/chat/completions", 404},
		"bad escape":       {"/openai/deployments/m%zz/chat/completions", 400},
		"climbing path":    {"/openai/deployments/m/%2e%2e/%2e%2e/files", 400},
		"climbing, slash":  {"/openai/deployments/m/chat%2F..%2F..%2Ffiles", 400},
		"dated, no prefix": {"/deployments/m/chat/completions", 404},
	} {
		for _, version := range []string{"", "2024-10-21"} {
			t.Run(name+" "+version, func(t *testing.T) {
				s, u1 := named("m", "real", version)
				run(t, s, func(r *rig) {
					var a answer
					if name == "bad escape" {
						a = r.written(tc.path, "{}", "Authorization: Bearer "+callerKey, "Content-Type: application/json", "Content-Length: 2")
					} else {
						a = r.do(ask{path: tc.path, body: `{"messages":[]}`})
					}
					if a.status != tc.status || len(a.body) > 2000 {
						t.Errorf("status %d, error %v, want %d: %.300q", a.status, a.err, tc.status, a.body)
					}
					r.counts(map[*fake]int{u1: 0})
				})
			})
		}
	}
}

// Breaks when one style of the client's path does not reach one style of the
// provider, or the client's api-version goes up.
func TestEveryStyleReachesEveryStyle(t *testing.T) {
	for _, version := range []string{"", "2024-10-21"} {
		for _, path := range []string{
			"/v1/chat/completions", "/openai/v1/chat/completions", "/chat/completions", "/openai/deployments/m/chat/completions",
		} {
			for _, query := range []string{"", "?api-version=preview", "?api-version=1999-01-01&api-version=2&x=1", "?API-Version=1999-01-01", "?api%2Dversion=1999-01-01"} {
				t.Run(version+path+query, func(t *testing.T) {
					s, u1 := named("m", "real", version)
					run(t, s, func(r *rig) {
						r.good(r.do(ask{path: path + query}), "from one")
						r.counts(map[*fake]int{u1: 1})
						var params []string
						want := "/openai/v1/chat/completions"
						if version != "" {
							want = "/openai/deployments/real/chat/completions"
							params = append(params, "api-version="+version)
						}
						if strings.Contains(query, "x=1") {
							params = append(params, "x=1")
						}
						if len(params) > 0 {
							want += "?" + strings.Join(params, "&")
						}
						if got := u1.request(0).uri; got != want {
							t.Errorf("went up to %q, want %q", got, want)
						}
						h := u1.request(0).header
						if h.Get("Api-Key") != secretOfU1 || h.Get("Authorization") != "" {
							t.Errorf("went up with %v", h)
						}
					})
				})
			}
		}
	}
}

// Breaks when the model of the body counts although the path names one: a key
// for one model would reach another.
func TestTheDeploymentOfThePathDecides(t *testing.T) {
	u1 := upstream("u1", answers("from one"))
	s := setup{upstreams: []*fake{u1}, kind: "azure", workload: "models: [m]"}
	s.whole = strings.Replace(s.yaml(), "workloads:", "  n:\n    targets: [{provider: u1, model: second}]\nworkloads:", 1)
	run(t, s, func(r *rig) {
		r.good(r.do(ask{path: "/openai/deployments/m/chat/completions", body: `{"model":"n","messages":[]}`}), "from one")
		if got := u1.request(0).body; got != `{"model":"real","messages":[]}` {
			t.Errorf("went up as %s", got)
		}
		for _, a := range []ask{
			{path: "/openai/deployments/n/chat/completions", body: `{"model":"m","messages":[]}`},
			{path: "/openai/deployments/n/audio/speech", body: `{"model":"m"}`},
			{path: "/v1/chat/completions", body: `{"model":"n","messages":[]}`},
			{path: "/v1/audio/speech", body: `{"model":"n"}`},
		} {
			r.failed(r.do(a), 404, "client")
		}
		r.counts(map[*fake]int{u1: 1})
		r.do(ask{path: "/openai/deployments/m/audio/speech", body: `{"model":"n","input":"x"}`})
		if u1.count() == 2 && strings.Contains(u1.request(1).body, `"n"`) {
			t.Errorf("the other model went up: %s", u1.request(1).body)
		}
	})
}

// Breaks when a path that names no operation goes up, or is answered by the
// mux with a redirect.
func TestCrookedPathsAreAnsweredHere(t *testing.T) {
	u1 := upstream("u1", answers("x"))
	run(t, setup{upstreams: []*fake{u1}, more: "passthrough: {/v1: u1}\n"}, func(r *rig) {
		r.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		for _, path := range []string{
			"/openai/deployments/m", "/openai/deployments/m/", "/openai/deployments//chat/completions", "//v1/chat/completions",
			"/v1//chat/completions", "/v1/chat/completions//", "/v1/./models", "/v1/files/../models", "/v1/files/..", "/v1", "/openai/v1",
		} {
			a := r.do(ask{path: path})
			if r.failed(a, 404, "client"); a.status != 404 {
				t.Errorf("at %s", path)
			}
		}
		r.counts(map[*fake]int{u1: 0})
	})
}
