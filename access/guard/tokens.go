package guard

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/api"
)

// Issued makes and revokes the tokens of one session. Only its owner and an admin do.
type Issued struct {
	g      *Guard
	issuer *grants.Issuer
}

// defaultLife is how long a token of a session is valid if the request does not say.
const defaultLife = time.Hour

// Issue makes a token of a session.
func (v *Issued) Issue(ctx context.Context, n api.NewToken) (api.IssuedToken, error) {
	ctx, i, err := v.g.allow(ctx, n.Session, access.Own)
	if err != nil {
		return api.IssuedToken{}, err
	}
	s, err := v.g.head(ctx, n.Session)
	switch {
	case err != nil:
		return api.IssuedToken{}, err
	case s.Kind != tapedeck.KindSession:
		return api.IssuedToken{}, notFound(n.Session)
	case n.Before != nil && *n.Before < 1:
		return api.IssuedToken{}, tapedeck.Errorf(tapedeck.Invalid, "before must be above 0").WithHint("leave it out for a token of the whole session")
	case n.Before != nil && *n.Before > s.Head:
		return api.IssuedToken{}, tapedeck.Errorf(tapedeck.Invalid, "before is %d, and session %s has %d events", *n.Before, n.Session, s.Head).
			WithHint("give an offset up to that, or leave it out for a token of the whole session")
	case access.Role(n.Role) == access.Agent && n.Invocation == "":
		return api.IssuedToken{}, tapedeck.Errorf(tapedeck.Invalid, "a token of the role agent needs the invocation of an open run, which it writes").
			WithHint("give it, on the command line with --role agent --run; %s", openRuns(&s))
	case access.Role(n.Role) == access.Agent:
		if _, open := runOf(&s, n.Invocation); !open {
			return api.IssuedToken{}, noRun(&s, n.Invocation)
		}
	}
	grant := grants.Grant{
		Subject: i.Subject, Role: access.Role(n.Role), Session: s.ID, Gen: s.Gen, Forks: n.Forks, Invocation: n.Invocation,
		Name: n.Name, Expires: time.Now().Add(defaultLife).Unix(), By: i.Subject, With: i.Token,
	}
	if n.Before != nil {
		grant.Before = *n.Before
	}
	if n.Expires != nil {
		grant.Expires = n.Expires.Unix()
	}
	switch {
	case n.Subject != "" && n.Subject != i.Subject && i.Role != access.Admin && grant.Role != access.Agent:
		return api.IssuedToken{}, tapedeck.Errorf(tapedeck.Forbidden, "only an admin makes tokens for others")
	case n.Subject != "":
		grant.Subject = n.Subject
	}
	if i.Role != access.Admin { // otherwise many names of agents would have many quotas
		grant.Payer = cmp.Or(i.Payer, i.Subject)
	}
	if end := i.Expires; !end.IsZero() && grant.Role == access.User && grant.Expires > end.Unix() {
		grant.Expires = end.Unix() // it does not outlive the one who may write
	}
	token, err := v.issuer.Sign(&grant)
	if err != nil {
		return api.IssuedToken{}, err
	}
	return api.IssuedToken{
		ID: grant.ID, Token: token, Session: s.ID, Role: n.Role, Subject: grant.Subject, Expires: time.Unix(grant.Expires, 0).UTC(),
	}, nil
}

// noRun returns the error of a run for which no token can be made: nobody could use it.
func noRun(s *tapedeck.Session, invocation string) error {
	return tapedeck.Errorf(tapedeck.NotFound, "session %s has no open run %.128q", s.ID, invocation).WithHint("%s", openRuns(s))
}

// openRuns names the open runs of a session, or says how it gets one.
func openRuns(s *tapedeck.Session) string {
	if len(s.Runs) == 0 {
		return "the session has no open run: start one with tapedeck run or a task, or let the agent's maker append RUN_STARTED (tapedeck append)"
	}
	var open []string
	for _, r := range s.Runs[:min(len(s.Runs), maxNamedRuns)] {
		open = append(open, r.Invocation)
	}
	return "the open runs of the session are " + strings.Join(open, ", ")
}

// maxNamedRuns is how many open runs a hint names.
const maxNamedRuns = 10

// Revoke revokes a token of a session; without an id all that were made so far.
func (v *Issued) Revoke(ctx context.Context, session, id string) error {
	ctx, _, err := v.g.allow(ctx, session, access.Own)
	if err != nil {
		return err
	}
	s, err := v.g.head(ctx, session)
	if err != nil {
		return err
	}
	if id == "" {
		return v.issuer.RevokeAll(s.Gen)
	}
	return v.issuer.Revoke(s.Gen, id)
}

// List lists the tokens of a session that have a name.
func (v *Issued) List(ctx context.Context, session string) (api.SessionTokens, error) {
	out := api.SessionTokens{Tokens: []api.SessionToken{}}
	ctx, _, err := v.g.allow(ctx, session, access.Own)
	if err != nil {
		return out, err
	}
	s, err := v.g.head(ctx, session)
	if err != nil {
		return out, err
	}
	for _, n := range v.issuer.Named(s.Gen) {
		out.Tokens = append(out.Tokens, listed(&n))
	}
	return out, nil
}

func listed(n *grants.Named) api.SessionToken {
	return api.SessionToken{
		ID: n.ID, Name: n.Name, Role: string(n.Role), Subject: n.Subject, Before: n.Before, Forks: n.Forks,
		Session: n.Session, Invocation: n.Invocation, IssuedBy: n.By,
		Created: time.UnixMilli(n.Issued).UTC(), Expires: time.Unix(n.Expires, 0).UTC(),
	}
}

// maxListed is the longest list of tokens.
const maxListed = 1000

// ListIssued lists the tokens of all sessions, or those that a subject issued.
func (v *Issued) ListIssued(ctx context.Context, by string) (api.SessionTokens, error) {
	out := api.SessionTokens{Tokens: []api.SessionToken{}}
	if err := forAdmins(ctx, "the tokens of all sessions"); err != nil {
		return out, err
	}
	all := v.issuer.Issued(by)
	out.More = len(all) > maxListed
	for _, n := range all[:min(len(all), maxListed)] {
		out.Tokens = append(out.Tokens, listed(&n))
	}
	return out, nil
}

// RevokeIssued revokes all tokens of sessions that a subject issued so far.
func (v *Issued) RevokeIssued(ctx context.Context, by string) error {
	if err := forAdmins(ctx, "the tokens of all sessions"); err != nil {
		return err
	}
	return v.issuer.RevokeBy(by)
}
