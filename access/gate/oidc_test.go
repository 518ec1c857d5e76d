package gate_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/access/oidc"
)

const clientSecret = "canary-of-the-client"

// An issuer is a small identity provider. It checks PKCE, the client and the address as a
// real one does.
type issuer struct {
	*httptest.Server
	key       *rsa.PrivateKey
	challenge map[string]url.Values // requests to log in, by code
	change    func(jwt.MapClaims)   // changes the claims of an identity; nil for none
	sign      func(jwt.MapClaims) string
	redirect  string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, challenge: map[string]url.Values{}}
	i.sign = func(c jwt.MapClaims) string {
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
		token.Header["kid"] = "one"
		s, err := token.SignedString(key)
		if err != nil {
			t.Error(err)
		}
		return s
	}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		answer(w, 200, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		asked, known := i.challenge[r.FormValue("code")]
		delete(i.challenge, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		if !known || asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			r.FormValue("redirect_uri") != i.redirect || id != "deck" || secret != clientSecret {
			answer(w, 400, map[string]string{"error": "invalid_grant", "error_description": "you sent " + secret}) // some repeat everything
			return
		}
		c := jwt.MapClaims{"iss": i.URL, "aud": "deck", "sub": "ada", "groups": []string{"staff"}, "nonce": asked.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
		if i.change != nil {
			i.change(c)
		}
		answer(w, 200, map[string]string{"access_token": "x", "token_type": "Bearer", "id_token": i.sign(c)})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// approve plays the person at the issuer: it returns the query with which the browser comes
// back.
func (i *issuer) approve(t *testing.T, address string) url.Values {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, i.URL+"/authorize?") || u.Query().Get("client_id") != "deck" || u.Query().Get("response_type") != "code" {
		t.Fatalf("the browser was sent to %s, %v", address, err)
	}
	i.redirect = u.Query().Get("redirect_uri")
	i.challenge["code"] = u.Query()
	return url.Values{"code": {"code"}, "state": {u.Query().Get("state")}, "iss": {i.URL}}
}

// A site is a server with a log-in.
type site struct {
	http.Handler
	gate *gate.Gate
	log  *bytes.Buffer
}

func newSite(t *testing.T, i *issuer, change func(*oidc.Config), key string) *site {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(clientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := oidc.Config{Issuer: i.URL, ClientID: "deck", ClientSecretFile: file, RedirectURL: "https://deck.example/login", Role: "groups", Roles: map[string]access.Role{"staff": "user"}}
	if change != nil {
		change(&c)
	}
	p, err := oidc.New(c, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{log: &bytes.Buffer{}}
	s.gate = gate.New(slog.New(slog.NewTextHandler(s.log, nil))).WithProvider(p)
	s.Handler = s.gate.Login()
	return s
}

func (s *site) get(query string, cookies ...*http.Cookie) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "/login?"+query, nil)
	r.Header.Set("Accept", "text/html")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

// begin sends a browser to the issuer.
func (s *site) begin(t *testing.T, next string) (address string, flow *http.Cookie) {
	t.Helper()
	resp := s.get("with=oidc&next=" + url.QueryEscape(next))
	if resp.StatusCode != http.StatusFound || len(resp.Cookies()) != 1 {
		t.Fatalf("status %d, %v", resp.StatusCode, resp.Header)
	}
	return resp.Header.Get("Location"), resp.Cookies()[0]
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func loginOf(resp *http.Response) *http.Cookie {
	for _, c := range resp.Cookies() {
		if c.Name == gate.Cookie {
			return c
		}
	}
	return nil
}

func TestProviderLogin(t *testing.T) {
	i := newIssuer(t)
	s := newSite(t, i, nil, "key")
	if page := text(t, s.get("")); !strings.Contains(page, `<p id="sso">`) || !strings.Contains(page, "Log in with "+strings.TrimPrefix(i.URL, "http://")) {
		t.Error("the page does not offer the log-in")
	}
	address, flow := s.begin(t, "/s/one?at=3")
	if !flow.HttpOnly || !flow.Secure || flow.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie of the way is %+v", flow)
	}
	resp := s.get(i.approve(t, address).Encode(), flow)
	c, body := loginOf(resp), text(t, resp)
	if resp.StatusCode != 200 || c == nil || !strings.Contains(body, `content="0;url=/s/one?at=3"`) {
		t.Fatalf("status %d, %v: %s\n%s", resp.StatusCode, resp.Cookies(), body, s.log)
	}
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || time.Until(c.Expires) < 7*time.Hour || time.Until(c.Expires) > 9*time.Hour {
		t.Errorf("the cookie is %+v", c)
	}
	who, err := s.gate.Verify(t.Context(), c.Value)
	if err != nil || who.Subject != "ada" || who.Role != "user" {
		t.Errorf("it is %+v, %v", who, err)
	}
	if resp := s.get(i.approve(t, address).Encode()); loginOf(resp) != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the cookie: status %d", resp.StatusCode)
	}
	for name, other := range map[string]*site{
		"another key":    newSite(t, i, nil, "other"),
		"another client": newSite(t, i, func(c *oidc.Config) { c.ClientID = "other" }, "key"),
	} {
		if who, err := other.gate.Verify(t.Context(), c.Value); who != nil || tapedeck.KindOf(err) != tapedeck.Unauthorized {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	if who, err := s.gate.Verify(t.Context(), oidc.Prefix+flow.Value); who != nil || err == nil {
		t.Errorf("the cookie of the way is a log-in: %+v, %v", who, err)
	}
}

// TestProviderRefuses: nobody is logged in, the page says why, and neither page nor log has
// the secret of the client.
func TestProviderRefuses(t *testing.T) {
	claim := func(name string, v any) func(*issuer) {
		return func(i *issuer) { i.change = func(c jwt.MapClaims) { c[name] = v } }
	}
	for name, tt := range map[string]struct {
		spoil func(i *issuer)
		query func(url.Values)
		want  string
	}{
		"another state":       {nil, func(q url.Values) { q.Set("state", "x") }, "belongs to another log-in"},
		"another provider":    {nil, func(q url.Values) { q.Set("iss", "https://evil.example") }, "of another identity provider"},
		"a refusal":           {nil, func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, "has refused the log-in: access_denied"},
		"a refusal with HTML": {nil, func(q url.Values) { q.Set("error", "<script>x</script>") }, "for a reason of its own"},
		"an unknown code":     {nil, func(q url.Values) { q.Set("code", "y") }, "does not accept the log-in"},
		"another nonce":       {claim("nonce", "x"), nil, "identity belongs to another log-in"},
		"no nonce":            {claim("nonce", ""), nil, "identity belongs to another log-in"},
		"another audience":    {claim("aud", "other"), nil, "no valid identity"},
		"another issuer":      {claim("iss", "https://evil.example"), nil, "no valid identity"},
		"an expired identity": {claim("exp", 1), nil, "no valid identity"},
		"no role":             {claim("groups", []string{"guests"}), nil, "none of the roles"},
		"no subject":          {claim("sub", ""), nil, "no subject"},
		"not signed": {func(i *issuer) {
			i.sign = func(c jwt.MapClaims) string {
				s, _ := jwt.NewWithClaims(jwt.SigningMethodNone, c).SignedString(jwt.UnsafeAllowNoneSignatureType)
				return s
			}
		}, nil, "no valid identity"},
		"signed by another key": {func(i *issuer) {
			i.sign = func(c jwt.MapClaims) string {
				s, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte("x"))
				return s
			}
		}, nil, "no valid identity"},
		"an issuer that is away": {func(i *issuer) { i.Close() }, nil, "does not accept the log-in"},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t)
			s := newSite(t, i, nil, "key")
			address, flow := s.begin(t, "/")
			q := i.approve(t, address)
			if tt.spoil != nil {
				tt.spoil(i)
			}
			if tt.query != nil {
				tt.query(q)
			}
			resp := s.get(q.Encode(), flow)
			body := text(t, resp)
			if loginOf(resp) != nil || resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, tt.want) || strings.Contains(body, "<script>") {
				t.Errorf("status %d: %s", resp.StatusCode, body)
			}
			if all := body + s.log.String(); strings.Contains(all, "canary") {
				t.Errorf("the secret is in %s", all)
			}
		})
	}
}

