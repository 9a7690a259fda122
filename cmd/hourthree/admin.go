package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	// defaultAdmin is where an operator's listener is unless it was moved.
	defaultAdmin = "http://127.0.0.1:8081"
	// adminKeyVariable holds the operator's key, which no command line does: that
	// is in the shell's history and in the list of processes.
	adminKeyVariable = "HOURTHREE_ADMIN_KEY"
	// adminTimeout bounds one request to a router.
	adminTimeout = 10 * time.Second
	// maxReport bounds what is read of a router's answer.
	maxReport = 16 << 20
	// maxCA bounds a file of certificates.
	maxCA = 1 << 20
)

// errNotServed is what is wrong with a path that a router does not have.
var errNotServed = errors.New("answers 404 Not Found")

// operatorListener is how a command reaches the operator's listener of a running
// router, from its flags and the environment.
type operatorListener struct {
	address string
	keyFile string
	ca      string
}

// flags adds the flags that say which router, and with which credential.
func (o *operatorListener) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.address, "admin", defaultAdmin, "`address` of the router's operator listener")
	c.Flags().StringVar(&o.keyFile, "admin-key-file", "", "`file` with the operator's key, where $"+adminKeyVariable+" does not hold it")
	c.Flags().StringVar(&o.ca, "admin-ca", "", "`file` with the certificates (PEM) that the operator listener's own is checked with")
}

// base is the address as it was meant.
func (o *operatorListener) base() string {
	a := o.address
	if !strings.Contains(a, "://") {
		a = "http://" + a
	}
	return strings.TrimSuffix(a, "/")
}

// get reads what a running router tells.
func (o *operatorListener) get(ctx context.Context, path string) ([]byte, error) {
	return o.ask(ctx, http.MethodGet, path, nil)
}

// into reads what a running router tells into v.
func (o *operatorListener) into(ctx context.Context, path string, v any) error {
	text, err := o.get(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return exit{exitRun, fmt.Errorf("read the answer of %s: %w; is it the operator's listener of a router of this version?", o.base(), err)}
	}
	return nil
}

// send gives a running router an order, and returns what it says to it.
func (o *operatorListener) send(ctx context.Context, method, path string, order any) ([]byte, error) {
	body, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	return o.ask(ctx, method, path, body)
}

// ask makes one request. An answer that is no success is an error, in the
// router's words where it has any.
func (o *operatorListener) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, o.base()+path, bytes.NewReader(body))
	if err != nil || req.URL.Host == "" {
		return nil, fmt.Errorf("--admin %s is no address such as %s", o.address, defaultAdmin)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	if err := o.authorize(req); err != nil {
		return nil, err
	}
	resp, err := o.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxReport+1))
	switch {
	case err != nil:
		return nil, exit{exitRun, fmt.Errorf("read the answer of %s: %w", o.base(), err)}
	case len(text) > maxReport:
		return nil, exit{exitRun, fmt.Errorf("the answer of %s is larger than %d MiB: is it the operator's listener of a router?", o.base(), maxReport>>20)}
	case resp.StatusCode >= 300:
		return nil, exit{exitRun, o.refused(resp, text)}
	}
	return text, nil
}

// do sends a request, and follows no redirect: the key is for this address.
func (o *operatorListener) do(req *http.Request) (*http.Response, error) {
	transport := &http.Transport{Proxy: proxyFor, DisableKeepAlives: true, TLSHandshakeTimeout: adminTimeout}
	if o.ca != "" {
		pool, err := certificates(o.ca)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err == nil {
		return resp, nil
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return nil, exit{exitRun, fmt.Errorf("%s shows a certificate that nobody vouches for: %w; --admin-ca names the certificate of who does", o.base(), err)}
	}
	return nil, exit{exitRun, fmt.Errorf("no router answers at %s: %w; --admin names another address", o.base(), err)}
}

// proxyFor is the proxy that the environment names. What is not encrypted goes to none:
// it would read the key, and may be anywhere.
func proxyFor(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// authorize puts the operator's key on a request, where there is one.
func (o *operatorListener) authorize(req *http.Request) error {
	key := strings.TrimSpace(os.Getenv(adminKeyVariable))
	if o.keyFile != "" {
		var err error
		if key, err = readKey(o.keyFile); err != nil {
			return err
		}
	}
	if key == "" {
		return nil
	}
	if req.URL.Scheme != "https" && !nearby(req.URL.Hostname()) {
		return fmt.Errorf("the operator's key is not sent to %s without encryption; use https, or a tunnel to an address of this machine", o.base())
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("$%s holds characters that no key has", adminKeyVariable)
		}
	}
	req.Header.Set("Authorization", "Bearer "+key)
	return nil
}

// nearby reports a host that is this machine or within a private network.
func nearby(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".local")
}

// refused explains an answer that is no success.
func (o *operatorListener) refused(resp *http.Response, text []byte) error {
	var problem struct {
		Error string `json:"error"`
	}
	known := json.Unmarshal(text, &problem) == nil && problem.Error != ""
	switch {
	case resp.StatusCode == http.StatusUnauthorized && resp.Request.Header.Get("Authorization") == "":
		return fmt.Errorf("%s asks who you are: put your operator's key into $%s, or name its file with --admin-key-file", o.base(), adminKeyVariable)
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s does not know this key: it has to be one of admin.keys in the router's configuration, not a workload's", o.base())
	case resp.StatusCode == http.StatusForbidden && known:
		return fmt.Errorf("%s: %s", o.base(), problem.Error)
	case known:
		return errors.New(problem.Error)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %w: is it the operator's listener of a router?", o.base(), errNotServed)
	}
	return fmt.Errorf("%s answers %s: is it the operator's listener of a router?", o.base(), resp.Status)
}

// certificates reads who may vouch for a server.
func certificates(path string) (*x509.CertPool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--admin-ca: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCA))
	if err != nil {
		return nil, fmt.Errorf("--admin-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--admin-ca: %s holds no certificate in PEM", path)
	}
	return pool, nil
}

func whoamiCommand() *cobra.Command {
	var router operatorListener
	var asJSON bool
	c := &cobra.Command{
		Use: "whoami", Short: "Say who you are to a running router, and what you may do", Args: cobra.NoArgs,
		Long: "Say who you are to the operator's listener of a running router, and what you may\n" +
			"do there: view, or operate, which is view and changes.\n\n" +
			"The key is read from $" + adminKeyVariable + " or from --admin-key-file.\n\n" +
			"Exit 3: no router answers, or it does not know you.",
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := router.get(c.Context(), "/api/v1/whoami")
			if err != nil {
				return err
			}
			if asJSON {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			var who struct{ Name, Role, Via string }
			if err := json.Unmarshal(text, &who); err != nil || who.Role == "" {
				return exit{exitRun, fmt.Errorf("%s does not say who you are; is it the operator's listener of a router of this version?", router.base())}
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s, who may %s (%s)\n", harmless(who.Name), harmless(who.Role), harmless(who.Via))
			return err
		},
	}
	router.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// pathTo is a path with what a user named in it: pathTo("/api/v1/workloads/%s/quarantine", name).
func pathTo(format string, names ...string) string {
	escaped := make([]any, len(names))
	for i, n := range names {
		escaped[i] = url.PathEscape(n)
	}
	return fmt.Sprintf(format, escaped...)
}
