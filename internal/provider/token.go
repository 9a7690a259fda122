package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Token is a credential that expires.
type Token struct {
	Value   string // secret
	Expires time.Time
}

// TokenSource gets a new token. It is called by one goroutine at a time.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

const (
	// renewBefore is how long before its end a token is renewed; a shorter
	// lived one is renewed after three quarters of its life. Entra tokens
	// live 60 to 90 minutes.
	renewBefore = 5 * time.Minute
	// renewTimeout bounds an early renewal: the old token still works.
	renewTimeout = 3 * time.Second
	// renewPause is the least time between early renewals that failed, and
	// between renewals that a refused token asked for.
	renewPause = 30 * time.Second
	// renewJoin is how long after a renewal a refused call is taken to have
	// used the token before it.
	renewJoin = time.Second
)

var (
	errNoToken    = errors.New("token source gave no token")
	errJustNow    = errors.New("token was renewed just now")
	errTokenStale = errors.New("token source gave an expired token")
)

// tokens keeps the token of one provider. Whoever finds it due renews it,
// while the others go on with the one that is still good.
type tokens struct {
	source TokenSource
	turn   chan struct{} // held while asking the source

	mu      sync.Mutex
	token   Token
	due     time.Time // renew from here on
	renewed time.Time // when a refused token was last replaced
}

func newTokens(source TokenSource) *tokens {
	return &tokens{source: source, turn: make(chan struct{}, 1)}
}

func (t *tokens) read(now time.Time) (value string, good, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token.Value, t.token.Value != "" && now.Before(t.token.Expires), !now.Before(t.due)
}

// get returns a token that is good now.
func (t *tokens) get(ctx context.Context) (string, error) {
	value, good, due := t.read(time.Now())
	switch {
	case good && !due:
		return value, nil
	case good:
		return t.early(ctx, value), nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if value, good, _ = t.read(time.Now()); good {
		return value, nil
	}
	return t.fetch(ctx)
}

// early renews a token that still works, unless somebody is at it.
func (t *tokens) early(ctx context.Context, old string) string {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	default:
		return old
	}
	if value, good, due := t.read(time.Now()); good && !due {
		return value
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	value, err := t.fetch(ctx)
	if err != nil {
		t.mu.Lock()
		t.due = time.Now().Add(renewPause)
		t.mu.Unlock()
		return old
	}
	return value
}

// fetch asks the source. The caller holds the turn.
func (t *tokens) fetch(ctx context.Context) (string, error) {
	token, err := t.source.Token(ctx)
	now := time.Now()
	switch {
	case err != nil:
		return "", fmt.Errorf("get token: %w", err)
	case token.Value == "":
		return "", errNoToken
	case !now.Before(token.Expires):
		return "", errTokenStale
	}
	life := token.Expires.Sub(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token, t.due = token, now.Add(max(life-renewBefore, life*3/4))
	if life > 4*renewBefore {
		t.due = token.Expires.Add(-renewBefore)
	}
	return token.Value, nil
}

// renew replaces a token that was refused. Calls refused together share one
// renewal; a token refused again right after it is not renewed once more.
func (t *tokens) renew(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.mu.Lock()
	since := time.Since(t.renewed)
	first := t.renewed.IsZero()
	t.mu.Unlock()
	switch {
	case !first && since < renewJoin:
		return nil
	case !first && since < renewPause:
		return errJustNow
	}
	_, err := t.fetch(ctx)
	if err == nil {
		t.mu.Lock()
		t.renewed = time.Now()
		t.mu.Unlock()
	}
	return err
}

// azure is Azure's default chain: environment, workload identity, managed
// identity, developer tools.
type azure struct {
	credential azcore.TokenCredential
	scope      string
}

func azureSource(scope string) (TokenSource, error) {
	c, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, fmt.Errorf("azure credential: %w", err)
	}
	return azure{c, scope}, nil
}

// Token implements TokenSource.
func (a azure) Token(ctx context.Context) (Token, error) {
	t, err := a.credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{a.scope}})
	if err != nil {
		return Token{}, err
	}
	return Token{Value: t.Token, Expires: t.ExpiresOn}, nil
}
