package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// What the router's own timers and checks end a call with.
var (
	ErrConnectTimeout      = errors.New("connect timed out")
	ErrHeadersTimeout      = errors.New("no response headers in time")
	ErrFirstContentTimeout = errors.New("no content in time")
	ErrIdleTimeout         = errors.New("the answer stood still")
	ErrTotalTimeout        = errors.New("the request's time is over")
	ErrClientGone          = errors.New("the client left")
	ErrRedispatched        = errors.New("the target opened while the call waited")
	ErrTruncated           = errors.New("the answer broke off")
	ErrEmpty               = errors.New("the answer is empty")
	ErrProtocol            = errors.New("the answer cannot be read")
	ErrDraining            = errors.New("the router is stopping")
	ErrOverload            = errors.New("the router has no room")
)

// Phase is how far a call had come.
type Phase uint8

// The phases.
const (
	PhaseConnect Phase = iota
	PhaseHeaders       // sent or being sent, no answer yet
	PhaseContent       // headers came, no content yet
	PhaseIdle          // content has come
)

// sentinels maps the router's own ends to verdicts.
var sentinels = []struct {
	err error
	v   Verdict
}{
	{ErrConnectTimeout, wide(outage("connect", false))},
	{ErrHeadersTimeout, outage("headers_timeout", false)},
	{ErrFirstContentTimeout, outage("first_content_timeout", false)},
	{ErrIdleTimeout, outage("idle_timeout", false)},
	{ErrRedispatched, outage("redispatched", false)},
	{ErrTruncated, outage("truncated", false)},
	{ErrEmpty, outage("empty", true)},
	{ErrProtocol, outage("protocol", false)},
	{ErrTotalTimeout, Verdict{Class: Deadline, Scope: ScopeRequest, Reason: "total_timeout"}},
	{ErrClientGone, Verdict{Class: Canceled, Scope: ScopeRequest, Reason: "client_gone"}},
	{ErrDraining, Verdict{Class: Overload, Scope: ScopeRequest, Reason: "draining"}},
	{ErrOverload, Verdict{Class: Overload, Scope: ScopeRequest, Reason: "overload"}},
}

func outage(reason string, again bool) Verdict {
	return Verdict{Class: Outage, Scope: ScopeTarget, Reason: reason, Breaker: true, Again: again, Elsewhere: true}
}

// wide says that the network, and so the whole region, may be gone.
func wide(v Verdict) Verdict {
	v.Scope = ScopeRegion
	return v
}

// Transport judges an error of the transport or of a read. A name that does
// not resolve and a failed TLS handshake count as outages, though a mistake in
// the configuration looks the same: in public incidents both were the outage
// itself, and the next target can answer. Their reason is "connect", as for
// every call that ends before anything of the request was sent. A stream
// refused by the upstream's graceful goodbye is no evidence against it.
func Transport(err error, phase Phase) Verdict {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.v
		}
	}
	switch {
	case err == nil:
		return outage("protocol", false)
	case errors.Is(err, context.Canceled):
		return Transport(ErrClientGone, phase)
	case errors.Is(err, context.DeadlineExceeded) && !isNet(err):
		return Transport(ErrTotalTimeout, phase)
	}
	if v, ok := unconnected(err); ok {
		return v
	}
	switch text := err.Error(); {
	case strings.Contains(text, "GOAWAY"), strings.Contains(text, "REFUSED_STREAM"):
		v := outage("goaway", true)
		v.Breaker = false
		return v
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "response headers exceeded"):
		return outage("protocol", false)
	case phase >= PhaseContent && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return outage("truncated", false)
	case isTimeout(err):
		return outage(lateReasons[min(phase, PhaseIdle)], false)
	}
	return outage("reset", phase < PhaseContent)
}

// lateReasons name a timeout of the transport itself by how far the call was.
var lateReasons = [...]string{PhaseConnect: "connect", PhaseHeaders: "headers_timeout", PhaseContent: "first_content_timeout", PhaseIdle: "idle_timeout"}

// unconnected judges the errors after which surely nothing was sent.
func unconnected(err error) (Verdict, bool) {
	var (
		dns  *net.DNSError
		op   *net.OpError
		rec  tls.RecordHeaderError
		host x509.HostnameError
		ca   x509.UnknownAuthorityError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return outage("connect", false), true
	case errors.As(err, &dns):
		return wide(outage("connect", true)), true
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return wide(outage("connect", false)), true
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, syscall.ECONNREFUSED):
		return outage("connect", true), true
	case errors.As(err, &rec), errors.As(err, &host), errors.As(err, &ca), errors.As(err, &cert),
		strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "TLS handshake"), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return outage("connect", false), true
	}
	return Verdict{}, false
}

func isTimeout(err error) bool {
	var late net.Error
	return errors.As(err, &late) && late.Timeout()
}

// isNet reports whether an error comes from a socket: those wrap the same
// sentinel when a connection's deadline passes.
func isNet(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}
