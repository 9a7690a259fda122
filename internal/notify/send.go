package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAnswer bounds what is read of an answer, its head and its body each, in
	// bytes.
	maxAnswer = 64 << 10
	// maxReason bounds what is logged of an error.
	maxReason = 300
)

// dialer is how the system's network is reached; nil for the standard way.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// newClient makes the connections of one webhook. A redirect is not followed: the
// headers and the message are for the configured address alone.
func newClient(dial dialer) *http.Client {
	t := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer, DisableCompression: true, DialContext: dial,
	}
	if dial == nil {
		t.DialContext, t.Proxy = (&net.Dialer{Timeout: 10 * time.Second}).DialContext, http.ProxyFromEnvironment
	}
	return &http.Client{
		Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is what became of one try.
type answer struct {
	Outcome
	Status string // of the answer, "" where there was none
	Reason string // why it was not delivered; it has no secret
}

// post makes one try.
func post(ctx context.Context, client *http.Client, s *Settings, m *Message, o *Options) answer {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	text, err := body(s.Format, m, about{Router: s.Router, Version: o.Version, Dashboard: s.Dashboard, Labels: s.Labels}, time.Now())
	if err != nil {
		return answer{Reason: "the message cannot be written: " + err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address(), bytes.NewReader(text))
	if err != nil {
		return answer{Reason: s.harmless(err)}
	}
	for k, v := range s.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "hourthree/"+o.Version)
	req.Header.Set("Hourthree-Delivery", m.ID)
	resp, err := client.Do(req)
	if err != nil {
		return answer{Outcome: Outcome{Again: true}, Reason: s.harmless(err)}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // it says nothing that counts; read, the connection can be used again
	return judge(resp, time.Now())
}

// judge is what an answer means.
func judge(resp *http.Response, now time.Time) answer {
	a := answer{Status: strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		a.Delivered = true
		return a
	case code >= 300 && code < 400:
		a.Reason = "answers " + a.Status + ", and redirects are not followed"
		return a
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		a.Again, a.After = true, retryAfter(resp.Header.Get("Retry-After"), now)
	}
	a.Reason = "answers " + a.Status
	return a
}

// retryAfter reads seconds or a date; 0 for what is neither or past.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		return time.Duration(min(max(n, 0), int(longestAsked/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longestAsked)
	}
	return 0
}

// address is where a message goes.
func (s *Settings) address() string {
	if s.Format != Alertmanager {
		return s.URL
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return s.URL // reported by the request
	}
	if p := strings.TrimRight(u.Path, "/"); !strings.HasSuffix(p, alertPath) {
		u.Path = p + alertPath
	}
	return u.String()
}

// harmless is an error without the address and the headers, which may be secrets.
func (s *Settings) harmless(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %s", s.Timeout)
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	text := err.Error()
	for _, secret := range s.secrets() {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return clean(text, maxReason)
}

// secrets are what no text may have, the longest first.
func (s *Settings) secrets() []string {
	list := []string{s.URL, s.address()}
	if u, err := url.Parse(s.URL); err == nil {
		list = append(list, u.RequestURI(), u.Path, u.EscapedPath(), u.RawQuery)
	}
	for _, v := range s.Headers {
		list = append(list, v)
		if _, token, ok := strings.Cut(v, " "); ok { // of a scheme and a token
			list = append(list, strings.TrimSpace(token))
		}
	}
	list = slices.DeleteFunc(list, func(v string) bool { return len(v) < 4 })
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}
