package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/memnet"
)

const (
	aliceKey = "admin-key-of-alice"
	viewKey  = "admin-key-of-viewer"
)

// keysOf are the settings of two people.
const keysOf = "keys: {alice: {key: " + aliceKey + ", role: operate}, viewer: {key: " + viewKey + ", role: view}}"

// guarded is a router with one upstream whose operator's listener has settings.
func guarded(u *fake, settings string) setup {
	whole := setup{upstreams: []*fake{u}}.yaml()
	return setup{upstreams: []*fake{u}, whole: strings.Replace(whole, "admin: {listen: 127.0.0.1:8081}", "admin: {"+settings+"}", 1)}
}

// admin asks the operator's listener.
func (r *rig) admin(method, path, key, body string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://127.0.0.1:8081"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestOperatorsAreKnown: through the whole router, who has a key may do what its
// role says and is named in what was changed, whoever the request says to be from;
// a reload changes who that is, and denials are counted and logged.
func TestOperatorsAreKnown(t *testing.T) {
	u := upstream("u1", answers("fine"))
	run(t, guarded(u, keysOf), func(r *rig) {
		for _, c := range []struct {
			method, path, key string
			want              int
		}{
			{"GET", "/metrics", "", 401}, {"GET", "/", "", 401}, {"GET", "/api/v1/state", callerKey, 401}, {"GET", "/readyz", "", 200}, {"GET", "/metrics", viewKey, 200},
			{"GET", "/api/v1/limits", viewKey, 200}, {"GET", "/incidents", viewKey, 200}, {"PUT", "/api/v1/workloads/team/quarantine", viewKey, 403},
			{"PUT", "/api/v1/workloads/team/quarantine", aliceKey, 204},
		} {
			if status, text := r.admin(c.method, c.path, c.key, `{"who":"mallory","why":"a test"}`); status != c.want {
				t.Errorf("%s %s: %d, want %d: %.200s", c.method, c.path, status, c.want, text)
			}
		}
		if got := r.app.changes(); len(got) != 1 || got[0].Who != "alice" {
			t.Errorf("changes %+v", got)
		}
		if status, text := r.admin("GET", "/api/v1/whoami", viewKey, ""); status != 200 || !strings.Contains(text, `"role": "view"`) {
			t.Errorf("%d %s", status, text)
		}
		if _, text := r.admin("GET", "/metrics", viewKey, ""); !strings.Contains(text, `hourthree_admin_denied_total{reason="no_credential"} 2`) || !strings.Contains(text, `hourthree_admin_denied_total{reason="wrong_key"} 1`) || !strings.Contains(text, `hourthree_admin_denied_total{reason="role"} 1`) {
			t.Errorf("denials are not counted:\n%s", text)
		}
		if a := r.do(ask{key: aliceKey}); a.status != 401 {
			t.Errorf("an admin key at the clients' side: %d", a.status)
		}
		r.configure(guarded(u, strings.Replace(keysOf, aliceKey, "another-key-of-alice", 1)))
		if err := r.app.Reload(); err != nil {
			t.Fatal(err)
		}
		old, _ := r.admin("GET", "/", aliceKey, "")
		if now, _ := r.admin("GET", "/", "another-key-of-alice", ""); old != 401 || now != 200 {
			t.Errorf("after a reload: the old key %d, the new one %d", old, now)
		}
		logs := r.logs.String()
		if !strings.Contains(logs, `"component":"access"`) || !strings.Contains(logs, `"who":"viewer"`) {
			t.Errorf("denials are not in the log:\n%s", logs)
		}
		for _, secret := range []string{aliceKey, viewKey, "another-key-of-alice"} {
			if strings.Contains(logs, secret) {
				t.Errorf("the log holds %s", secret)
			}
		}
	})
}

// TestChangesElsewhereAreKnown: who tells of a change that was made elsewhere is who
// has the key, whatever the request says, and it is in the audit log.
func TestChangesElsewhereAreKnown(t *testing.T) {
	run(t, guarded(upstream("u1", answers("fine")), keysOf), func(r *rig) {
		if status, text := r.admin("POST", "/api/v1/changes", aliceKey, `{"what":"rollout 7","scope":"sweden","who":"mallory","reverts":"rollout 6"}`); status != 204 {
			t.Fatalf("%d %s", status, text)
		}
		all, err := r.app.entries(0, 10)
		if err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		if e := all[0]; e.Who != "alice" || e.Role != "operate" || e.What != "elsewhere" || e.Subject != "sweden" || !strings.Contains(e.Why, "rollout 7") || !strings.Contains(e.Why, "rollout 6") {
			t.Errorf("%+v", e)
		}
	})
}

// TestAgentsHaveAKey: the tools for agents are there for who may view, under the
// names that the listener has, and for nobody else.
func TestAgentsHaveAKey(t *testing.T) {
	run(t, guarded(upstream("u1", answers("fine")), "hosts: [ops.example.com], "+keysOf), func(r *rig) {
		for _, c := range []struct {
			host, key string
			want      int
		}{{"127.0.0.1:8081", viewKey, 200}, {"ops.example.com", viewKey, 200}, {"ops.example.com", "", 401}, {"evil.example", viewKey, 403}} {
			req, _ := http.NewRequest("POST", "http://127.0.0.1:8081/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
			req.Host = c.host
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if c.key != "" {
				req.Header.Set("Authorization", "Bearer "+c.key)
			}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != c.want || c.want == 200 && !strings.Contains(string(text), "serverInfo") {
				t.Errorf("%s with %q: %d %.200s", c.host, c.key, resp.StatusCode, text)
			}
		}
	})
}

// TestOpenListenerStaysHome: a reload that would leave a listener open to everybody
// is refused.
func TestOpenListenerStaysHome(t *testing.T) {
	u := upstream("u1", answers("fine"))
	run(t, guarded(u, "listen: 0.0.0.0:8081, "+keysOf), func(r *rig) {
		r.configure(guarded(u, "listen: 127.0.0.1:8081"))
		if err := r.app.Reload(); err == nil || !strings.Contains(err.Error(), "admin.keys") {
			t.Errorf("%v", err)
		}
		if a := r.app.current.Load().config.Admin; !a.Guarded() {
			t.Error("it asks nobody")
		}
	})
}

// certify writes a certificate for 127.0.0.1 with a serial number.
func certify(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOperatorTLS: the listener speaks TLS with the certificate that its files hold
// now; one that cannot be used leaves the one before.
func TestOperatorTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, cert, key, 1)
	path := filepath.Join(dir, "hourthree.yaml")
	write := func(settings string) {
		if err := os.WriteFile(path, []byte(guarded(upstream("u1"), settings).yaml()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tls: {cert: " + cert + ", key: " + key + "}, " + keysOf)
	network, logs, said := memnet.New(), new(lockedBuffer), new(bytes.Buffer)
	a, err := New(Options{ConfigPath: path, Env: os.LookupEnv, Stdout: said, Stderr: logs, Version: "test", Network: over(network)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Stop()
	a.welcome()
	if !strings.Contains(said.String(), "https://127.0.0.1:8081/metrics") {
		t.Errorf("%s", said)
	}
	serial := func() (int64, *http.Response) {
		t.Helper()
		a.certificate.mu.Lock()
		a.certificate.looked = time.Time{} // a second is over
		a.certificate.mu.Unlock()
		pool := x509.NewCertPool()
		text, _ := os.ReadFile(cert)
		pool.AppendCertsFromPEM(text)
		tr := &http.Transport{DialContext: network.Dial, TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
		req, _ := http.NewRequestWithContext(context.Background(), "GET", "https://127.0.0.1:8081/api/v1/whoami", nil)
		req.Header.Set("Authorization", "Bearer "+aliceKey)
		resp, err := (&http.Client{Transport: tr, Timeout: 30 * time.Second}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64(), resp
	}
	n, resp := serial()
	if n != 1 || resp.StatusCode != 200 || resp.TLS.Version < tls.VersionTLS12 {
		t.Errorf("certificate %d, %d, %v", n, resp.StatusCode, resp.Header)
	}
	certify(t, cert, key, 22)
	if n, _ := serial(); n != 22 {
		t.Errorf("certificate %d after its files changed", n)
	}
	good, _ := os.ReadFile(key)
	if err := os.WriteFile(key, []byte("nothing of the kind"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, _ := serial(); n != 22 {
		t.Errorf("certificate %d after its key was spoilt", n)
	}
	a.lines.Flush()
	if !strings.Contains(logs.String(), "the new certificate is refused") {
		t.Error("nothing is said of a certificate that cannot be used")
	}
	if err := os.WriteFile(key, good, 0o600); err != nil {
		t.Fatal(err)
	}
	write(keysOf)
	if err := a.Reload(); err != nil {
		t.Fatal(err)
	}
	a.lines.Flush()
	if n, _ := serial(); n != 22 || !strings.Contains(logs.String(), `"setting":"admin.tls"`) {
		t.Error("TLS went with a reload, or nothing was said")
	}
}

// TestAccessOf: what the configuration says of an OpenID provider is what is asked.
func TestAccessOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hourthree.yaml")
	text := guarded(upstream("u1"), "hosts: [ops.example.com], oidc: {issuer: https://id.example.com, client_id: c, client_secret: its-secret, redirect_url: https://ops.example.com/oidc/callback, scopes: [groups], name_claim: sub, roles: {operate: {claim: groups, values: [sre, lead]}, view: {claim: team, values: [x]}}}, "+keysOf).yaml()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := access.Config{
		Listen: "127.0.0.1:8081", Hosts: []string{"ops.example.com"},
		Keys: []access.Key{{Name: "alice", Key: aliceKey, Role: access.Operate}, {Name: "viewer", Key: viewKey, Role: access.View}},
		OIDC: &access.OIDC{
			Issuer: "https://id.example.com", ClientID: "c", ClientSecret: "its-secret", RedirectURL: "https://ops.example.com/oidc/callback", Scopes: []string{"groups"}, NameClaim: "sub",
			Operate: access.Claim{Name: "groups", Values: []string{"sre", "lead"}}, View: access.Claim{Name: "team", Values: []string{"x"}},
		},
	}
	if got := accessOf(c); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\n%+v", got, want)
	}
	c.Admin.OIDC.Roles.View = nil
	if got := accessOf(c); got.OIDC.View.Name != "" {
		t.Errorf("%+v", got.OIDC.View)
	}
}
