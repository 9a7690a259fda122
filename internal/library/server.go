package library

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/hourthree/hourthree/internal/local"
)

// Bounds of a server of its own.
const (
	maxConns    = 200
	maxHeader   = 16 << 10
	headerLimit = 5 * time.Second
	readLimit   = 10 * time.Second
	writeLimit  = 30 * time.Second
	idleLimit   = 2 * time.Minute
	endLimit    = 10 * time.Second
	// LeastKey is how long a key has to be.
	LeastKey = 16
)

// ServerOptions are a server that serves nothing else.
type ServerOptions struct {
	Listen  string
	Key     string // asked of every request; without one only loopback is served
	Handler http.Handler
	// Preflights says that Handler answers what a browser asks before a request to
	// another origin. It sends no key with that; there is nothing of the library in
	// the answer.
	Preflights bool
	// Ready is told the address once requests are taken. It may be nil.
	Ready func(net.Addr)
}

// Validate says what cannot be served, and what to do.
func (o ServerOptions) Validate() error {
	host, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("listen address %q: %w; write it as 127.0.0.1:8082", o.Listen, err)
	case o.Key == "" && !local.Host(host):
		return fmt.Errorf("listen address %s is not a loopback address, and no key is asked for: anybody could read the records of your own; give a key, or listen on 127.0.0.1", o.Listen)
	case o.Key != "" && len(o.Key) < LeastKey:
		return fmt.Errorf("the key has %d characters, less than %d; write a longer one", len(o.Key), LeastKey)
	}
	return nil
}

// Serve serves until ctx ends, then lets running requests end.
func Serve(ctx context.Context, o ServerOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address", o.Listen, err)
	}
	s := &http.Server{
		Handler: o.guard(), ReadHeaderTimeout: headerLimit, ReadTimeout: readLimit, WriteTimeout: writeLimit, IdleTimeout: idleLimit,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0), // it is mostly about clients
	}
	if o.Ready != nil {
		o.Ready(l.Addr())
	}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		ended <- s.Shutdown(last)
	}()
	if err := s.Serve(netutil.LimitListener(l, maxConns)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", o.Listen, err)
	}
	return <-ended
}

// guard lets in who may read: with the key where there is one; else who names
// this machine, which a site with a rebound name does not.
func (o ServerOptions) guard() http.Handler {
	want := sha256.Sum256([]byte(o.Key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case o.Key == "" && !local.Host(r.Host):
			refuse(w, r, http.StatusForbidden, Problem{"forbidden", "this listener answers to a loopback address only", []string{}})
		case o.Key != "" && !keyed(r, want) && !(o.Preflights && preflight(r)):
			w.Header().Set("WWW-Authenticate", `Basic realm="hourthree", charset="UTF-8"`)
			refuse(w, r, http.StatusUnauthorized, Problem{"unauthorized", "send the key as Authorization: Bearer, as x-api-key, or as the password of any name", []string{}})
		default:
			o.Handler.ServeHTTP(w, r)
		}
	})
}

// preflight reports whether a browser asks what it may ask.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// refuse says no, and lets nobody keep it.
func refuse(w http.ResponseWriter, r *http.Request, status int, p Problem) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	send(w, r, status, asJSON(status, p))
}

// keyed reports whether a request has the key.
func keyed(r *http.Request, want [sha256.Size]byte) bool {
	key := r.Header.Get("x-api-key")
	if _, password, ok := r.BasicAuth(); ok {
		key = password
	} else if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		key = strings.TrimSpace(token)
	}
	got := sha256.Sum256([]byte(key))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
