// Package jwt verifies JSON Web Tokens of an issuer, such as an identity provider, and maps
// their claims to an identity.
package jwt

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

// A Config says which tokens are accepted, and for whom they are. Issuer, Audience and one
// source of keys are required.
type Config struct {
	Issuer   string `toml:"issuer"`   // the claim iss
	Audience string `toml:"audience"` // one of the claim aud

	JWKS          string `toml:"jwks"`            // the URL of the issuer's keys, which may change
	PublicKeyFile string `toml:"public_key_file"` // one key as PEM
	SecretFile    string `toml:"secret_file"`     // the secret of HS256, at least 32 bytes

	Algorithms []string `toml:"algorithms"` // nil: HS256 for a secret, otherwise RS256, ES256 and EdDSA

	Subject string                 `toml:"subject"` // the claim with the subject; "" for sub
	Role    string                 `toml:"role"`    // the claim with the roles, such as realm_access.roles; "" if there is none
	Roles   map[string]access.Role `toml:"roles"`   // what the values of that claim stand for; without it the names of roles stand for themselves
	Default access.Role            `toml:"default"` // the role of a token without a known value; "" refuses it
	Leeway  string                 `toml:"leeway"`  // how far the clocks may differ, such as 30s; "" for 30s, at most 5m
}

const (
	defaultLeeway = 30 * time.Second
	maxLeeway     = 5 * time.Minute
	minSecret     = 32 // bytes

	refreshEvery = 10 * time.Minute // of the keys at a URL
	unknownEvery = 30 * time.Second // between two looks for a key that is not known
	fetchTimeout = 5 * time.Second
	maxKeys      = 1 << 20 // bytes
	maxLines     = 10      // in the log about tokens that are refused, at once; afterwards one a second
)

// A Verifier verifies tokens. Its methods may be called by several goroutines.
type Verifier struct {
	config Config
	leeway time.Duration
	parser *jwt.Parser
	log    *slog.Logger
	quiet  *rate.Limiter // of the log
	key    func(ctx context.Context) jwt.Keyfunc
}

// New returns a verifier. It refreshes the keys of a URL until ctx is done. An issuer that
// cannot be reached is tried again; meanwhile its tokens are refused.
func New(ctx context.Context, c Config, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{config: c, log: log, quiet: rate.NewLimiter(rate.Every(time.Second), maxLines)}
	if err := v.check(); err != nil {
		return nil, err
	}
	var err error
	switch {
	case c.SecretFile != "":
		v.key, err = secretOf(c.SecretFile)
	case c.PublicKeyFile != "":
		v.key, err = publicOf(c.PublicKeyFile)
	default:
		v.key, err = keysAt(ctx, c.JWKS, log)
	}
	if err != nil {
		return nil, err
	}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods(v.config.Algorithms), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
		jwt.WithLeeway(v.leeway), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithStrictDecoding(),
	)
	return v, nil
}

func bad(format string, args ...any) error {
	return tapedeck.Errorf(tapedeck.Invalid, "jwt: "+format, args...)
}

// known are the algorithms that can be configured, with whether they use a secret.
var known = map[string]bool{
	"HS256": true, "HS384": true, "HS512": true,
	"RS256": false, "RS384": false, "RS512": false, "PS256": false, "PS384": false, "PS512": false,
	"ES256": false, "ES384": false, "ES512": false, "EdDSA": false,
}

func (v *Verifier) check() error {
	c := &v.config
	if c.Issuer == "" || c.Audience == "" {
		return bad("issuer and audience are needed")
	}
	sources := 0
	for _, s := range []string{c.JWKS, c.PublicKeyFile, c.SecretFile} {
		if s != "" {
			sources++
		}
	}
	if sources != 1 {
		return bad("the keys come from one of jwks, public_key_file and secret_file")
	}
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{"RS256", "ES256", "EdDSA"}
		if c.SecretFile != "" {
			c.Algorithms = []string{"HS256"}
		}
	}
	for _, a := range c.Algorithms {
		if secret, ok := known[a]; !ok || secret != (c.SecretFile != "") {
			return bad("the algorithm %.20q cannot be used with this key", a)
		}
	}
	if err := c.CheckRoles("jwt: "); err != nil {
		return err
	}
	return v.checkLeeway()
}

