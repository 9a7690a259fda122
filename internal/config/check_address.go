package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// CheckListeners checks the two addresses and who may reach them. It is for
// configurations whose addresses were replaced after loading; Load has done
// it for its own. The error is Problems.
func (c *Config) CheckListeners() error {
	k := &checker{decoder: &decoder{file: "listeners"}, c: c}
	k.listeners()
	if k.problems.Fatal() {
		return k.problems
	}
	return nil
}

func (k *checker) listeners() {
	client, ok := k.address("listen", k.c.Listen)
	if ok && len(k.c.Workloads) == 0 && !loopback(client) {
		k.error("listen", "is not a loopback address, and no workload has a key: anybody could spend yours", "configure workloads, or listen on 127.0.0.1")
	}
	operator, okToo := k.address("admin.listen", k.c.Admin.Listen)
	switch a := k.c.Admin; {
	case !okToo || loopback(operator):
	case !a.Guarded():
		k.error("admin.listen", "must be a loopback address: without admin.keys and admin.oidc anybody could operate the router", "configure admin.keys, or use 127.0.0.1")
	case a.TLS == nil:
		k.warning("admin.listen", "is reached without encryption: keys and sessions can be read on the way", "set admin.tls, unless the network or a proxy in front encrypts")
	}
	if ok && okToo && client.port != 0 && client.port == operator.port && overlap(client.host, operator.host) {
		k.error("admin.listen", "is the same address as listen", "use another port")
	}
}

type hostPort struct {
	host string
	port int
}

func (k *checker) address(path, addr string) (hostPort, bool) {
	host, port, err := net.SplitHostPort(addr)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || n < 0 || n > 65535 {
		k.error(path, "must be a host and a port such as 127.0.0.1:8080", "")
		return hostPort{}, false
	}
	return hostPort{host, n}, true
}

func loopback(a hostPort) bool { return a.host == "localhost" || loopbackIP(a.host) }

func loopbackIP(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// overlap reports whether listening on both hosts with one port collides.
func overlap(a, b string) bool {
	all := func(h string) bool { return h == "" || h == "0.0.0.0" || h == "::" }
	same := a == b || loopback(hostPort{host: a}) && loopback(hostPort{host: b}) && (a == "localhost" || b == "localhost")
	return same || all(a) || all(b)
}

var (
	apiVersion  = regexp.MustCompile(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}(-[a-z0-9.-]+)?$`)
	headerName  = regexp.MustCompile("^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")
	notSettable = []string{
		"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
		"transfer-encoding", "upgrade", "http2-settings", "host", "content-length", "accept-encoding",
	}
)

// usable are the settings that mean something for each type; a setting that
// would be ignored is refused.
var usable = map[string][]string{
	"openai":            {"base_url", "api_key", "vendor", "headers"},
	"azure":             {"base_url", "api_key", "auth", "entra_scope", "api_version", "headers"},
	"openai-compatible": {"base_url", "api_key", "vendor", "headers"},
	"simulated":         {"simulated"},
}

func (k *checker) provider(name string, p Provider) {
	path := "providers." + name
	if strings.Contains(name, "/") {
		k.error(path, "a provider's name must not hold a /", "target names are provider/model")
	}
	mine, known := usable[p.Type]
	for _, setting := range []string{"base_url", "api_key", "auth", "entra_scope", "api_version", "vendor", "headers", "simulated"} {
		if known && k.at[path+"."+setting] != nil && !slices.Contains(mine, setting) {
			k.error(path+"."+setting, "means nothing for type "+p.Type, "remove it")
		}
	}
	k.credential(path, p)
	k.baseURL(path, p)
	if p.APIVersion != "" && p.Type == "azure" && !apiVersion.MatchString(p.APIVersion) {
		k.error(path+".api_version", "must be a date such as 2024-10-21", "leave it out for the undated API at /openai/v1")
	}
	for header := range p.Headers {
		if !headerName.MatchString(header) || slices.Contains(notSettable, strings.ToLower(header)) {
			k.error(path+".headers."+header, "is not a header that can be set", "")
		}
	}
}

func (k *checker) credential(path string, p Provider) {
	_, given := k.at[path+".api_key"] // a bad one has been reported
	switch {
	case p.Auth == "entra" && given:
		k.error(path+".api_key", "means nothing with auth: entra", "remove one of them")
	case p.Auth != "entra" && k.at[path+".entra_scope"] != nil && p.Type == "azure":
		k.error(path+".entra_scope", "means nothing without auth: entra", "")
	case !given && p.Type == "openai":
		k.error(path, "api_key is missing", "write it as ${NAME}")
	case !given && p.Type == "azure" && p.Auth != "entra":
		k.error(path, "api_key is missing", "write it as ${NAME}, or set auth: entra")
	}
	for _, r := range p.APIKey.value {
		if r > '~' || r == ' ' {
			k.error(path+".api_key", "has characters that a header cannot carry", "")
			break
		}
	}
}

func (k *checker) baseURL(path string, p Provider) {
	at := path + ".base_url"
	if k.at[at] == nil {
		switch p.Type {
		case "azure":
			k.error(path, "base_url is missing", "the resource's address, such as https://name.openai.azure.com")
		case "openai-compatible":
			k.error(path, "base_url is missing", "the address up to and including the version, such as http://127.0.0.1:8000/v1")
		}
		return
	}
	if p.BaseURL == "" {
		return // reported
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		k.error(at, "must be an http or https address with a host", "")
		return
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		k.error(at, "must have no user, query or fragment", "the key belongs in api_key, Azure's version in api_version")
	}
	for _, end := range []string{"/chat/completions", "/completions", "/responses", "/embeddings", "/deployments"} {
		if strings.HasSuffix(strings.TrimRight(u.Path, "/"), end) || p.Type == "azure" && strings.Contains(u.Path, end+"/") {
			k.error(at, "is the address of one call, not of the API", "leave out the path from "+end[1:]+" on")
			break
		}
	}
	if u.Scheme == "http" && p.APIKey.value != "" && !near(u.Hostname()) {
		k.warning(at, "sends the key over a connection without encryption", "use https")
	}
	if k.ourselves(u) {
		k.error(at, "is the router's own address", "requests would run in a circle")
	}
}

// near reports a host that is this machine or in a private network.
func near(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".svc")
	}
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}

func (k *checker) ourselves(u *url.URL) bool {
	host, port, err := net.SplitHostPort(k.c.Listen)
	if err != nil || u.Port() != port || u.Scheme != "http" {
		return false
	}
	return u.Hostname() == host || loopback(hostPort{host: u.Hostname()}) && (loopback(hostPort{host: host}) || host == "" || host == "0.0.0.0" || host == "::")
}
