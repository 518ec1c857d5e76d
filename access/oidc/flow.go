package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	mapping "github.com/tapedeck/tapedeck/access/jwt"
)

// Prefix begins every token of a log-in.
const Prefix = "tdl_"

// The audiences of what the key signs: one cannot be used as the other.
const (
	forFlow  = "flow"
	forLogin = "login"
)

// A flow is what the browser keeps while its user is at the issuer. It is signed. The
// verifier of PKCE is in it, because only this browser and this server see it.
type flow struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Next     string `json:"next"`
	jwt.RegisteredClaims
}

// A session is a log-in.
type session struct {
	Role   access.Role `json:"role"`
	Client string      `json:"client"` // of the issuer; another one in the configuration ends all log-ins
	jwt.RegisteredClaims
}

func (p *Provider) sign(c jwt.Claims) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(p.key)
}

func (p *Provider) read(text, audience string, c jwt.Claims) error {
	_, err := jwt.ParseWithClaims(text, c, func(*jwt.Token) (any, error) { return p.key, nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithAudience(audience), jwt.WithIssuer(p.config.Issuer),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(p.now), jwt.WithStrictDecoding())
	return err
}

func (p *Provider) registered(audience string, life time.Duration) jwt.RegisteredClaims {
	return jwt.RegisteredClaims{
		Issuer: p.config.Issuer, Audience: jwt.ClaimStrings{audience}, ExpiresAt: jwt.NewNumericDate(p.now().Add(life)),
	}
}

// Begin returns the address at the issuer where a person logs in, and what the browser
// keeps meanwhile. next is the path where the person goes on afterwards.
func (p *Provider) Begin(ctx context.Context, next string) (address, kept string, err error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", "", err
	}
	f := flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), Local(next), p.registered(forFlow, flowTime)}
	if kept, err = p.sign(f); err != nil {
		return "", "", err
	}
	return p.oauth(found).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), kept, nil
}

func refused(text string) *tapedeck.Error {
	return tapedeck.Errorf(tapedeck.Unauthorized, "%s", text).WithHint("log in again")
}

// Finish reads the answer of the issuer, which a browser brings with what it kept. It
// returns the token of the log-in, and where the person goes on.
func (p *Provider) Finish(ctx context.Context, kept string, answer url.Values) (token string, who *access.Identity, next string, err error) {
	var f flow
	if kept == "" || p.read(kept, forFlow, &f) != nil {
		return "", nil, "", refused("this browser has not begun this log-in, or took too long")
	}
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(f.State)) != 1 {
		return "", nil, "", refused("the answer belongs to another log-in")
	}
	if iss := answer.Get("iss"); iss != "" && iss != p.config.Issuer {
		return "", nil, "", refused("the answer is of another identity provider")
	}
	if answer.Has("error") {
		return "", nil, "", refused("the identity provider has refused the log-in: " + word(answer.Get("error")))
	}
	claims, err := p.exchange(ctx, &f, answer.Get("code"))
	if err != nil {
		return "", nil, "", err
	}
	if who, err = mapping.Identify(p.claims, claims); err != nil {
		return "", nil, "", err
	}
	s := session{who.Role, p.config.ClientID, p.registered(forLogin, p.session)}
	s.Subject = who.Subject
	if token, err = p.sign(s); err != nil {
		return "", nil, "", err
	}
	who.Expires = s.ExpiresAt.Time
	return Prefix + token, who, Local(f.Next), nil
}

// exchange returns the claims of the person, for the code that the issuer gave.
func (p *Provider) exchange(ctx context.Context, f *flow, code string) (map[string]any, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	t, err := p.oauth(found).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return nil, refused("the identity provider does not accept the log-in").Because(reason(err))
	}
	raw, _ := t.Extra("id_token").(string)
	id, err := found.Verifier(&oidc.Config{ClientID: p.config.ClientID, Now: p.now}).Verify(ctx, raw)
	if err != nil {
		return nil, refused("the identity provider has sent no valid identity").Because(err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		return nil, refused("the identity belongs to another log-in")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return nil, refused("the identity cannot be read").Because(err)
	}
	return claims, nil
}

// reason returns an error of the issuer for the log, without its body, which may repeat the
// secret of the client.
func reason(err error) error {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return err
	}
	status := 0
	if answer.Response != nil {
		status = answer.Response.StatusCode
	}
	return fmt.Errorf("the answer has the status %d and the error %s", status, word(answer.ErrorCode))
}

// Verify returns the identity of a token. It is nil without an error for a token of
// another kind.
func (p *Provider) Verify(_ context.Context, token string) (*access.Identity, error) {
	text, ok := strings.CutPrefix(token, Prefix)
	if !ok {
		return nil, nil
	}
	var s session
	if err := p.read(text, forLogin, &s); err != nil || s.Client != p.config.ClientID {
		return nil, refused("the log-in has ended")
	}
	who := &access.Identity{Subject: s.Subject, Role: s.Role, Expires: s.ExpiresAt.Time}
	return who, who.Check()
}

// Local returns a path of this site, or "/" for everything else: a browser takes //host and
// /\host for another site.
func Local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(u.Path, "//") || strings.HasPrefix(next, "//") || strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) || len(next) > 1<<10 {
		return "/"
	}
	return next
}

// word returns an error code of the protocol, which others chose, without what is none.
func word(code string) string {
	for _, r := range code {
		if (r < 'a' || r > 'z') && r != '_' {
			return "for a reason of its own"
		}
	}
	return code[:min(len(code), 64)]
}
