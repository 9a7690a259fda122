package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxTries    = 3
	maxStatus   = 64 << 10 // bytes of an error answer
	aggregated  = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	plainAccept = "application/json"
)

var (
	errPage  = errors.New("the answer is larger than one answer may be")
	errTotal = errors.New("the answers together are larger than allowed")
)

// statusError is an answer that is not a success.
type statusError struct {
	code    int
	message string
	wait    time.Duration // that the server asks for
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answered %d", e.code)
	if s := http.StatusText(e.code); s != "" {
		text += " " + s
	}
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

// passing says that the same request may be answered a little later.
func (e *statusError) passing() bool {
	return e.code == http.StatusTooManyRequests || e.code >= 500 && e.code != http.StatusNotImplemented
}

// get asks for a path and hands the answer to read. It repeats what was refused
// for the moment, a few times; what was read in part it does not repeat.
func (c *Cluster) get(ctx context.Context, path string, query url.Values, accept string, read func(io.Reader) error) error {
	for try := 1; ; try++ {
		err := c.once(ctx, path, query, accept, read)
		var status *statusError
		if err == nil || try == maxTries || !errors.As(err, &status) || !status.passing() {
			return err
		}
		wait := max(status.wait, time.Duration(try)*200*time.Millisecond)
		if wait > c.opts.MaxWait {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

func (c *Cluster) once(ctx context.Context, path string, query url.Values, accept string, read func(io.Reader) error) error {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, c.opts.RequestTimeout)
	defer cancel()
	u := *c.server
	u.Path = joinPath(u.Path, path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", path, err)
	}
	req.Header.Set("Accept", accept)
	resp, err := c.send(outer, req)
	var wrapped *url.Error
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the server closed the connection without an answer: %w", io.ErrUnexpectedEOF)
	case errors.As(err, &wrapped):
		return wrapped.Err // the address stands where the error is told
	case err != nil:
		return err
	}
	defer resp.Body.Close()
	body := &bounded{from: resp.Body, page: c.opts.MaxPage, c: c}
	if resp.StatusCode != http.StatusOK {
		return failed(resp, body)
	}
	err = read(body)
	if body.err != nil && !errors.Is(body.err, io.ErrUnexpectedEOF) { // what the decoder makes of it says less
		return body.err
	}
	return err
}

// errCredentials is a command for credentials that does not end.
var errCredentials = errors.New("there was no answer in time, and what was waited for is not the server")

// send sends a request. A command that a kubeconfig names for credentials runs
// inside of it and knows of no context: when everything has taken too long, it
// is not waited for.
func (c *Cluster) send(ctx context.Context, req *http.Request) (*http.Response, error) {
	type answer struct {
		resp *http.Response
		err  error
	}
	came := make(chan answer, 1)
	go func() {
		resp, err := c.client.Do(req)
		came <- answer{resp, err}
	}()
	select {
	case a := <-came:
		return a.resp, a.err
	case <-ctx.Done():
	}
	select { // what heeds a context ends now
	case a := <-came:
		return a.resp, a.err
	case <-time.After(time.Second):
	}
	go func() {
		if a := <-came; a.err == nil {
			a.resp.Body.Close()
		}
	}()
	return nil, errors.Join(ctx.Err(), errCredentials)
}

func joinPath(base, path string) string {
	for len(base) > 0 && base[len(base)-1] == '/' {
		base = base[:len(base)-1]
	}
	return base + path
}

// failed reads what the server says about a refusal.
func failed(resp *http.Response, body io.Reader) error {
	e := &statusError{code: resp.StatusCode}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		e.message = "it leads elsewhere, which is not followed; name the API server itself in the kubeconfig"
		return e
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s >= 0 {
		e.wait = time.Duration(min(s, 3600)) * time.Second
	}
	text, _ := io.ReadAll(io.LimitReader(body, maxStatus))
	var status struct{ Message string }
	if json.Unmarshal(text, &status) == nil && len(status.Message) < 500 {
		e.message = status.Message
	}
	return e
}

// bounded ends an answer that is larger than one answer, or all together, may be.
type bounded struct {
	from io.Reader
	page int64
	c    *Cluster
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(p)
	b.page -= int64(n)
	total := b.c.left.Add(-int64(n))
	switch {
	case b.page < 0:
		b.err = errPage
	case total < 0:
		b.err = errTotal
	case err != nil && !errors.Is(err, io.EOF):
		b.err = err
	default:
		return n, err
	}
	return 0, b.err
}
