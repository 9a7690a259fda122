package provider

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Settings of the upstream connections.
const (
	// idlePerHost bounds kept connections. Below the number of calls in
	// flight every burst would pay for new handshakes.
	idlePerHost = 256
	idleTimeout = 90 * time.Second
	// maxHead bounds an answer's header in bytes.
	maxHead = 64 << 10
	// Buffers of a connection in bytes: a stream is read in small pieces, and
	// a small request leaves in one write.
	readBuffer  = 4 << 10
	writeBuffer = 8 << 10
	keepAlive   = 15 * time.Second
	sessions    = 64
)

// newTransport is the provider's own. HTTP/1.1: HTTP/2 costs about twice the
// CPU a request here, and puts many streams behind one congestion window.
func newTransport(spec Spec, deps Deps) *http.Transport {
	d := &dialer{timeout: spec.ConnectTimeout, dial: deps.Dial}
	if d.dial == nil {
		d.dial = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	}
	d.tls = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: deps.RootCAs, NextProtos: []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
	}
	t := &http.Transport{
		DialContext: d.plain, DialTLSContext: d.secure, TLSClientConfig: d.tls, TLSHandshakeTimeout: spec.ConnectTimeout,
		Protocols:           new(http.Protocols),
		MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
		DisableCompression: true, MaxResponseHeaderBytes: maxHead,
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer,
	}
	t.Protocols.SetHTTP1(true)
	if deps.Dial == nil {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

// dialer connects within one limit for name, connect and TLS together.
type dialer struct {
	timeout time.Duration
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	tls     *tls.Config
}

func (d *dialer) plain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	return d.dial(ctx, network, addr)
}

func (d *dialer) secure(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	raw, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
		config.ServerName = addr
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // the handshake's error says it all
		if ctx.Err() == nil {
			err = fmt.Errorf("tls handshake: %w", err)
		}
		return nil, &net.OpError{Op: "dial", Net: network, Addr: raw.RemoteAddr(), Err: err}
	}
	return conn, nil
}
