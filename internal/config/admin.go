package config

// Admin is the operator's listener: the dashboard, metrics, health and the admin API. With neither keys nor oidc whoever reaches it may operate, so it is on a loopback address then. docs/access.md describes who may do what.
type Admin struct {
	// Address of the operator's listener, host and port. Without keys and oidc it must be a loopback address. A change takes effect with a restart.
	Listen string `yaml:"listen"`
	// Names under which the listener may be asked for, besides those of this machine and its own address; requests for other names are refused, against DNS rebinding. Write https:// before a name where a proxy in front of the router ends TLS, so that sessions are for TLS alone.
	Hosts []string `yaml:"hosts"`
	// Credentials of operators and of programs, by the name under which each is known in the record of changes. With one, every path but /healthz, /livez and /readyz needs a credential, on loopback too.
	Keys map[string]AdminKey `yaml:"keys"`
	// Serve the listener over TLS. Turning it on or off takes effect with a restart.
	TLS *AdminTLS `yaml:"tls"`
	// Let people sign in with an OpenID provider.
	OIDC *AdminOIDC `yaml:"oidc"`
}

// Guarded reports whether the operator's listener asks for a credential.
func (a Admin) Guarded() bool { return len(a.Keys) > 0 || a.OIDC != nil }

// AdminKey is a credential for the operator's listener. A key of a workload is none, nor the other way round.
type AdminKey struct {
	// The key, plain or as sha256: and 64 hex digits, which hourthree config hash-key makes. At least 16 characters. Only its digest is kept and compared.
	Key Secret `yaml:"key" required:"true"`
	// What it may do: view, or operate, which is view and every change. For metrics view is enough.
	Role string `yaml:"role" enum:"view,operate" required:"true"`
}

// AdminTLS is the certificate of the operator's listener. Its files are read again when they change.
type AdminTLS struct {
	// Path of the certificate with its chain, in PEM.
	Cert string `yaml:"cert" required:"true"`
	// Path of its private key, in PEM.
	Key string `yaml:"key" required:"true"`
}

// AdminOIDC lets people sign in with an OpenID provider, by the authorization code flow with PKCE. The provider is asked when somebody signs in; one that cannot be reached keeps out nobody who has a key.
type AdminOIDC struct {
	// The provider's issuer, such as https://accounts.example.com. It must be https, except on this machine.
	Issuer string `yaml:"issuer" required:"true"`
	// The client's id at the provider.
	ClientID string `yaml:"client_id" required:"true"`
	// The client's secret. Without one the client is public, and PKCE alone binds the sign-in.
	ClientSecret Secret `yaml:"client_secret"`
	// Address of /oidc/callback at this listener as browsers reach it, as registered at the provider: https://ops.example.com/oidc/callback. Its name is one of hosts by itself.
	RedirectURL string `yaml:"redirect_url" required:"true"`
	// Scopes that are asked for. openid is always among them; some providers need one more for groups.
	Scopes []string `yaml:"scopes"`
	// Claim of the ID token by which people are named in the record of changes. With email, an address that the provider says it has not verified is refused.
	NameClaim string `yaml:"name_claim"`
	// Who may do what, by a claim of the ID token. Whoever matches both may operate; whoever matches none is not let in.
	Roles AdminRoles `yaml:"roles" required:"true"`
}

func (o *AdminOIDC) setDefaults() {
	*o = AdminOIDC{Scopes: []string{"openid", "profile", "email"}, NameClaim: "email"}
}

// AdminRoles are the claims that give each role. At least one is needed.
type AdminRoles struct {
	// Who may operate.
	Operate *AdminClaim `yaml:"operate"`
	// Who may view.
	View *AdminClaim `yaml:"view"`
}

// AdminClaim is what an ID token has to say.
type AdminClaim struct {
	// Name of the claim, of a text or of a list of texts. A dot leads into an object, as in realm_access.roles.
	Claim string `yaml:"claim" required:"true"`
	// Values of which one is enough.
	Values []string `yaml:"values" required:"true"`
}
