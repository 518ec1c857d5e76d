package jwt

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
)

var discard = slog.New(slog.DiscardHandler)

func claims(more map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{"iss": "https://issuer", "aud": []string{"other", "deck"}, "sub": "ada", "exp": time.Now().Add(time.Hour).Unix(), "roles": "user"}
	for name, v := range more {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	return c
}

func sign(t *testing.T, m jwt.SigningMethod, key any, c jwt.MapClaims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(m, c)
	for name, v := range header {
		token.Header[name] = v
	}
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const secret = "0123456789abcdef0123456789abcdef"

func withSecret(t *testing.T, c Config) *Verifier {
	t.Helper()
	c.SecretFile = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(c.SecretFile, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Issuer, c.Audience = "https://issuer", "deck"
	v, err := New(t.Context(), c, discard)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRefused: a token that lacks anything is refused, and its sender learns no more than
// it must.
func TestRefused(t *testing.T) {
	v := withSecret(t, Config{Role: "roles"})
	key := []byte(secret)
	good := sign(t, jwt.SigningMethodHS256, key, claims(nil), nil)
	if who, err := v.Verify(t.Context(), good); err != nil || who.Subject != "ada" || who.Role != access.User {
		t.Fatalf("%+v %v", who, err)
	}
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	for name, token := range map[string]string{
		"no algorithm":      none,
		"another algorithm": sign(t, jwt.SigningMethodHS384, key, claims(nil), nil),
		"another secret":    sign(t, jwt.SigningMethodHS256, []byte("x"), claims(nil), nil),
		"changed claims":    parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"root"}`)) + "." + parts[2],
		"critical":          sign(t, jwt.SigningMethodHS256, key, claims(nil), map[string]any{"crit": []string{"b64"}, "b64": false}),
		"another issuer":    sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"iss": "https://evil"}), nil),
		"another audience":  sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"aud": "shop"}), nil),
		"no audience":       sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"aud": nil}), nil),
		"no expiry":         sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"exp": nil}), nil),
		"expired":           sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), nil),
		"not valid yet":     sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), nil),
		"no subject":        sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"sub": nil}), nil),
		"no role":           sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"roles": "guest"}), nil),
		"the role agent":    sign(t, jwt.SigningMethodHS256, key, claims(map[string]any{"roles": "agent"}), nil),
	} {
		who, err := v.Verify(t.Context(), token)
		if tapedeck.KindOf(err) != tapedeck.Unauthorized {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	if who, err := v.Verify(t.Context(), "td_x"); who != nil || err != nil {
		t.Errorf("a token of another kind: %v %v", who, err)
	}
}

// TestLeeway: the leeway counts for the expiry of the token, and for that of what it began.
func TestLeeway(t *testing.T) {
	v := withSecret(t, Config{Role: "roles", Leeway: "1m"})
	exp := time.Now().Add(-20 * time.Second).Truncate(time.Second)
	who, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), claims(map[string]any{"exp": exp.Unix()}), nil))
	if err != nil || !who.Expires.Equal(exp.Add(time.Minute)) || who.Valid() != nil {
		t.Errorf("%+v %v", who, err)
	}
}

// TestRoles: roles come from a text, from a list, from a claim within a claim, and from one
// whose name has dots; the strongest counts.
func TestRoles(t *testing.T) {
	mapped := map[string]access.Role{"deck-admins": access.Admin, "staff": access.Reader}
	for _, c := range []struct {
		config Config
		claims map[string]any
		want   access.Role
	}{
		{Config{Role: "roles"}, map[string]any{"roles": "reader user"}, access.User},
		{Config{Role: "realm_access.roles"}, map[string]any{"realm_access": map[string]any{"roles": []string{"x", "admin"}}}, access.Admin},
		{Config{Role: "https://deck.example/roles"}, map[string]any{"https://deck.example/roles": []string{"reader"}}, access.Reader},
		{Config{Role: "groups", Roles: mapped}, map[string]any{"groups": []any{"staff", "deck-admins", 1}}, access.Admin},
		{Config{Role: "groups", Roles: mapped, Default: access.User}, map[string]any{"groups": "admin"}, access.User},
		{Config{Role: "a.b.c", Default: access.Reader}, map[string]any{"a": "x"}, access.Reader},
	} {
		v := withSecret(t, c.config)
		who, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), claims(c.claims), nil))
		if err != nil || who.Role != c.want {
			t.Errorf("%+v: %+v, %v", c, who, err)
		}
	}
	v := withSecret(t, Config{Role: "roles"})
	a, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), claims(map[string]any{"sub": "auth0|1"}), nil))
	b, err2 := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), claims(map[string]any{"sub": "auth0/1"}), nil))
	if err != nil || err2 != nil || a.Subject == b.Subject || tapedeck.CheckID("it", a.Subject) != nil {
		t.Errorf("%+v %+v %v %v", a, b, err, err2)
	}
	c, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte(secret), claims(map[string]any{"sub": a.Subject}), nil))
	if err != nil || c.Subject == a.Subject {
		t.Errorf("the subject %s is that of another one, %v", c.Subject, err)
	}
}

// An issuer serves its keys, which change.
type issuer struct {
	keys    atomic.Value // []byte
	fetched atomic.Int64
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.fetched.Add(1)
	_, _ = w.Write(i.keys.Load().([]byte))
}

func (i *issuer) publish(t *testing.T, keys map[string]crypto.PublicKey) {
	t.Helper()
	b64 := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	list := []map[string]string{}
	for id, key := range keys {
		switch k := key.(type) {
		case *rsa.PublicKey:
			list = append(list, map[string]string{"kty": "RSA", "kid": id, "alg": "RS256", "use": "sig", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())})
		case *ecdsa.PublicKey:
			point, err := k.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, map[string]string{"kty": "EC", "kid": id, "crv": "P-256", "use": "sig", "x": b64(point[1:33]), "y": b64(point[33:])})
		case ed25519.PublicKey:
			list = append(list, map[string]string{"kty": "OKP", "kid": id, "crv": "Ed25519", "use": "sig", "x": b64(k)})
		}
	}
	b, err := json.Marshal(map[string]any{"keys": list})
	if err != nil {
		t.Fatal(err)
	}
	i.keys.Store(b)
}

// TestKeysAtURL: tokens of all algorithms are verified with the keys of a URL, a new key is
// found when a token names it, and a public key is no secret.
func TestKeysAtURL(t *testing.T) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{}
	i.publish(t, map[string]crypto.PublicKey{"r": &r.PublicKey, "e": &e.PublicKey})
	s := httptest.NewServer(i)
	defer s.Close()
	v, err := New(t.Context(), Config{Issuer: "https://issuer", Audience: "deck", JWKS: s.URL, Role: "roles"}, discard)
	if err != nil {
		t.Fatal(err)
	}
	accepts := func(m jwt.SigningMethod, kid string, key any) bool {
		who, err := v.Verify(t.Context(), sign(t, m, key, claims(nil), map[string]any{"kid": kid}))
		if err != nil && tapedeck.KindOf(err) != tapedeck.Unauthorized {
			t.Error(err)
		}
		return who != nil && err == nil
	}
	if !accepts(jwt.SigningMethodRS256, "r", r) || !accepts(jwt.SigningMethodES256, "e", e) {
		t.Error("a good token is refused")
	}
	before := i.fetched.Load()
	if accepts(jwt.SigningMethodES256, "r", e) || accepts(jwt.SigningMethodHS256, "r", r.N.Bytes()) {
		t.Error("a token of another key is accepted")
	}
	if i.fetched.Load() != before {
		t.Error("the keys are fetched for each token")
	}
	i.publish(t, map[string]crypto.PublicKey{"r": &r.PublicKey, "new": public})
	if !accepts(jwt.SigningMethodEdDSA, "new", private) {
		t.Error("a new key is not found")
	}
	after := i.fetched.Load()
	for range 10 {
		if accepts(jwt.SigningMethodEdDSA, "unknown", private) {
			t.Error("an unknown key is accepted")
		}
	}
	if n := i.fetched.Load() - after; n > 1 {
		t.Errorf("unknown keys make %d requests to the issuer", n)
	}
}

// TestWeakKeys: an RSA key of 1024 bits is refused, from a file and from a URL, also if the
// token does not name it; the log says why.
func TestWeakKeys(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&weak.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Config{Issuer: "i", Audience: "a", Default: access.User, PublicKeyFile: file}, discard); tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), "1024 bits") {
		t.Errorf("from a file: %v", err)
	}
	good, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{}
	i.publish(t, map[string]crypto.PublicKey{"weak": &weak.PublicKey, "good": &good.PublicKey})
	s := httptest.NewServer(i)
	defer s.Close()
	var log bytes.Buffer
	v, err := New(t.Context(), Config{Issuer: "https://issuer", Audience: "deck", JWKS: s.URL, Role: "roles"}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	token := sign(t, jwt.SigningMethodRS256, weak, claims(nil), map[string]any{"kid": "weak"})
	if _, err := v.Verify(t.Context(), token); tapedeck.KindOf(err) != tapedeck.Unauthorized || !strings.Contains(log.String(), "1024 bits") || strings.Contains(log.String(), token[:20]) {
		t.Errorf("from a URL: %v, %s", err, &log)
	}
	if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, weak, claims(nil), nil)); tapedeck.KindOf(err) != tapedeck.Unauthorized {
		t.Errorf("from a URL, without its name: %v", err)
	}
	if who, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, good, claims(nil), nil)); err != nil || who.Subject != "ada" {
		t.Errorf("a good key beside a weak one: %v", err)
	}
}

// TestLogOfRefusals: the log tells the operator why a token is refused, without the token, and
// a flood of them does not fill it.
func TestLogOfRefusals(t *testing.T) {
	var log bytes.Buffer
	v := withSecret(t, Config{Role: "roles"})
	v.log = slog.New(slog.NewTextHandler(&log, nil))
	token := sign(t, jwt.SigningMethodHS256, []byte(secret), claims(map[string]any{"iss": "https://evil", "aud": strings.Repeat("x", 10_000)}), nil)
	for range 1000 {
		if _, err := v.Verify(t.Context(), token); err == nil {
			t.Fatal("it is accepted")
		}
	}
	out := log.String()
	if !strings.Contains(out, "issuer") || !strings.Contains(out, "https://evil") || strings.Contains(out, strings.Split(token, ".")[2]) || len(out) > 20_000 {
		t.Errorf("the log has %d bytes: %.500s", len(out), out)
	}
}

// TestConfig: what is wrong in a configuration is named.
func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"issuer and audience":  {},
		"one of jwks":          {Issuer: "i", Audience: "a", Default: access.User},
		"https://":             {Issuer: "i", Audience: "a", Default: access.User, JWKS: "http://issuer.example/keys"},
		"cannot be used":       {Issuer: "i", Audience: "a", Default: access.User, JWKS: "https://x", Algorithms: []string{"HS256"}},
		`algorithm "none"`:     {Issuer: "i", Audience: "a", Default: access.User, SecretFile: "x", Algorithms: []string{"none"}},
		"default is needed":    {Issuer: "i", Audience: "a", SecretFile: "x"},
		"the role \"agent\"":   {Issuer: "i", Audience: "a", SecretFile: "x", Role: "r", Roles: map[string]access.Role{"x": access.Agent}},
		"leeway is a duration": {Issuer: "i", Audience: "a", SecretFile: "x", Default: access.User, Leeway: "1h"},
		"cannot be read":       {Issuer: "i", Audience: "a", SecretFile: "/does/not/exist", Default: access.User},
	} {
		if _, err := New(t.Context(), c, discard); tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
