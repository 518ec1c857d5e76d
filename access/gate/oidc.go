package gate

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// A Provider logs people in at an identity provider.
type Provider interface {
	Verifier
	Host() string
	Secure() bool
	Begin(ctx context.Context, next string) (address, kept string, err error)
	Finish(ctx context.Context, kept string, answer url.Values) (token string, who *access.Identity, next string, err error)
}

// WithProvider makes /login offer a log-in at an identity provider, too.
func (g *Gate) WithProvider(p Provider) *Gate {
	g.provider = p
	g.verifiers = append([]Verifier{p}, g.verifiers...)
	return g
}

// flowCookie is the name of the cookie that a browser has while its user is at the identity
// provider. It is Lax, because the request that brings it back comes from there.
const flowCookie = "tapedeck_flow"

func (g *Gate) flow(value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: flowCookie, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: age, Secure: g.provider.Secure(),
	}
}

// flowAge is how long the cookie lives, in seconds. What it contains expires, too.
const flowAge = 600

// provide serves the log-in at an identity provider. It reports false for other requests.
func (g *Gate) provide(w http.ResponseWriter, r *http.Request) bool {
	q := r.URL.Query()
	var err error
	switch {
	case g.provider == nil || r.Method != http.MethodGet:
		return false
	case q.Get("with") == "oidc":
		err = g.leave(w, r, q.Get("next"))
	case q.Has("state") && (q.Has("code") || q.Has("error")):
		err = g.arrive(w, r, q)
	default:
		return false
	}
	if err != nil {
		g.explain(w, r, err)
	}
	return true
}

// leave sends a browser to the identity provider.
func (g *Gate) leave(w http.ResponseWriter, r *http.Request, next string) error {
	address, kept, err := g.provider.Begin(r.Context(), next)
	if err != nil {
		return err
	}
	http.SetCookie(w, g.flow(kept, flowAge))
	http.Redirect(w, r, address, http.StatusFound)
	return nil
}

// arrive logs a browser in that comes back. A page of our own leads on, not a redirect: a
// browser sends no strict cookie along a redirect that began at another site.
func (g *Gate) arrive(w http.ResponseWriter, r *http.Request, q url.Values) error {
	kept := ""
	if c, err := r.Cookie(flowCookie); err == nil {
		kept = c.Value
	}
	http.SetCookie(w, g.flow("", -1)) // an answer counts once
	token, who, next, err := g.provider.Finish(r.Context(), kept, q)
	if err != nil {
		return err
	}
	c := cookie(r, token, who.Expires)
	c.Secure = c.Secure || g.provider.Secure()
	if len(c.String()) > maxCookie {
		return tapedeck.Errorf(tapedeck.TooLarge, "the identity is too long for a cookie, so a browser cannot keep it")
	}
	if g.LoggedIn != nil {
		if err := g.LoggedIn(r, who, true); err != nil {
			return err
		}
	}
	http.SetCookie(w, c)
	writePage(w, http.StatusOK, onward{Next: httpapi.Prefix(r) + next})
	return nil
}

// explain tells a person why the log-in failed. The log has the reason of an error that
// leaves it out.
func (g *Gate) explain(w http.ResponseWriter, r *http.Request, err error) {
	kind := tapedeck.KindOf(err)
	page := onward{Problem: "the log-in failed", Login: httpapi.Prefix(r) + "/login"}
	var e *tapedeck.Error
	if errors.As(err, &e) && kind != tapedeck.Internal {
		page.Problem = e.Message
	}
	cause := errors.Unwrap(err)
	g.log.Warn("a log-in at the identity provider failed", "error", err, "cause", cause)
	writePage(w, problem.Status(kind), page)
}

type onward struct{ Next, Problem, Login string }

var onwardPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
{{with .Next}}<meta http-equiv="refresh" content="0;url={{.}}">{{end}}
<title>Log in – Tapedeck</title>
<main>
{{if .Problem}}<h1>You are not logged in</h1>
<p role="alert">{{.Problem}}.</p>
<p><a href="{{.Login}}">Log in again</a></p>
{{else}}<p>You are logged in. <a href="{{.Next}}">Go on</a></p>{{end}}
</main>
</html>
`))

func writePage(w http.ResponseWriter, status int, p onward) {
	var b bytes.Buffer
	if err := onwardPage.Execute(&b, p); err != nil {
		status = http.StatusInternalServerError
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the address has the code of the identity provider
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // fails only if the client has disconnected
}
