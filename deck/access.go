package deck

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/access/guard"
	"github.com/tapedeck/tapedeck/access/oidc"
	"github.com/tapedeck/tapedeck/access/quota"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/server"
)

// Access says who sends a request.
type Access struct {
	// Verifiers know the tokens. They are asked one after the other. Without any, nobody
	// can use the handler. One that is a [gate.Keeper] also ends what was made with its tokens.
	Verifiers []gate.Verifier

	// OIDC lets people log in at an identity provider; nil for none.
	OIDC *oidc.Config

	// Run is called when the deck opens, and until it closes: it notices changes of the
	// tokens. Nil: there are none.
	Run func(ctx context.Context)

	// Changes calls use, from a goroutine of Run, for each change of the tokens that come from
	// a file. It is called once, before Run. Nil: nobody knows of changes.
	Changes func(use func(TokenChange))

	// Quotas returns the limits of an account, as of now. It is called for each request that
	// uses some of them. Nil: there are none.
	Quotas func(quota.Key) quota.Limits
}

// kept returns a context that is done when the token is no longer kept, nil if no verifier
// keeps it.
func (a *Access) kept(token string) context.Context {
	for _, v := range a.Verifiers {
		if k, ok := v.(gate.Keeper); ok {
			if until := k.Kept(token); until != nil {
				return until
			}
		}
	}
	return nil
}

// openAccess starts to control the access, if the options say so. The key of the tokens of
// sessions is in the data folder dir.
func (d *Deck) openAccess(dir string) error {
	if d.options.Access == nil {
		return nil
	}
	if d.options.InMemory {
		dir = ""
	}
	issuer, err := grants.Open(dir)
	if err != nil {
		return err
	}
	d.issuer, issuer.Kept = issuer, d.options.Access.kept
	if c := d.options.Access.OIDC; c != nil {
		if d.provider, err = oidc.New(*c, issuer.Key("oidc")); err != nil {
			return err
		}
	}
	d.guard = guard.New(guard.Options{Store: d.recordedStore(), Verbs: d.verbs, Refused: d.refused(), Uses: d.uses(), Drives: d.engine.Drives, Views: d.views, Search: d.search, Workflows: d.workflows, Issuer: issuer, Quotas: d.options.Access.Quotas})
	d.hub.Observe(d.guard.Observer())
	if changes := d.options.Access.Changes; changes != nil && d.auditor != nil {
		changes(d.auditor.tokenChanged)
	}
	if run := d.options.Access.Run; run != nil {
		d.runInBackground(run)
	}
	return nil
}

// used is what the protocols use: the parts of the deck, or those of its guard.
type used struct {
	sessions guard.Store
	verbs    guard.Verbs
	views    guard.Views
	search   guard.Search
	tokens   rest.Tokens   // nil without access control
	operator rest.Operator // nil without metrics
	audit    rest.Audit

	workflows rest.Workflows
}

func (d *Deck) used() used {
	var o rest.Operator // not the nil of another type
	if d.operator != nil {
		o = d.operator
	}
	if g := d.guard; g != nil {
		if o != nil {
			o = guard.Operate(o)
		}
		return used{g.Sessions, g.Verbs, g.Views, g.Search, d.tokens(), o, guard.Audited(d), g.Workflows}
	}
	return used{d.recordedStore(), d.verbs, d.views, d.search, nil, o, d, d.workflows}
}

// recordedStore returns the store with the audit log.
func (d *Deck) recordedStore() guard.Store {
	if d.auditor == nil {
		return d.hub
	}
	return recordedStore{d.hub, d.auditor}
}

// tokens returns the guarded tokens of sessions with the audit log.
func (d *Deck) tokens() rest.Tokens {
	if d.auditor == nil {
		return d.guard.Tokens
	}
	return recordedTokens{d.guard.Tokens, d.auditor}
}

// refused returns what the guard calls after a refusal, nil for nothing.
func (d *Deck) refused() func(context.Context, string) {
	if d.auditor == nil {
		return nil
	}
	return d.auditor.refused
}

// forkAt forks a session for the Durable Streams protocol.
func (u used) forkAt(ctx context.Context, id, parent string, at int64) (tapedeck.Session, error) {
	return u.verbs.Fork(ctx, api.Fork{ID: id, Parent: parent, At: &at})
}

// control makes a server ask for tokens, if there is access control.
func (d *Deck) control(o *server.Options) {
	if d.guard == nil {
		o.Login = gate.Open(d.options.Logger)
		return
	}
	g := gate.New(d.options.Logger, append([]gate.Verifier{d.issuer}, d.options.Access.Verifiers...)...)
	if d.provider != nil {
		g = g.WithProvider(d.provider)
	}
	g.LoggedIn = d.auditor.loggedIn
	o.Login = g.Login()
	o.Authenticate = func(r *http.Request) (*http.Request, error) {
		if d.dispatcher != nil && d.dispatcher.IsWorker(r) {
			return r, nil
		}
		return g.Authenticate(r)
	}
}

// subscriptions serves subscriptions. They tell of all sessions, so with access control
// they are for admins. A worker that has a wake needs only the token of that.
func (d *Deck) subscriptions(s *subscription.Dispatcher) http.Handler {
	return d.forAdmins(s, "subscriptions are", true)
}

// forAdmins serves a handler to admins, if there is access control. A request without an
// identity is public, or that of a worker; it is served if anonymous is set.
func (d *Deck) forAdmins(next http.Handler, these string, anonymous bool) http.Handler {
	if d.guard == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := access.From(r.Context())
		if who == nil && !anonymous || who != nil && !who.IsUnlimited() {
			problem.Write(w, r, tapedeck.Errorf(tapedeck.Forbidden, "%s for admins", these), d.options.Logger)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// asSystem gives background work the identity of the server.
func (d *Deck) asSystem(run func(context.Context)) func(context.Context) {
	if d.guard == nil {
		return run
	}
	return func(ctx context.Context) { run(access.With(ctx, access.System)) }
}
