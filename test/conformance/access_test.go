//go:build conformance

package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	operatorKey = "the-operators-own-key-5521"
	scrapeKey   = "the-key-of-prometheus-8810"
)

// freePort is an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startGuarded runs a router whose operator's listener asks who is there.
func startGuarded(t *testing.T, admin conf) *router {
	t.Helper()
	admin["keys"] = conf{"operator": conf{"key": operatorKey, "role": "operate"}, "prometheus": conf{"key": scrapeKey, "role": "view"}}
	text, err := json.MarshalIndent(conf{
		"listen": "127.0.0.1:0", "admin": admin, "workloads": workloads(), "providers": conf{"sim": conf{"type": "simulated"}}, "models": conf{"m": order("sim/m")},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hourthree.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return startCommand(t, exec.Command(routerBin, "serve", "-c", path))
}

// asOperator asks the operator's listener with a key.
func asOperator(t *testing.T, r *router, path string) string {
	t.Helper()
	q, err := http.NewRequest("GET", r.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+operatorKey)
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
	}
	return string(text)
}

// TestSignIn: in a real browser, with a provider that is not ours and its forms.
func TestSignIn(t *testing.T) {
	listen := freePort(t)
	issuer, idp := startServer(t, "oidc.mjs", "http://"+listen+"/oidc/callback")
	r := startGuarded(t, conf{"listen": listen, "oidc": conf{
		"issuer": issuer, "client_id": "hourthree", "client_secret": "a-secret-of-the-client", "redirect_url": "http://" + listen + "/oidc/callback",
		"scopes": []string{"openid", "email", "groups"}, "roles": conf{"operate": conf{"claim": "groups", "values": []string{"sre"}}, "view": conf{"claim": "groups", "values": []string{"dev"}}},
	}})
	type seen struct {
		At, Text, Styled, Scripts, Read, Linked, Wrong, Keyed, After string
		Axe, Complaints                                              []string
		Framed                                                       bool
	}
	sign := func(user, key string) (s seen) {
		t.Helper()
		in, _ := json.Marshal(conf{"admin": r.admin, "user": user, "key": key, "pictures": t.ArtifactDir()})
		out := run(t, in, "node", clientsDir+"/signin.mjs")
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return s
	}
	s := sign("root", operatorKey)
	if s.At != "/api/v1/whoami" || !strings.Contains(s.Text, `"root@example.com"`) || !strings.Contains(s.Text, `"operate"`) || !strings.Contains(s.Text, `"oidc"`) {
		t.Errorf("signed in at %s: %s", s.At, s.Text)
	}
	if s.Styled != "384px" || len(s.Axe) > 0 || len(s.Complaints) > 0 {
		t.Errorf("the page is %q wide, axe finds %v, the browser complains of %v", s.Styled, s.Axe, s.Complaints)
	}
	if s.Scripts != "" || s.Read != "not read" || !s.Framed {
		t.Errorf("scripts see %q, another site reads %q, a frame is refused: %v", s.Scripts, s.Read, s.Framed)
	}
	if !strings.Contains(s.Linked, "root@example.com") {
		t.Errorf("a link of another site leads to %s", s.Linked)
	}
	if !strings.Contains(s.Wrong, "not known here") || !strings.Contains(s.Keyed, `"session"`) || !strings.Contains(s.After, "Sign in") {
		t.Errorf("with a key: %q, %s, after signing out %s", s.Wrong, s.Keyed, s.After)
	}
	if changes := asOperator(t, r, "/api/v1/state"); strings.Contains(changes, "forged") || strings.Contains(changes, `"what": "quarantine"`) {
		t.Errorf("another site has changed something: %s", changes)
	}
	if outages := asOperator(t, r, "/api/v1/outages"); strings.Contains(outages, "forged") {
		t.Errorf("another site has told of a change: %s", outages)
	}
	if s := sign("dev", ""); !strings.Contains(s.Text, `"view"`) {
		t.Errorf("dev: %s", s.Text)
	}
	if s := sign("guest", ""); s.At != "/oidc/callback" || !strings.Contains(s.Text, "from your claim groups") {
		t.Errorf("guest at %s: %s", s.At, s.Text)
	}
	_ = idp.Process.Kill()
	if got := asOperator(t, r, "/api/v1/whoami"); !strings.Contains(got, "operator") {
		t.Errorf("with the provider gone: %s", got)
	}
	for _, secret := range []string{operatorKey, "a-secret-of-the-client", "code=", "state="} {
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

// TestPrometheusHasAKey: a real Prometheus scrapes with the key of the view role, and
// cannot without.
func TestPrometheusHasAKey(t *testing.T) {
	r := startGuarded(t, conf{"listen": "127.0.0.1:0"})
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(scrapeKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	target := strings.TrimPrefix(r.admin, "http://")
	file, err := json.Marshal(conf{"global": conf{"scrape_interval": "1s"}, "scrape_configs": []conf{
		{"job_name": "hourthree", "authorization": conf{"credentials_file": key}, "static_configs": []conf{{"targets": []string{target}}}},
		{"job_name": "nobody", "static_configs": []conf{{"targets": []string{target}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	path, listen := filepath.Join(dir, "prometheus.yaml"), freePort(t)
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prometheus", "--config.file="+path, "--storage.tsdb.path="+dir+"/data", "--web.listen-address="+listen)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ask := func(query string) string {
		resp, err := http.Get("http://" + listen + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			return ""
		}
		defer resp.Body.Close()
		var answer struct {
			Data struct{ Result []struct{ Value []any } }
		}
		if json.NewDecoder(resp.Body).Decode(&answer) != nil || len(answer.Data.Result) != 1 {
			return ""
		}
		return fmt.Sprint(answer.Data.Result[0].Value[1])
	}
	eventually(t, time.Minute, "Prometheus has scraped both ways", func() bool {
		return ask(`up{job="hourthree"}`) == "1" && ask(`up{job="nobody"}`) == "0" && slices.Contains([]string{"0", "1"}, ask(`hourthree_config_last_reload_success{job="hourthree"}`))
	})
}
