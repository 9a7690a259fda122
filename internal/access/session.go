package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	// idleLimit ends a session that nothing has been asked with.
	idleLimit = time.Hour
	// sessionLimit ends every session: whoever left a team signs in no more.
	sessionLimit = 12 * time.Hour
	// maxSessions bounds how many there are; the one that has been idle longest
	// makes room.
	maxSessions = 1000
	// maxEach bounds those of one person, who otherwise ends everybody's.
	maxEach = 100
	// idBytes is the length of an id before it is written as text.
	idBytes = 32
)

// The names of cookies. With the prefix a browser takes the cookie only over TLS,
// for this host and for all its paths, so no neighbour can set one.
const (
	sessionCookie = "hourthree"
	signInCookie  = "hourthree-signin"
	hostPrefix    = "__Host-"
)

// session is somebody who has signed in at the dashboard.
type session struct {
	person Person
	key    digest // it was opened with, zero for none
	issuer string // id of the OpenID settings it was opened with, "" for none
	began  time.Time
	seen   time.Time
}

// sessions are those that last, by the digest of their id.
type sessions struct {
	mu   sync.Mutex
	byID map[digest]*session
}

// open begins a session and returns its id, which nobody else has.
func (s *sessions) open(now time.Time, n session) string {
	id := secret()
	n.began, n.seen = now, now
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[digest]*session{}
	}
	s.makeRoom(now, n.person)
	s.byID[sha256.Sum256([]byte(id))] = &n
	return id
}

// makeRoom lets go of what is over, and of the idlest session where there are too many,
// of the person who comes first.
func (s *sessions) makeRoom(now time.Time, who Person) {
	var all, own idlest
	for id, each := range s.byID {
		if each.over(now) {
			delete(s.byID, id)
			continue
		}
		all.see(id, each)
		if each.person == who {
			own.see(id, each)
		}
	}
	switch {
	case own.of >= maxEach:
		delete(s.byID, own.id)
	case all.of >= maxSessions:
		delete(s.byID, all.id)
	}
}

// idlest is the session that has been idle longest.
type idlest struct {
	of    int // sessions
	id    digest
	since time.Time
}

func (i *idlest) see(id digest, s *session) {
	if i.of++; i.of == 1 || s.seen.Before(i.since) {
		i.id, i.since = id, s.seen
	}
}

func (n *session) over(now time.Time) bool {
	return now.Sub(n.seen) >= idleLimit || now.Sub(n.began) >= sessionLimit
}

// find is the person of a session that lasts, and that holds accepts.
func (s *sessions) find(now time.Time, id string, holds func(*session) bool) (Person, bool) {
	if id == "" {
		return Person{}, false
	}
	sum := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byID[sum]
	if n == nil {
		return Person{}, false
	}
	if n.over(now) || !holds(n) {
		delete(s.byID, sum)
		return Person{}, false
	}
	n.seen = now
	return n.person, true
}

// end ends a session, and returns whose it was.
func (s *sessions) end(id string) (Person, bool) {
	sum := sha256.Sum256([]byte(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byID[sum]
	if n == nil {
		return Person{}, false
	}
	delete(s.byID, sum)
	return n.person, true
}

// keep ends the sessions that holds does not accept, and returns whose they were.
func (s *sessions) keep(holds func(*session) bool) (ended []Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.byID {
		if !holds(n) {
			delete(s.byID, id)
			ended = append(ended, n.person)
		}
	}
	return ended
}

// secret is a text that cannot be guessed: 256 random bits.
func secret() string {
	b := make([]byte, idBytes)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// cookie is a cookie of this listener that no script sees. One of no value is to
// be forgotten.
func cookie(name, value string, https bool, site http.SameSite, age time.Duration) *http.Cookie {
	c := &http.Cookie{Name: cookieName(name, https), Value: value, Path: "/", HttpOnly: true, Secure: https, SameSite: site, MaxAge: int(age / time.Second)}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

func cookieName(name string, https bool) string {
	if https {
		return hostPrefix + name
	}
	return name
}

// cookieOf is the value of a cookie, "" for none.
func cookieOf(r *http.Request, name string, https bool) string {
	c, err := r.Cookie(cookieName(name, https))
	if err != nil || len(c.Value) > maxCookie {
		return ""
	}
	return c.Value
}

// maxCookie bounds what is looked at of a cookie.
const maxCookie = 4 << 10
