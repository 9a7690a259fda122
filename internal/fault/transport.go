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
	{ErrConnectTimeout, outage("connect", false)},
	{ErrHeadersTimeout, outage("headers_timeout", false)},
	{ErrFirstContentTimeout, outage("first_content_timeout", false)},
	{ErrIdleTimeout, outage("idle_timeout", false)},
	{ErrRedispatched, outage("redispatched", false)},
	{ErrTruncated, outage("truncated", false)},
	{ErrEmpty, outage("empty", true)},
	{ErrProtocol, outage("protocol", false)},
	{ErrTotalTimeout, Verdict{Class: Deadline, Scope: ScopeRequest, Reason: "total_timeout"}},
	{ErrClientGone, Verdict{Class: Canceled, Scope: ScopeRequest, Reason: "client_gone"}},
	{ErrOverload, Verdict{Class: Overload, Scope: ScopeRequest, Reason: "overload"}},
}

func outage(reason string, again bool) Verdict {
	return Verdict{Class: Outage, Scope: ScopeTarget, Reason: reason, Breaker: true, Again: again, Elsewhere: true}
}

// Transport judges an error of the transport or of a read. A name that does
// not resolve and a failed TLS handshake count as outages: both were seen to
// be the outage itself, and the next target can answer. A stream refused by
// the upstream's graceful goodbye is no evidence against it.
func Transport(err error, phase Phase) Verdict {
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.v
		}
	}
	var (
		dns  *net.DNSError
		op   *net.OpError
		rec  tls.RecordHeaderError
		host x509.HostnameError
		ca   x509.UnknownAuthorityError
		cert *tls.CertificateVerificationError
		late net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return Transport(ErrClientGone, phase)
	case errors.As(err, &dns):
		return outage("connect", true)
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, syscall.ECONNREFUSED):
		return outage("connect", true)
	case errors.As(err, &rec), errors.As(err, &host), errors.As(err, &ca), errors.As(err, &cert), strings.Contains(err.Error(), "tls: "):
		return outage("connect", false)
	case strings.Contains(err.Error(), "GOAWAY"), strings.Contains(err.Error(), "REFUSED_STREAM"):
		v := outage("goaway", true)
		v.Breaker = false
		return v
	case phase >= PhaseContent && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return outage("truncated", false)
	case errors.As(err, &late) && late.Timeout():
		return outage("connect", false)
	}
	return outage("reset", phase < PhaseContent)
}
