package config

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var hostName = regexp.MustCompile(`^(https?://)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.?)+(:[0-9]{1,5})?$`)

// access checks who may use the operator's listener.
func (k *checker) access() {
	a := k.c.Admin
	for i, h := range a.Hosts {
		if !hostName.MatchString(strings.ToLower(h)) {
			k.error("admin.hosts["+strconv.Itoa(i)+"]", "is not the name of a host", "write it as ops.example.com, or https://ops.example.com where a proxy ends TLS")
		}
	}
	k.adminKeys()
	k.adminTLS()
	k.adminOIDC()
}

// adminKeys holds the keys against each other and against those of workloads: what
// a caller has must not operate the router.
func (k *checker) adminKeys() {
	taken := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(k.c.Workloads)) {
		for _, key := range k.c.Workloads[name].Keys {
			if sum, ok := sumOf(key.value); ok {
				taken[sum] = "a key of workload " + name
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.Admin.Keys)) {
		at := "admin.keys." + name + ".key"
		value := k.c.Admin.Keys[name].Key.value
		if value == "" {
			continue // reported
		}
		sum, ok := sumOf(value)
		switch {
		case !ok:
			k.error(at, "must be sha256: and 64 hex digits", "hourthree config hash-key makes it")
			continue
		case !strings.HasPrefix(value, "sha256:") && len(value) < shortKey:
			k.error(at, "is shorter than "+strconv.Itoa(shortKey)+" characters and can be guessed", "for instance: openssl rand -hex 24")
		case !strings.HasPrefix(value, "sha256:") && strings.ContainsFunc(value, unsendable):
			k.error(at, "has characters that a header cannot carry", "")
		}
		if other := taken[sum]; other != "" {
			k.error(at, "is "+other+" too", "whoever has one must not have the other: make another key")
			continue
		}
		taken[sum] = "the admin key of " + name
	}
}

func unsendable(r rune) bool { return r > '~' || r <= ' ' }

// sumOf is the SHA-256 of a key in hex, whichever way the key is given.
func sumOf(value string) (string, bool) {
	given, ok := strings.CutPrefix(value, "sha256:")
	if !ok {
		sum := sha256.Sum256([]byte(value))
		return hex.EncodeToString(sum[:]), value != ""
	}
	given = strings.ToLower(given)
	raw, err := hex.DecodeString(given)
	return given, err == nil && len(raw) == sha256.Size
}

func (k *checker) adminTLS() {
	t := k.c.Admin.TLS
	if t == nil {
		return
	}
	usable := true
	for _, f := range []struct{ at, path string }{{"cert", t.Cert}, {"key", t.Key}} {
		usable = usable && filepath.IsAbs(f.path)
		if f.path != "" && !filepath.IsAbs(f.path) { // none has been reported
			k.error("admin.tls."+f.at, "must be an absolute path", "")
		}
	}
	if !usable {
		return
	}
	if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
		k.error("admin.tls", "cannot be used: "+err.Error(), "cert and key must be files in PEM that belong together and that the router may read")
	}
}

func (k *checker) adminOIDC() {
	o := k.c.Admin.OIDC
	if o == nil {
		return
	}
	k.webAddress("admin.oidc.issuer", o.Issuer)
	if u := k.webAddress("admin.oidc.redirect_url", o.RedirectURL); u != nil && u.Path != "/oidc/callback" {
		k.error("admin.oidc.redirect_url", "must lead to /oidc/callback", "such as https://ops.example.com/oidc/callback")
	}
	if o.Roles.Operate == nil && o.Roles.View == nil && k.at["admin.oidc.roles"] != nil {
		k.error("admin.oidc.roles", "gives nobody a role", "name a claim and its values for operate or view")
	}
	for _, r := range []struct {
		at    string
		claim *AdminClaim
	}{{"operate", o.Roles.Operate}, {"view", o.Roles.View}} {
		if at := "admin.oidc.roles." + r.at + ".values"; r.claim != nil && len(r.claim.Values) == 0 && k.at[at] != nil {
			k.error(at, "is empty: nobody has the role by it", "name at least one value")
		}
	}
	if o.Roles.Operate == nil && len(k.c.Admin.Keys) == 0 && o.Roles.View != nil {
		k.warning("admin.oidc.roles", "lets nobody operate, and there is no key", "name who may, under operate")
	}
	if len(k.c.Admin.Keys) == 0 {
		k.warning("admin.oidc", "is the only way in, also for Prometheus and while the provider is down", "add keys to admin.keys")
	}
}

// webAddress checks an address that carries secrets; nil when there is none to look
// at any further.
func (k *checker) webAddress(at, text string) *url.URL {
	if text == "" {
		return nil // reported
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		k.error(at, "must be an address with a host, without user, query and fragment", "such as https://accounts.example.com")
	case u.Scheme == "https", u.Scheme == "http" && loopback(hostPort{host: u.Hostname()}):
		return u
	default:
		k.error(at, "must be https", "secrets go over it")
	}
	return nil
}
