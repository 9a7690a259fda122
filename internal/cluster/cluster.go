// Package cluster reads the objects that an audit looks at from a Kubernetes
// cluster. It decides what may be asked of the API server and says what could
// not be read, and why; it never judges an object. It only ever sends GET
// requests for discovery and for the kinds it was opened with, never watches,
// never reads a Secret, and never speaks to another host than the kubeconfig's
// server. Commands that a kubeconfig names for credentials are run as it says.
package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hourthree/hourthree/internal/spelling"
)

// Resource is a kind of object and how the API server names it.
type Resource struct {
	Group, Version, Kind, Plural string
}

func (r Resource) String() string {
	if r.Group == "" {
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// Options say which cluster to read, what of it, and how much at most.
type Options struct {
	// Kubeconfig is a file; "" for what KUBECONFIG names, ~/.kube/config, or, in a
	// pod, the cluster that it runs in.
	Kubeconfig string
	Context    string     // "" for the current one
	Resources  []Resource // nothing else is ever read
	Namespaces []string   // to read; empty for all

	RequestTimeout time.Duration // of one request and its answer, default 30 s
	Timeout        time.Duration // of everything, default 2 minutes
	MaxPage        int64         // bytes of one answer, default 64 MiB
	MaxTotal       int64         // bytes of all answers, default 512 MiB
	MaxObjects     int           // default 100,000
	MaxWait        time.Duration // that is waited because the server says so, default 10 s
}

func (o *Options) setDefaults() {
	o.RequestTimeout = cmp.Or(o.RequestTimeout, 30*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.MaxPage, o.MaxTotal = cmp.Or(o.MaxPage, 64<<20), cmp.Or(o.MaxTotal, 512<<20)
	o.MaxObjects = cmp.Or(o.MaxObjects, 100_000)
	o.MaxWait = cmp.Or(o.MaxWait, 10*time.Second)
}

// Cluster is one cluster, as one context of a kubeconfig names it: that does not
// change while it is open. It is safe for concurrent use.
type Cluster struct {
	opts      Options
	context   string
	namespace string
	server    *url.URL
	client    *http.Client
	left      atomic.Int64 // bytes of all answers
}

var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Open prepares to read a cluster. It sends nothing.
func Open(opts Options) (*Cluster, error) {
	opts.setDefaults()
	for _, r := range opts.Resources {
		if r.Group == "" && r.Plural == "secrets" {
			return nil, errors.New("open cluster: secrets are never read")
		}
	}
	for _, n := range opts.Namespaces {
		if !namespaceName.MatchString(n) {
			return nil, fmt.Errorf("open cluster: %q is no name of a namespace; use small letters, digits and dashes", n)
		}
	}
	cfg, name, namespace, err := load(opts)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		// The error has the address, which may have a password.
		return nil, fmt.Errorf("open cluster: context %q names a server that is no address; write it as https://HOST:PORT", name)
	}
	c := &Cluster{opts: opts, context: name, namespace: cmp.Or(namespace, "default"), server: server}
	c.left.Store(opts.MaxTotal)
	cfg.UserAgent = "hourthree-audit"
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return newGuard(next, server, opts.Resources) })
	if c.client, err = rest.HTTPClientFor(cfg); err != nil {
		return nil, fmt.Errorf("open cluster: the credentials of context %q cannot be used: %w", name, err)
	}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// Close lets go of connections.
func (c *Cluster) Close() { c.client.CloseIdleConnections() }

// Context is the name of the kubeconfig's context, "in-cluster" in a pod.
func (c *Cluster) Context() string { return c.context }

// Namespace is the one of the context, "default" where it names none.
func (c *Cluster) Namespace() string { return c.namespace }

// Server is the address of the API server.
func (c *Cluster) Server() string { return c.server.String() }

// load finds the context in the kubeconfig.
func load(opts Options) (cfg *rest.Config, name, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = opts.Kubeconfig
	rules.WarnIfAllMissing = false
	raw, err := rules.Load()
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", "", fmt.Errorf("read kubeconfig %s: there is no such file; name one with --kubeconfig or KUBECONFIG", opts.Kubeconfig)
	}
	if err != nil {
		return nil, "", "", fmt.Errorf("read kubeconfig: %w; name another with --kubeconfig or KUBECONFIG", err)
	}
	if len(raw.Contexts) == 0 && opts.Kubeconfig == "" && opts.Context == "" {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, "", "", fmt.Errorf("find a cluster: there is no kubeconfig at %s; name one with --kubeconfig or KUBECONFIG",
				strings.Join(rules.GetLoadingPrecedence(), ", "))
		}
		own, _ := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		return cfg, "in-cluster", strings.TrimSpace(string(own)), nil
	}
	name = cmp.Or(opts.Context, raw.CurrentContext)
	if err := known(raw, name); err != nil {
		return nil, "", "", err
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
	cfg, err = clientcmd.NewNonInteractiveClientConfig(*raw, name, overrides, rules).ClientConfig()
	if err != nil {
		return nil, "", "", fmt.Errorf("read kubeconfig: context %q: %w", name, err)
	}
	return cfg, name, raw.Contexts[name].Namespace, nil
}

// known says that a context, and what it names, is there.
func known(raw *clientcmdapi.Config, name string) error {
	names := slices.Sorted(maps.Keys(raw.Contexts))
	list := strings.Join(names, ", ")
	if len(names) == 0 {
		return errors.New("read kubeconfig: it has no contexts; name another with --kubeconfig or KUBECONFIG")
	}
	if name == "" {
		return fmt.Errorf("read kubeconfig: it has no current context; choose one with --context: %s", list)
	}
	c := raw.Contexts[name]
	if c == nil {
		if n := nearest(name, names); n != "" {
			return fmt.Errorf("read kubeconfig: there is no context %q; %q is the nearest of: %s", name, n, list)
		}
		return fmt.Errorf("read kubeconfig: there is no context %q; there are: %s", name, list)
	}
	if raw.Clusters[c.Cluster] == nil {
		return fmt.Errorf("read kubeconfig: context %q names the cluster %q, which is not there", name, c.Cluster)
	}
	return nil
}

// nearest is the name that is closest or has the wrong one in it, "" when none is
// like it.
func nearest(wrong string, names []string) string {
	best := spelling.Nearest(wrong, names)
	if best == "" && len(wrong) > 2 {
		for _, n := range names {
			if strings.Contains(n, wrong) {
				return n
			}
		}
	}
	return best
}
