package deck

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/internal/intake"
	"github.com/tapedeck/tapedeck/server"
)

// logsRequests reports whether the log has a line for each request.
func (o *Options) logsRequests() bool {
	return o.LogRequests || o.Logger.Enabled(context.Background(), slog.LevelDebug)
}

// A note has the session that a request uses, for the log: of the protocols, only some have
// it in the path.
type note struct{ session atomic.Pointer[string] }

type noteKey struct{}

// noting is a store that notes the first session that a request uses.
type noting struct{ tapedeck.Store }

func noteSession(ctx context.Context, id string) {
	if n, ok := ctx.Value(noteKey{}).(*note); ok && !strings.HasPrefix(id, tapedeck.ViewPrefix) {
		n.session.CompareAndSwap(nil, &id)
	}
}

// Append implements [tapedeck.Log].
func (s noting) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	noteSession(ctx, a.Session)
	return s.Store.Append(ctx, a)
}

// Create implements [tapedeck.Log].
func (s noting) Create(ctx context.Context, spec tapedeck.Spec) (tapedeck.Created, error) {
	noteSession(ctx, cmp.Or(spec.Parent, spec.ID))
	return s.Store.Create(ctx, spec)
}

// Read implements [tapedeck.Log].
func (s noting) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	noteSession(ctx, session)
	return s.Store.Read(ctx, session, r)
}

// Head implements [tapedeck.Catalogue].
func (s noting) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	noteSession(ctx, session)
	return s.Store.Head(ctx, session)
}

// Delete implements [tapedeck.Catalogue].
func (s noting) Delete(ctx context.Context, session string) error {
	noteSession(ctx, session)
	return s.Store.Delete(ctx, session)
}

// uses returns what the guard calls for each session that is asked for: what a view has in
// memory, no store sees.
func (d *Deck) uses() func(ctx context.Context, session string) {
	if !d.options.logsRequests() {
		return nil
	}
	return noteSession
}

// describe makes a server log requests, with who sent each and its session.
func (d *Deck) describe(o *server.Options) {
	o.LogRequests = d.options.LogRequests
	if !d.options.logsRequests() {
		return
	}
	mark := o.Mark
	o.Mark = func(r *http.Request) *http.Request {
		if mark != nil {
			r = mark(r)
		}
		return r.WithContext(context.WithValue(r.Context(), noteKey{}, &note{}))
	}
	o.About = func(r *http.Request) (sender, session string) {
		if i := access.From(r.Context()); i != nil {
			sender = i.Actor()
		}
		if n, ok := r.Context().Value(noteKey{}).(*note); ok {
			if id := n.session.Load(); id != nil {
				session = *id
			}
		}
		return sender, session
	}
}

// newBodies returns the budget of memory for the bodies of requests. What a user sends counts
// for the user, from wherever it comes.
func newBodies(budget int64) *intake.Gate {
	g := intake.New(budget)
	g.Sender = func(r *http.Request) string {
		if i := access.From(r.Context()); i != nil {
			return cmp.Or(i.Payer, i.Subject)
		}
		return " " + intake.Address(r) // no subject begins with a space
	}
	return g
}
