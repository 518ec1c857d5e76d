package deck

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/internal/lru"
	"github.com/tapedeck/tapedeck/server"
)

// An auditor writes the audit log of a deck. A nil auditor writes nothing.
type auditor struct {
	dir   string // the data folder
	log   *audit.Log
	local string // the actor of the command line; "" in another program

	mu    sync.Mutex
	rates lru.Map[string, *rate.Limiter] // of subjects that are no admins
}

// newAuditor returns the auditor of the data folder dir, nil if there is none.
func newAuditor(dir string, o *Options) *auditor {
	if o.InMemory || o.NoAudit {
		return nil
	}
	return &auditor{dir: dir, log: audit.Open(dir, audit.Options{Logger: o.Logger}), local: o.AuditActor}
}

func (a *auditor) close() {
	if a != nil {
		a.log.Close()
	}
}

// record returns a record of an action with what a context says about who does it.
func (a *auditor) record(ctx context.Context, action, session string) api.AuditRecord {
	r := api.AuditRecord{Action: action, Session: session, Outcome: audit.Allowed}
	req := audit.RequestOf(ctx)
	if req != nil {
		r.Request, r.Remote = req.ID, req.Remote
	}
	switch i := access.From(ctx); {
	case i == access.System:
		r.Actor, r.Role = i.Subject, audit.RoleServer
	case i != nil:
		r.Actor, r.Role = i.Subject, string(i.Role)
	case a.local != "":
		r.Actor, r.Role = a.local, audit.RoleLocal
	case req == nil:
		r.Role = audit.RoleProgram
	}
	return r
}

// begin records an action that is about to be carried out; without the record it must not
// be. Call done with its error: a failure is recorded, too.
func (a *auditor) begin(ctx context.Context, action, session string) (done func(error), err error) {
	return a.beginFor(ctx, action, session, "")
}

// beginFor does what begin does, and records a reason.
func (a *auditor) beginFor(ctx context.Context, action, session, reason string) (done func(error), err error) {
	if a == nil {
		return func(error) {}, nil
	}
	if err := a.allow(ctx); err != nil {
		return nil, err
	}
	r := a.record(ctx, action, session)
	r.Reason = reason
	if err := a.log.Add(r); err != nil {
		return nil, err
	}
	return func(err error) {
		if err == nil {
			return
		}
		r.Outcome, r.Reason = audit.Failed, string(tapedeck.KindOf(err)) // never its words: they may quote content
		_ = a.log.Add(r)                                                 // the action did not happen, so its record may be missing
	}, nil
}

// ended records an action that was carried out.
func (a *auditor) ended(ctx context.Context, action, session, token string) error {
	return a.endedFor(ctx, action, session, token, "")
}

// endedFor does what ended does, and records a reason.
func (a *auditor) endedFor(ctx context.Context, action, session, token, reason string) error {
	if a == nil {
		return nil
	}
	r := a.record(ctx, action, session)
	r.TokenID, r.Reason = token, reason
	return a.log.Add(r)
}

// Limits of the recorded actions of a subject that is no admin. Otherwise it could push the
// records of other users out of the log with exports of a session of its own.
const (
	actionRate  = 2    // a second
	actionBurst = 1000 //
	maxSubjects = 4096 // that are remembered
)

// allow returns an error if the sender has done too much that is recorded.
func (a *auditor) allow(ctx context.Context) error {
	i := access.From(ctx)
	if i == nil || i.Role == access.Admin {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	who := cmp.Or(i.Payer, i.Subject)
	l, ok := a.rates.Get(who)
	if !ok {
		l = rate.NewLimiter(actionRate, actionBurst)
		a.rates.Put(who, l)
		a.rates.Trim(maxSubjects, nil)
	}
	if l.Allow() {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Limited, "%s deletes, exports, shares and makes tokens too often", who).
		WithHint("above %d of these actions, %d a second are possible, because each of them is recorded", actionBurst, actionRate)
}

// refused records that a sender may not do something with a session.
func (a *auditor) refused(ctx context.Context, session string) {
	if audit.RequestOf(ctx).Note() {
		r := a.record(ctx, audit.Access, session)
		a.log.Refuse(r)
	}
}

// serve makes a server record what it refuses.
func (a *auditor) serve(o *server.Options, guarded bool) {
	if a == nil {
		return
	}
	o.Mark = func(r *http.Request) *http.Request {
		if !guarded && isPlain(r) {
			return r
		}
		return mark(r)
	}
	o.Refused = func(r *http.Request, status int) {
		if audit.RequestOf(r.Context()) == nil {
			r = mark(r)
		}
		if !audit.RequestOf(r.Context()).Note() {
			return
		}
		action := audit.Access
		if r.URL.Path == "/login" && r.Method == http.MethodPost {
			action = audit.Login
		}
		record := a.record(r.Context(), action, "")
		record.Reason = strings.ToLower(http.StatusText(status))
		a.log.Refuse(record)
	}
}

// isPlain reports whether a request of a server without access control does nothing that is
// recorded: it reads, or it appends. Marking it would only cost time.
func isPlain(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/events") || strings.HasPrefix(r.URL.Path, "/v1/stream/"))
}

// mark returns a request with what the audit log says about it.
func mark(r *http.Request) *http.Request {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return r.WithContext(audit.WithRequest(r.Context(), &audit.Request{ID: r.Header.Get("X-Request-Id"), Remote: host}))
}

// loggedIn records that a browser logs in or out. It returns an error if that could not be
// recorded, or if the sender does it too often.
func (a *auditor) loggedIn(r *http.Request, who *access.Identity, in bool) error {
	if a == nil {
		return nil
	}
	ctx, action := r.Context(), audit.Login
	if !in {
		action = audit.Logout
	}
	if who != nil {
		ctx = access.With(ctx, who)
	}
	if err := a.allow(ctx); err != nil {
		return err
	}
	return a.ended(ctx, action, "", "")
}

// A TokenChange is a change of a file of tokens.
type TokenChange struct {
	ID      string // of the token
	Subject string
	Role    access.Role
	Removed bool // it was removed; otherwise added
}

// tokenChanged records a change of the file of tokens. Who has made it is not known.
func (a *auditor) tokenChanged(c TokenChange) {
	if a == nil {
		return
	}
	r := api.AuditRecord{Action: audit.TokenAdded, Outcome: audit.Allowed, Role: audit.RoleServer, TokenID: c.ID, Reason: "of " + c.Subject + ", role " + string(c.Role)}
	if c.Removed {
		r.Action = audit.TokenRemoved
	}
	_ = a.log.Add(r) // the log of the server says why not
}

// Audit returns a page of the audit log, newest first. Without a log the error is
// [tapedeck.Unsupported].
func (d *Deck) Audit(_ context.Context, q api.AuditQuery) (api.AuditPage, error) {
	if d.auditor == nil {
		return api.AuditPage{}, tapedeck.Errorf(tapedeck.Unsupported, "this server has no audit log")
	}
	return audit.Read(d.auditor.dir, q)
}
