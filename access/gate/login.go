package gate

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// Cookie is the name of the cookie of the screen. Its value is the token with which its
// user has logged in; scripts of a page cannot read it.
const Cookie = "tapedeck_token"

// loginHeader must be in a request that logs in or out. A form of another site cannot set
// it, so no site can log a user in with a token of its own.
const loginHeader = "Tapedeck-Login"

// sameSite refuses the cookie in a request that a page of another site has caused.
func sameSite(r *http.Request) error {
	if err := protection.Check(r); err != nil {
		return tapedeck.Errorf(tapedeck.Forbidden, "pages of another site may not use the log-in of this one")
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	return tapedeck.Errorf(tapedeck.Forbidden, "pages of another site may not use the log-in of this one")
}

var protection = http.NewCrossOriginProtection()

// A login is what GET /login answers.
type login struct {
	Subject string      `json:"subject"`
	Role    access.Role `json:"role"`
	Expires *time.Time  `json:"expires,omitempty"`
}

// Login serves /login. GET sends the page to people, and tells a program who is logged in.
// POST with {"token"} logs in. DELETE logs out.
func (g *Gate) Login() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if g.provide(w, r) {
			return
		}
		if err := g.login(w, r); err != nil {
			problem.Write(w, r, err, g.log)
		}
	})
}

func (g *Gate) login(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		w.Header().Set("Vary", "Accept, Cookie")
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			servePage(w, g.provider)
			return nil
		}
		in, err := g.Authenticate(r)
		if err != nil {
			return err
		}
		return answerLogin(w, access.From(in.Context()))
	case http.MethodPost, http.MethodDelete:
	default:
		return problem.MethodNotAllowed(w, r, http.MethodGet, http.MethodPost, http.MethodDelete)
	}
	if err := sameSite(r); err != nil {
		return err
	}
	if r.Header.Get(loginHeader) != "1" {
		return tapedeck.Errorf(tapedeck.Forbidden, "a log-in has the header %s: 1", loginHeader)
	}
	if r.Method == http.MethodDelete {
		if in, err := g.Authenticate(r); err == nil && g.LoggedIn != nil {
			if err := g.LoggedIn(r, access.From(in.Context()), false); err != nil {
				g.log.Warn("a log-out was not recorded", "error", err) // it must be possible all the same
			}
		}
		http.SetCookie(w, cookie(r, "", time.Unix(1, 0)))
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return g.logIn(w, r)
}

// maxCookie is how many bytes of a cookie every browser keeps (RFC 6265, section 6.1).
const maxCookie = 4096

func (g *Gate) logIn(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Token string `json:"token"`
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxToken+1<<10))
	if err == nil {
		err = json.Unmarshal(b, &body)
	}
	if err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, `the body is not {"token": …}`)
	}
	token := strings.TrimSpace(body.Token)
	if token == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the log-in has no token").WithHint(`send the token in the body: {"token": "td_…"}`)
	}
	who, err := g.Verify(r.Context(), token)
	if err != nil {
		return err
	}
	c := cookie(r, token, who.Expires)
	if len(c.String()) > maxCookie {
		return tapedeck.Errorf(tapedeck.TooLarge, "the token is too long for a cookie, so a browser cannot keep it").
			WithHint("a cookie has at most %d bytes; let the identity provider issue a token with fewer claims", maxCookie)
	}
	if g.LoggedIn != nil {
		if err := g.LoggedIn(r, who, true); err != nil {
			return err
		}
	}
	http.SetCookie(w, c)
	return answerLogin(w, who)
}

func answerLogin(w http.ResponseWriter, who *access.Identity) error {
	out := login{Subject: who.Subject, Role: who.Role}
	if !who.Expires.IsZero() {
		out.Expires = &who.Expires
	}
	return httpapi.WriteJSON(w, http.StatusOK, out)
}

// cookie returns the cookie of a log-in. Behind a proxy that ends TLS it is Secure, too.
func cookie(r *http.Request, token string, expires time.Time) *http.Cookie {
	return &http.Cookie{
		Name: Cookie, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Expires: expires,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
}

// Open serves /login of a server without access control: nobody logs in, and a program
// learns that.
func Open(log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			problem.Write(w, r, problem.MethodNotAllowed(w, r, http.MethodGet), log)
		case strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, httpapi.Prefix(r)+"/", http.StatusFound)
		default:
			_ = httpapi.WriteJSON(w, http.StatusOK, struct{}{}) // fails only if the client has disconnected
		}
	})
}
