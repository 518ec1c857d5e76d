package deck

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/gate"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/access/guard"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/protocol/durable/subscription"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/server"
)

// Access says who sends a request.
type Access struct {
	// Verifiers know the tokens. They are asked one after the other. Without any, nobody
	// can use the handler.
	Verifiers []gate.Verifier

	// Run is called when the deck opens, and until it closes: it notices changes of the
	// tokens. Nil: there are none.
	Run func(ctx context.Context)
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
	d.issuer = issuer
	d.guard = guard.New(guard.Options{Store: d.hub, Verbs: d.engine, Views: d.views, Search: d.search, Workflows: d.workflows, Issuer: issuer})
	d.hub.Observe(d.guard.Observer())
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
	tokens   rest.Tokens // nil without access control

	workflows rest.Workflows
}

func (d *Deck) used() used {
	if g := d.guard; g != nil {
		return used{g.Sessions, g.Verbs, g.Views, g.Search, g.Tokens, g.Workflows}
	}
	return used{d.hub, d.engine, d.views, d.search, nil, d.workflows}
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
	if d.guard == nil {
		return s
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := access.From(r.Context())
		switch {
		case who != nil && who.IsUnlimited(), who == nil: // without an identity it is public, or the request of a worker
			s.ServeHTTP(w, r)
		default:
			problem.Write(w, r, tapedeck.Errorf(tapedeck.Forbidden, "subscriptions are for admins"), d.options.Logger)
		}
	})
}

// asSystem gives background work the identity of the server.
func (d *Deck) asSystem(run func(context.Context)) func(context.Context) {
	if d.guard == nil {
		return run
	}
	return func(ctx context.Context) { run(access.With(ctx, access.System)) }
}