// CheckRoles reports what is wrong with the settings of roles. The error begins with about.
func (c *Config) CheckRoles(about string) error {
	for _, r := range c.Roles {
		if !isRole(r) {
			return tapedeck.Errorf(tapedeck.Invalid, "%sa claim cannot stand for the role %.64q; the roles are admin, user and reader", about, r)
		}
	}
	if c.Default != "" && !isRole(c.Default) {
		return tapedeck.Errorf(tapedeck.Invalid, "%sthe default cannot be the role %.64q", about, c.Default)
	}
	if c.Role == "" && c.Default == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "%swithout the claim in role, default is needed", about)
	}
	return nil
}

// Identify returns the identity of verified claims, by the settings of subject and roles.
func Identify(c Config, claims map[string]any) (*access.Identity, error) {
	return (&Verifier{config: c}).identity(claims)
}

func (v *Verifier) checkLeeway() error {
	v.leeway = defaultLeeway
	if v.config.Leeway == "" {
		return nil
	}
	d, err := time.ParseDuration(v.config.Leeway)
	if err != nil || d < 0 || d > maxLeeway {
		return bad("leeway is a duration up to 5m, such as 30s, and not %.64q", v.config.Leeway)
	}
	v.leeway = d
	return nil
}

// precedence are the roles that a claim can give, the strongest first.
var precedence = []access.Role{access.Admin, access.User, access.Reader}

func isRole(r access.Role) bool { return slices.Contains(precedence, r) }

func secretOf(path string) (func(context.Context) jwt.Keyfunc, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, bad("the secret cannot be read: %w", err)
	}
	secret := []byte(strings.TrimSpace(string(b)))
	if len(secret) < minSecret {
		return nil, bad("the secret in %s has less than %d bytes", path, minSecret)
	}
	return always(secret), nil
}

func publicOf(path string) (func(context.Context) jwt.Keyfunc, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, bad("the public key cannot be read: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, bad("%s has no PEM block", path)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, bad("%s has no public key: %w", path, err)
	}
	if err := checkKey(key); err != nil {
		return nil, bad("%s: %w", path, err)
	}
	return always(key), nil
}

// minRSA is the length of the shortest RSA key that is accepted, in bits: RFC 7518, section
// 3.3. The next RSA keys that people factor are shorter.
const minRSA = 2048

// checkKey returns an error for a key that is too weak.
func checkKey(key any) error {
	if k, ok := key.(*rsa.PublicKey); ok && k.N.BitLen() < minRSA {
		return fmt.Errorf("the RSA key has %d bits, and one of less than %d is not safe", k.N.BitLen(), minRSA)
	}
	return nil
}

// strong returns keys without those that are too weak.
func strong(next jwt.Keyfunc) jwt.Keyfunc {
	return func(t *jwt.Token) (any, error) {
		key, err := next(t)
		if err != nil {
			return nil, err
		}
		set, ok := key.(jwt.VerificationKeySet) // all keys, for a token that names none
		if !ok {
			return key, checkKey(key)
		}
		var left []jwt.VerificationKey
		for _, k := range set.Keys {
			if weak := checkKey(k); weak == nil {
				left = append(left, k)
			} else {
				err = weak
			}
		}
		if len(left) == 0 && err != nil {
			return nil, err
		}
		return jwt.VerificationKeySet{Keys: left}, nil
	}
}

func always(key any) func(context.Context) jwt.Keyfunc {
	return func(context.Context) jwt.Keyfunc { return func(*jwt.Token) (any, error) { return key, nil } }
}

// keysAt returns the keys at a URL, which are read again when a token names an unknown one.
func keysAt(ctx context.Context, address string, log *slog.Logger) (func(context.Context) jwt.Keyfunc, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, bad("jwks is a URL that begins with https://, and not %.200q", address)
	}
	keys, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{address}, keyfunc.Override{
		Client: &http.Client{Transport: limited{http.DefaultTransport}}, HTTPTimeout: fetchTimeout, RefreshInterval: refreshEvery,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(unknownEvery), 1), RateLimitWaitMax: fetchTimeout, // also of the request that follows
		RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
			return func(_ context.Context, err error) {
				log.Warn("the keys of the issuer cannot be read; they are tried again", "url", address, "error", err)
			}
		},
	})
	if err != nil {
		return nil, bad("the keys at %s cannot be used: %w", address, err)
	}
	return func(ctx context.Context) jwt.Keyfunc { return strong(keys.KeyfuncCtx(ctx)) }, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// limited limits how much of an answer is read.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxKeys), resp.Body}
	}
	return resp, err
}

