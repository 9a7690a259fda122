package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

const goodOIDC = "issuer: https://id.example.com, client_id: c, redirect_url: https://ops.example.com/oidc/callback, roles: {operate: {claim: groups, values: [sre]}}"

// TestAccessRefusals: each wrong setting of who may operate, and what is said of it.
func TestAccessRefusals(t *testing.T) {
	sum := sha256.Sum256([]byte("a-key-of-some-length"))
	hexed := "sha256:" + strings.ToUpper(hex.EncodeToString(sum[:]))
	workload := "workloads: {w: {keys: [a-key-of-some-length]}}\n"
	for name, c := range map[string]struct{ text, want string }{
		"nobody, everywhere":   {"admin: {listen: 0.0.0.0:8081}\n", "admin.listen: must be a loopback address: without admin.keys"},
		"short key":            {"admin: {keys: {a: {key: 0123456789abcde, role: view}}}\n", "admin.keys.a.key: is shorter than 16 characters"},
		"no role":              {"admin: {keys: {a: {key: a-key-of-some-length}}}\n", "admin.keys.a: role is missing"},
		"another role":         {"admin: {keys: {a: {key: a-key-of-some-length, role: admin}}}\n", `"admin" is none of view, operate`},
		"no key":               {"admin: {keys: {a: {role: view}}}\n", "admin.keys.a: key is missing"},
		"bad digest":           {"admin: {keys: {a: {key: 'sha256:12', role: view}}}\n", "hourthree config hash-key makes it"},
		"a space":              {"admin: {keys: {a: {key: a key of some length, role: view}}}\n", "a header cannot carry"},
		"one key, two people":  {"admin: {keys: {a: {key: a-key-of-some-length, role: view}, b: {key: '" + hexed + "', role: operate}}}\n", "admin.keys.b.key: is the admin key of a too"},
		"a workload's key":     {workload + "admin: {keys: {a: {key: a-key-of-some-length, role: view}}}\n", "admin.keys.a.key: is a key of workload w too"},
		"a workload's digest":  {"workloads: {w: {keys: ['" + hexed + "']}}\nadmin: {keys: {a: {key: a-key-of-some-length, role: view}}}\n", "admin.keys.a.key: is a key of workload w too"},
		"a host with a path":   {"admin: {hosts: [ops.example.com/x]}\n", "admin.hosts[0]: is not the name of a host"},
		"a host with a star":   {"admin: {hosts: ['*.example.com']}\n", "admin.hosts[0]: is not the name of a host"},
		"half of TLS":          {"admin: {tls: {cert: /x}}\n", "admin.tls: key is missing"},
		"TLS of nothing":       {"admin: {tls: {cert: /nowhere/cert, key: /nowhere/key}}\n", "admin.tls: cannot be used"},
		"a relative path":      {"admin: {tls: {cert: cert.pem, key: /key}}\n", "admin.tls.cert: must be an absolute path"},
		"issuer by http":       {"admin: {oidc: {" + strings.Replace(goodOIDC, "https://id", "http://id", 1) + "}}\n", "admin.oidc.issuer: must be https"},
		"issuer with a query":  {"admin: {oidc: {" + strings.Replace(goodOIDC, "id.example.com", "'https://id.example.com?x=1'", 1) + "}}\n", "admin.oidc.issuer"},
		"redirect by http":     {"admin: {oidc: {" + strings.Replace(goodOIDC, "https://ops", "http://ops", 1) + "}}\n", "admin.oidc.redirect_url: must be https"},
		"redirect to the root": {"admin: {oidc: {" + strings.Replace(goodOIDC, "/oidc/callback", "/", 1) + "}}\n", "must lead to /oidc/callback"},
		"no roles":             {"admin: {oidc: {issuer: https://id.example.com, client_id: c, redirect_url: https://o.example.com/oidc/callback}}\n", "roles is missing"},
		"roles of nobody":      {"admin: {oidc: {" + strings.Replace(goodOIDC, "{operate: {claim: groups, values: [sre]}}", "{}", 1) + "}}\n", "admin.oidc.roles: gives nobody a role"},
		"no values":            {"admin: {oidc: {" + strings.Replace(goodOIDC, "[sre]", "[]", 1) + "}}\n", "nobody has the role by it"},
		"no client":            {"admin: {oidc: {" + strings.Replace(goodOIDC, "client_id: c, ", "", 1) + "}}\n", "client_id is missing"},
	} {
		_, ps := parse(t, base+c.text)
		if !slices.ContainsFunc(ps, func(p Problem) bool { return !p.Warning && strings.Contains(p.text(), c.want) }) {
			t.Errorf("%s: want %q in:\n%s", name, c.want, ps.Report())
		}
		if all := ps.Report(); strings.Contains(all, "a-key-of-some-length") {
			t.Errorf("%s: a key is shown:\n%s", name, all)
		}
	}
}

// TestAccessIsTaken: what is right, and what is said of it all the same.
func TestAccessIsTaken(t *testing.T) {
	key := "keys: {alice: {key: a-key-of-some-length, role: operate}}"
	for name, c := range map[string]struct {
		text     string
		warnings []string
	}{
		"keys at home":    {"admin: {hosts: [ops.example.com, 'https://safe.example.com', 'Ops.example.com:8443'], " + key + "}\n", nil},
		"keys, elsewhere": {"admin: {listen: 0.0.0.0:8081, " + key + "}\n", []string{"admin.listen: is reached without encryption"}},
		"both":            {"admin: {" + key + ", oidc: {" + goodOIDC + "}}\n", nil},
		"a provider here": {"admin: {" + key + ", oidc: {" + strings.NewReplacer("https://id.example.com", "http://127.0.0.1:5556", "https://ops.example.com", "http://localhost:8081").Replace(goodOIDC) + "}}\n", nil},
		"OIDC alone":      {"admin: {oidc: {" + goodOIDC + "}}\n", []string{"is the only way in"}},
		"nobody operates": {"admin: {oidc: {" + strings.Replace(goodOIDC, "operate:", "view:", 1) + "}}\n", []string{"is the only way in", "lets nobody operate"}},
	} {
		cfg, ps := parse(t, base+c.text)
		if ps.Fatal() || len(ps) != len(c.warnings) {
			t.Errorf("%s:\n%s", name, ps.Report())
			continue
		}
		for _, want := range c.warnings {
			if !strings.Contains(ps.Report(), want) {
				t.Errorf("%s: want %q:\n%s", name, want, ps.Report())
			}
		}
		if !cfg.Admin.Guarded() || cfg.Admin.OIDC != nil && (cfg.Admin.OIDC.NameClaim != "email" || len(cfg.Admin.OIDC.Scopes) != 3) {
			t.Errorf("%s: %+v", name, cfg.Admin)
		}
	}
	cfg, _ := parse(t, base+"admin: {"+key+"}\n")
	cfg.Admin.Listen = "0.0.0.0:8081"
	if err := cfg.CheckListeners(); err != nil {
		t.Error(err)
	}
	cfg.Admin.Keys = nil
	if err := cfg.CheckListeners(); err == nil {
		t.Error("a flag opens the listener to everybody")
	}
}
