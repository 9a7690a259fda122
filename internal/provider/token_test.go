package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// issuer is a token source that counts and can fail, or take its time.
type issuer struct {
	mu    sync.Mutex
	n     int
	life  time.Duration
	delay time.Duration
	err   error
}

func (i *issuer) Token(ctx context.Context) (Token, error) {
	i.mu.Lock()
	i.n++
	n, life, delay, err := i.n, i.life, i.delay, i.err
	i.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return Token{}, ctx.Err()
	}
	return Token{fmt.Sprintf("token-%d", n), time.Now().Add(life)}, err
}

func (i *issuer) set(delay time.Duration, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.delay, i.err = delay, err
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.n
}

func withEntra(t *testing.T, source TokenSource) *Provider {
	return mustNew(t, Spec{Type: Azure, BaseURL: "https://c.example", Auth: AuthEntra}, Deps{TokenSource: source})
}

func bearer(t *testing.T, p *Provider) string {
	t.Helper()
	r, err := p.Request(t.Context(), Call{Method: "GET", Path: "/models"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Get("Api-Key") != "" {
		t.Fatal("a key beside the token")
	}
	return r.Header.Get("Authorization")
}

// TestTokenKept: one token serves until shortly before its end, and calls
// that start together share one fetch.
func TestTokenKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &issuer{life: time.Hour, delay: time.Second}
		p := withEntra(t, source)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got := bearer(t, p); got != "Bearer token-1" {
					t.Error(got)
				}
			})
		}
		wg.Wait()
		time.Sleep(54 * time.Minute) // virtual
		if got := bearer(t, p); got != "Bearer token-1" || source.count() != 1 {
			t.Fatal(got, source.count())
		}
		time.Sleep(2 * time.Minute)
		if got := bearer(t, p); got != "Bearer token-2" || source.count() != 2 {
			t.Fatal(got, source.count())
		}
	})
}

// TestTokenSourceDown: a source that fails or hangs costs nobody a call while
// the old token is good, and each call is refused once it is not.
func TestTokenSourceDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &issuer{life: time.Hour}
		p := withEntra(t, source)
		bearer(t, p)
		source.set(time.Hour, nil)
		time.Sleep(56 * time.Minute) // virtual
		start := time.Now()
		if got := bearer(t, p); got != "Bearer token-1" || time.Since(start) > renewTimeout {
			t.Fatal(got, time.Since(start))
		}
		start = time.Now()
		if got := bearer(t, p); got != "Bearer token-1" || time.Since(start) != 0 || source.count() != 2 {
			t.Fatal("a source that just failed is asked again", got, source.count())
		}
		down := errors.New("identity endpoint is down")
		source.set(0, down)
		time.Sleep(10 * time.Minute)
		if _, err := p.Request(t.Context(), Call{Method: "GET", Path: "/models"}); !errors.Is(err, down) {
			t.Fatal(err)
		}
		source.set(0, nil)
		if got := bearer(t, p); got == "Bearer token-1" {
			t.Fatal(got)
		}
	})
}

// TestTokenWaitEnds: a caller that leaves does not wait for the source.
func TestTokenWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := withEntra(t, &issuer{life: time.Hour, delay: time.Minute})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				if _, err := p.Request(ctx, Call{Method: "GET", Path: "/models"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
					t.Error(err, time.Since(start))
				}
			})
		}
		wg.Wait()
	})
}

// TestRefresh: calls refused together share one renewal; a token that is
// refused again right after it is not worth another call.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &issuer{life: time.Hour, delay: 100 * time.Millisecond}
		p := withEntra(t, source)
		bearer(t, p)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := p.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := bearer(t, p); got != "Bearer token-2" || source.count() != 2 {
			t.Fatal(got, source.count())
		}
		time.Sleep(5 * time.Second) // virtual
		if err := p.Refresh(t.Context()); !errors.Is(err, errJustNow) || source.count() != 2 {
			t.Fatal(err, source.count())
		}
		time.Sleep(renewPause)
		if err := p.Refresh(t.Context()); err != nil || source.count() != 3 {
			t.Fatal(err, source.count())
		}
	})
	if err := mustNew(t, Spec{Type: OpenAI, APIKey: "k"}, Deps{}).Refresh(t.Context()); !errors.Is(err, ErrNoRefresh) {
		t.Error(err)
	}
}

// TestBadTokens: an empty or expired token is no token.
func TestBadTokens(t *testing.T) {
	for want, token := range map[error]Token{errNoToken: {"", time.Now().Add(time.Hour)}, errTokenStale: {"x", time.Now().Add(-time.Second)}} {
		p := withEntra(t, fixed(token))
		if _, err := p.Request(t.Context(), Call{Method: "GET", Path: "/models"}); !errors.Is(err, want) {
			t.Error(err, want)
		}
	}
	p := withEntra(t, fixed{"short", time.Now().Add(2 * time.Minute)})
	if got := bearer(t, p); got != "Bearer short" {
		t.Error(got)
	}
}

type fixed Token

func (f fixed) Token(context.Context) (Token, error) { return Token(f), nil }