// TestProviderAway: without the issuer the page still answers, and the reason is clear.
func TestProviderAway(t *testing.T) {
	i := newIssuer(t)
	i.Close()
	s := newSite(t, i, nil, "key")
	resp := s.get("with=oidc")
	if body := text(t, resp); resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "cannot be asked") {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	if resp := s.get(""); resp.StatusCode != 200 {
		t.Errorf("the page has the status %d", resp.StatusCode)
	}
}

// TestProviderEnds: a log-in ends after its time.
func TestProviderEnds(t *testing.T) {
	i := newIssuer(t)
	s := newSite(t, i, func(c *oidc.Config) { c.Session = "1m" }, "key")
	address, flow := s.begin(t, "/")
	c := loginOf(s.get(i.approve(t, address).Encode(), flow))
	if c == nil || time.Until(c.Expires) > time.Minute {
		t.Fatalf("the cookie is %+v", c)
	}
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(strings.TrimPrefix(c.Value, oidc.Prefix), claims); err != nil {
		t.Fatal(err)
	}
	claims["exp"] = time.Now().Add(-time.Second).Unix()
	old, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	if who, err := s.gate.Verify(t.Context(), oidc.Prefix+old); who != nil || tapedeck.KindOf(err) != tapedeck.Unauthorized {
		t.Errorf("after its end: %+v, %v", who, err)
	}
}

// TestLocal: a log-in never leads to another site.
func TestLocal(t *testing.T) {
	for in, want := range map[string]string{
		"/s/x?at=3#y": "/s/x?at=3#y", "": "/", "s": "/", "//evil": "/", "/\\evil": "/", "\\\\evil": "/", "https://evil": "/", "/%2f/evil": "/",
		"/\t/evil": "/", "javascript:x": "/", "/x\ny": "/", "/" + strings.Repeat("x", 2000): "/",
	} {
		if got := oidc.Local(in); got != want {
			t.Errorf("%q leads to %q", in, got)
		}
	}
}

func TestProviderConfig(t *testing.T) {
	good := oidc.Config{Issuer: "https://login.example", ClientID: "deck", RedirectURL: "https://deck.example/login", Default: "reader"}
	for want, change := range map[string]func(*oidc.Config){
		"":                   func(*oidc.Config) {},
		"client_id":          func(c *oidc.Config) { c.ClientID = "" },
		"issuer is a URL":    func(c *oidc.Config) { c.Issuer = "http://login.example" },
		"redirect_url is a":  func(c *oidc.Config) { c.RedirectURL = "deck.example/login" },
		"ends with /login":   func(c *oidc.Config) { c.RedirectURL = "https://deck.example/callback" },
		"default is needed":  func(c *oidc.Config) { c.Default = "" },
		"the role \"agent\"": func(c *oidc.Config) { c.Default = "agent" },
		"session is":         func(c *oidc.Config) { c.Session = "1000h" },
		"cannot be read":     func(c *oidc.Config) { c.ClientSecretFile = "/does/not/exist" },
	} {
		c := good
		change(&c)
		if _, err := oidc.New(c, nil); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
