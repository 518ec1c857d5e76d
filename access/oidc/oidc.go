// Package oidc logs people in with an identity provider, by OpenID Connect: the code flow
// with PKCE. What is in between, and the log-in itself, are tokens that this server signs,
// so nothing is stored.
package oidc

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/jwt"
)

// A Config says who may log in. Issuer, ClientID and RedirectURL are required, and either
// Role or Default.
type Config struct {
	Issuer           string   `toml:"issuer"`
	ClientID         string   `toml:"client_id"`
	ClientSecretFile string   `toml:"client_secret_file"` // "" for a public client
	RedirectURL      string   `toml:"redirect_url"`       // https://HOST/login of this server, as it is registered with the issuer
	Scopes           []string `toml:"scopes"`             // besides openid
	Session          string   `toml:"session"`            // how long a log-in lasts, such as 8h; "" for 8h, at most 168h

	Subject string                 `toml:"subject"` // these are as in [jwt.Config]
	Role    string                 `toml:"role"`
	Roles   map[string]access.Role `toml:"roles"`
	Default access.Role            `toml:"default"`
}

const (
	defaultSession = 8 * time.Hour
	maxSession     = 7 * 24 * time.Hour
	flowTime       = 10 * time.Minute // to log in at the issuer
	askTimeout     = 10 * time.Second // for an answer of the issuer
	maxAnswer      = 1 << 20          // bytes
)

// A Provider logs people in. Its methods may be called by several goroutines.
type Provider struct {
	config  Config
	claims  jwt.Config
	session time.Duration
	secret  string
	key     []byte
	client  *http.Client
	now     func() time.Time

	mu    sync.Mutex
	found *oidc.Provider // nil until the issuer has answered
}

func bad(format string, args ...any) error {
	return tapedeck.Errorf(tapedeck.Invalid, "oidc: "+format, args...)
}

// New returns a provider. key signs the log-ins; who has another one has to log in again.
// The issuer is asked when somebody logs in, so a server starts without it.
func New(c Config, key []byte) (*Provider, error) {
	p := &Provider{
		config: c, key: key, session: defaultSession, now: time.Now,
		claims: jwt.Config{Subject: c.Subject, Role: c.Role, Roles: c.Roles, Default: c.Default},
		client: &http.Client{Timeout: askTimeout, Transport: limited{http.DefaultTransport}},
	}
	if c.ClientID == "" {
		return nil, bad("client_id is needed, which the issuer gives to this server")
	}
	for name, address := range map[string]string{"issuer": c.Issuer, "redirect_url": c.RedirectURL} {
		if !safe(address) {
			return nil, bad("%s is a URL that begins with https://", name)
		}
	}
	if u, _ := url.Parse(c.RedirectURL); !strings.HasSuffix(u.Path, "/login") || u.RawQuery != "" || u.Fragment != "" {
		return nil, bad("redirect_url ends with /login, where this server expects the answer")
	}
	if err := p.claims.CheckRoles("oidc: "); err != nil {
		return nil, err
	}
	if c.Session != "" {
		d, err := time.ParseDuration(c.Session)
		if err != nil || d < time.Minute || d > maxSession {
			return nil, bad("session is a duration from 1m to 168h, and not %.64q", c.Session)
		}
		p.session = d
	}
	if c.ClientSecretFile != "" {
		b, err := os.ReadFile(c.ClientSecretFile)
		if err != nil {
			return nil, bad("the secret of the client cannot be read: %w", err)
		}
		if p.secret = strings.TrimSpace(string(b)); p.secret == "" {
			return nil, bad("the file of the client's secret is empty")
		}
	}
	return p, nil
}

// safe reports whether nobody on the way can read what is sent to a URL.
func safe(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}

// limited limits how much of an answer is read.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// discover asks the issuer where people log in, once.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	// The keys are read with this context later, when the request has ended.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.config.Issuer)
	if err == nil && (!safe(found.Endpoint().AuthURL) || !safe(found.Endpoint().TokenURL)) {
		err = bad("the issuer has an address that does not begin with https://")
	}
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Unavailable, "the identity provider cannot be asked").Because(err).WithHint("try again, or log in with a token")
	}
	p.found = found
	return found, nil
}

func (p *Provider) oauth(found *oidc.Provider) *oauth2.Config {
	scopes := append([]string{oidc.ScopeOpenID}, slices.DeleteFunc(slices.Clone(p.config.Scopes), func(s string) bool { return s == oidc.ScopeOpenID })...)
	return &oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: p.secret, RedirectURL: p.config.RedirectURL, Endpoint: found.Endpoint(), Scopes: scopes,
	}
}

// Host is the host of the issuer, for people.
func (p *Provider) Host() string {
	u, err := url.Parse(p.config.Issuer)
	if err != nil {
		return ""
	}
	return u.Host
}

// Secure reports whether browsers reach this server by TLS.
func (p *Provider) Secure() bool { return strings.HasPrefix(p.config.RedirectURL, "https:") }
