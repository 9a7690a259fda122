package app

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hourthree/hourthree/internal/access"
	"github.com/hourthree/hourthree/internal/config"
	"github.com/hourthree/hourthree/internal/steer"
)

// newGuard makes what stands in front of the operator's listener.
func (a *App) newGuard() *access.Guard {
	return access.New(access.Options{Noted: a.noted, Denied: a.metrics.Denied, Dial: a.opt.Network.Dial})
}

// noted writes down who signed in and out and who was denied, in the log and in the
// audit log; there is no secret in a note.
func (a *App) noted(n access.Note) {
	level := a.log.Info
	if n.What == access.Denied {
		level = a.log.Warn
	}
	level(n.What, "component", "access", "who", n.Who.Name, "role", string(n.Who.Role), "via", n.Who.Via, "from", n.From, "why", n.Why, "not_noted_before", n.Missed)
	why := n.Why
	if n.Missed > 0 {
		why = strings.TrimSpace(fmt.Sprintf("%s (%d more before are not noted)", why, n.Missed))
	}
	a.audit(steer.Entry{At: n.At, Who: n.Who.Name, Role: string(n.Who.Role), Via: n.Who.Via, What: n.What, Subject: n.From, Why: why})
}

// accessOf is who may do what by a configuration.
func accessOf(c *config.Config) access.Config {
	out := access.Config{Hosts: c.Admin.Hosts, Listen: c.Admin.Listen}
	for _, name := range slices.Sorted(maps.Keys(c.Admin.Keys)) {
		k := c.Admin.Keys[name]
		out.Keys = append(out.Keys, access.Key{Name: name, Key: k.Key.Reveal(), Role: access.Role(k.Role)})
	}
	if o := c.Admin.OIDC; o != nil {
		out.OIDC = &access.OIDC{
			Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(), RedirectURL: o.RedirectURL,
			Scopes: o.Scopes, NameClaim: o.NameClaim, Operate: claimOf(o.Roles.Operate), View: claimOf(o.Roles.View),
		}
	}
	return out
}

func claimOf(c *config.AdminClaim) access.Claim {
	if c == nil {
		return access.Claim{}
	}
	return access.Claim{Name: c.Claim, Values: c.Values}
}

// certificateEvery is how often a certificate's files are looked at.
const certificateEvery = time.Second

// certificate is the one of the operator's listener. Its files are looked at when
// somebody connects, and read when they have changed; what cannot be used leaves
// the one before in force.
type certificate struct {
	refused func(error)

	mu     sync.Mutex
	files  config.AdminTLS
	stamp  string // of the files that were read
	looked time.Time
	pair   *tls.Certificate
}

// newCertificate reads a certificate. refused hears of a later one that cannot be
// used.
func newCertificate(files config.AdminTLS, refused func(error)) (*certificate, error) {
	c := &certificate{refused: refused}
	return c, c.use(files)
}

// use takes other files, or fails and changes nothing.
func (c *certificate) use(files config.AdminTLS) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read(files, stampOf(files))
}

// read reads the files. The lock is held.
func (c *certificate) read(files config.AdminTLS, stamp string) error {
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return fmt.Errorf("admin.tls: %w", err)
	}
	c.files, c.stamp, c.pair = files, stamp, &pair
	return nil
}

// get is the certificate for a connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.looked) < certificateEvery {
		return c.pair, nil
	}
	c.looked = now
	if stamp := stampOf(c.files); stamp != c.stamp {
		if err := c.read(c.files, stamp); err != nil {
			c.stamp = stamp // said once
			c.refused(err)
		}
	}
	return c.pair, nil
}

// stampOf tells whether files have changed, by time and size.
func stampOf(files config.AdminTLS) string {
	stamp := ""
	for _, path := range []string{files.Cert, files.Key} {
		if info, err := os.Stat(path); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), info.Size(), " ")
		}
	}
	return stamp
}

// adminTLS makes the operator's listener one of TLS, where that is configured.
func (a *App) adminTLS(l net.Listener, c *config.Config) (net.Listener, error) {
	if c.Admin.TLS == nil {
		return l, nil
	}
	var err error
	a.certificate, err = newCertificate(*c.Admin.TLS, func(err error) {
		a.log.Error("the new certificate is refused, the old one stays", "component", "access", "reason", err.Error())
	})
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: a.certificate.get, NextProtos: []string{"http/1.1"}}), nil
}

// admit puts in force who may use the operator's listener. A certificate that
// cannot be used any more, as it could when the configuration was checked, leaves
// the one before.
func (a *App) admit(c *config.Config) error {
	if a.certificate != nil && c.Admin.TLS != nil {
		if err := a.certificate.use(*c.Admin.TLS); err != nil {
			a.certificate.refused(err)
		}
	}
	return a.guard.Use(accessOf(c))
}