// Verify returns the identity of a token. It is nil without an error for a token of
// another kind.
func (v *Verifier) Verify(ctx context.Context, token string) (*access.Identity, error) {
	if strings.Count(token, ".") != 2 {
		return nil, nil
	}
	claims := jwt.MapClaims{}
	who, reason, err := v.verify(ctx, token, claims)
	if err != nil && v.quiet.Allow() {
		v.log.Info("a JSON Web Token was refused", "reason", short(reason), "iss", short(claims["iss"]), "aud", short(claims["aud"]), "sub", short(claims["sub"]))
	}
	return who, err
}

// verify returns the identity of a token, or why it is refused: for the operator, and for
// the sender.
func (v *Verifier) verify(ctx context.Context, token string, claims jwt.MapClaims) (who *access.Identity, reason, err error) {
	parsed, err := v.parser.ParseWithClaims(token, claims, v.key(ctx))
	if err != nil {
		return nil, err, refused(err)
	}
	if _, critical := parsed.Header["crit"]; critical { // it demands what nothing here understands
		err = tapedeck.Errorf(tapedeck.Unauthorized, "the token demands an extension that this server does not have")
	} else {
		who, err = v.identity(claims)
	}
	return who, err, err
}

// maxShown is how much of a value that others chose a line of the log has, in bytes.
const maxShown = 200

// short returns a value for the log. The claims of a token that is refused can be anything.
func short(value any) string {
	if value == nil {
		return ""
	}
	text := fmt.Sprint(value)
	return strings.ToValidUTF8(text[:min(len(text), maxShown)], "")
}

// refused returns what the sender of a token learns of the reason. The rest is for the log:
// it may be an attempt.
func refused(err error) error {
	for reason, text := range map[error]string{
		jwt.ErrTokenExpired:         "the token has expired",
		jwt.ErrTokenNotValidYet:     "the token is not valid yet",
		jwt.ErrTokenInvalidIssuer:   "the token is of another issuer",
		jwt.ErrTokenInvalidAudience: "the token is for another audience",
	} {
		if errors.Is(err, reason) {
			return tapedeck.Errorf(tapedeck.Unauthorized, "%s", text).WithHint("ask for a new one")
		}
	}
	return tapedeck.Errorf(tapedeck.Unauthorized, "the token is not valid")
}

func (v *Verifier) identity(claims jwt.MapClaims) (*access.Identity, error) {
	name := v.config.Subject
	if name == "" {
		name = "sub"
	}
	subject, _ := find(claims, name).(string)
	if subject == "" {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "the token names no subject in %s", name)
	}
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "the token does not say when it expires")
	}
	role := v.roleOf(claims)
	if role == "" {
		return nil, tapedeck.Errorf(tapedeck.Unauthorized, "the token has none of the roles of this server")
	}
	return &access.Identity{Subject: subjectID(subject), Role: role, Expires: expires.Add(v.leeway)}, nil
}

// hashed begins the id of a subject that is a hash.
const hashed = "sub_"

// subjectID returns a subject as an id. A subject with other characters, such as
// auth0|123, becomes a hash: to leave the characters out could make two users one. So
// does one that looks like such a hash.
func subjectID(subject string) string {
	if tapedeck.CheckID("the subject", subject) == nil && !strings.HasPrefix(subject, hashed) {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))
	return hashed + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}

// roleOf returns the strongest role of a token.
func (v *Verifier) roleOf(claims jwt.MapClaims) access.Role {
	best := -1
	for _, value := range values(find(claims, v.config.Role)) {
		r := access.Role(value)
		if v.config.Roles != nil {
			r = v.config.Roles[value]
		}
		if i := slices.Index(precedence, r); i >= 0 && (best < 0 || i < best) {
			best = i
		}
	}
	if best < 0 {
		return v.config.Default
	}
	return precedence[best]
}

// find returns a claim: the one of that name, which may have dots, or else the one that
// the parts of the name lead to.
func find(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	var at any = claims
	for part := range strings.SplitSeq(name, ".") {
		var inside map[string]any
		switch m := at.(type) {
		case map[string]any:
			inside = m
		case jwt.MapClaims:
			inside = m
		}
		at = inside[part]
	}
	return at
}

// values returns the values of a claim: a list, or a text with spaces between them.
func values(claim any) (out []string) {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		for _, v := range c {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}
