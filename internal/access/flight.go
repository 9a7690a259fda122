package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// flightLimit is how long a person may take at the provider.
	flightLimit = 10 * time.Minute
	// maxFlown bounds how many answers of providers are remembered as used.
	maxFlown = 4096
)

// flight is a sign-in on its way through the provider. It travels in a cookie of
// the browser, sealed: nothing is kept here of sign-ins that are never finished.
type flight struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"` // of PKCE
	Next     string    `json:"p"`
	Issuer   string    `json:"i"` // id of the settings that it began with
	Until    time.Time `json:"u"`
}

// seal closes flights with a key that this process alone has, and remembers which
// have come back.
type seal struct {
	aead cipher.AEAD

	mu    sync.Mutex
	flown map[digest]time.Time // until when each would be good
}

func newSeal() *seal {
	key := make([]byte, 32)
	_, _ = rand.Read(key)           // it never fails
	block, _ := aes.NewCipher(key)  // nor does this, with a key of this length
	aead, _ := cipher.NewGCM(block) // nor this
	return &seal{aead: aead, flown: map[digest]time.Time{}}
}

func (s *seal) close(f flight) string {
	text, _ := json.Marshal(f) // texts and a time
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce)
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, text, []byte(signInCookie)))
}

// open reads a flight that came back. Each is good once.
func (s *seal) open(now time.Time, sealed, state string) (flight, error) {
	var f flight
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return f, errors.New("this browser has begun no sign-in, or too long ago")
	}
	text, err := s.aead.Open(nil, raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():], []byte(signInCookie))
	if err != nil || json.Unmarshal(text, &f) != nil || now.After(f.Until) {
		return flight{}, errors.New("this browser has begun no sign-in, or too long ago")
	}
	if subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) != 1 {
		return flight{}, errors.New("this answer belongs to another sign-in")
	}
	if !s.once(now, f) {
		return flight{}, errors.New("this sign-in has been finished before")
	}
	return f, nil
}

// once reports whether a flight has not come back before.
func (s *seal) once(now time.Time, f flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256([]byte(f.State))
	if _, ok := s.flown[sum]; ok {
		return false
	}
	if len(s.flown) >= maxFlown {
		var soonest digest
		var until time.Time
		for id, at := range s.flown {
			if now.After(at) {
				delete(s.flown, id)
			} else if until.IsZero() || at.Before(until) {
				soonest, until = id, at
			}
		}
		if len(s.flown) >= maxFlown {
			delete(s.flown, soonest)
		}
	}
	s.flown[sum] = f.Until
	return true
}

// oidcStart sends a browser to the provider.
func (g *Guard) oidcStart(w http.ResponseWriter, r *http.Request) {
	c := g.now.Load()
	if c.issuer == nil {
		show(w, http.StatusNotFound, c.form("/", "No provider is configured to sign in with."))
		return
	}
	next := within(r.URL.Query().Get("next"))
	d, err := c.issuer.describe(r.Context())
	if err != nil {
		g.deny(r, Person{}, reasonOIDC, "the provider cannot be reached: "+plainly(err.Error()))
		show(w, http.StatusBadGateway, c.form(next, "The provider cannot be reached. A key signs in without it."))
		return
	}
	f := flight{State: secret(), Nonce: secret(), Verifier: oauth2.GenerateVerifier(), Next: next, Issuer: c.issuer.id, Until: time.Now().Add(flightLimit)}
	// Lax and not Strict: the provider leads the browser back here.
	http.SetCookie(w, cookie(signInCookie, g.seal.close(f), c.secure(r), http.SameSiteLaxMode, flightLimit))
	to := c.issuer.oauth(d).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier))
	http.Redirect(w, r, to, http.StatusFound)
}

// oidcCallback takes the provider's answer.
func (g *Guard) oidcCallback(w http.ResponseWriter, r *http.Request) {
	c, q := g.now.Load(), r.URL.Query()
	if c.issuer == nil {
		show(w, http.StatusNotFound, c.form("/", "No provider is configured to sign in with."))
		return
	}
	https, now, addr := c.secure(r), time.Now(), AddressOf(r.RemoteAddr)
	if wait, shut := g.wrong.shut(now, addr); shut { // the provider is not asked without end
		g.opt.Denied(reasonShutOut)
		w.Header().Set("Retry-After", seconds(wait))
		show(w, http.StatusTooManyRequests, c.form("/", "Too many sign-ins from this address came to nothing. Try again in "+seconds(wait)+" s."))
		return
	}
	f, err := g.seal.open(now, cookieOf(r, signInCookie, https), q.Get("state"))
	http.SetCookie(w, cookie(signInCookie, "", https, http.SameSiteLaxMode, 0))
	var p Person
	if err == nil {
		p, err = c.issuer.answered(r, f, q)
	}
	if err != nil {
		g.wrong.failed(now, addr)
		g.notSignedIn(w, r, c, f.Next, err)
		return
	}
	g.wrong.good(now, addr)
	g.begin(w, r, c, session{person: p, issuer: c.issuer.id})
	// A page and not a redirect, as in signInFirst: the provider led here.
	show(w, http.StatusOK, view{Title: "Signed in", Text: "You are signed in as " + p.Name + ".", Onward: true, Next: within(f.Next)})
}

// answered is who a provider's answer is about.
func (i *issuer) answered(r *http.Request, f flight, q url.Values) (Person, error) {
	switch iss := q.Get("iss"); {
	case f.Issuer != i.id:
		return Person{}, errors.New("the provider was configured anew meanwhile; sign in again")
	case iss != "" && iss != i.conf.Issuer: // RFC 9207
		return Person{}, errors.New("the answer is another provider's")
	case q.Get("error") != "":
		return Person{}, errors.New("the provider says: " + plainly(q.Get("error")))
	case q.Get("code") == "" || len(q.Get("code")) > maxCookie:
		return Person{}, errors.New("the provider's answer holds no code")
	}
	return i.person(r.Context(), q.Get("code"), f)
}

// notSignedIn explains why a sign-in with the provider came to nothing.
func (g *Guard) notSignedIn(w http.ResponseWriter, r *http.Request, c *rules, next string, err error) {
	g.deny(r, Person{}, reasonOIDC, plainly(err.Error()))
	v, status := c.form(within(next), ""), http.StatusBadRequest
	var none noRole
	var away unreachable
	switch {
	case errors.As(err, &none):
		status, v.Title = http.StatusForbidden, "No role here"
		v.Message = "You are known to the provider, but " + err.Error() + ". admin.oidc.roles says which values give a role."
	case errors.As(err, &away):
		status, v.Message = http.StatusBadGateway, "The provider cannot be reached. A key signs in without it."
	default:
		v.Message = "The sign-in came to nothing: " + plainly(err.Error()) + "."
	}
	show(w, status, v)
}
