// Package access has the words of access control: who sends a request, and what that
// sender may do with a session. It knows neither HTTP nor stores.
//
// Package guard applies the rules to everything that the protocols use, package tokens
// keeps the tokens of a file, and package gate reads tokens from requests.
package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/internal/wallclock"
)

// A Role says what kind of work an identity does.
type Role string

// These are the roles.
const (
	Admin  Role = "admin"  // all sessions and streams, also in the name of others
	User   Role = "user"   // the sessions that it owns, and those that are shared with it
	Reader Role = "reader" // reads all sessions and streams, writes none
	Agent  Role = "agent"  // reads one session, and appends to one open run of it
)

// Roles are all roles.
var Roles = []Role{Admin, User, Reader, Agent}

// Check refuses a role that is not among accepted, for what has these roles.
func (r Role) Check(what string, accepted ...Role) error {
	if slices.Contains(accepted, r) {
		return nil
	}
	var names []string
	for _, a := range accepted {
		names = append(names, string(a))
	}
	return tapedeck.Errorf(tapedeck.Invalid, "there is no role %.64q for %s", string(r), what).WithHint("the roles are %s", strings.Join(names, ", "))
}

// StreamRoot begins the paths of the streams of users: those of ada begin with
// users/ada/.
const StreamRoot = "users/"

// A Level says how much of a session an identity may use. Each level includes those
// before it.
type Level int

// These are the levels.
const (
	None  Level = iota // the session does not exist for it
	Read               // it reads events and views
	Write              // it appends, runs agents, answers questions, rewinds
	Own                // it changes labels, closes, erases and deletes, and issues tokens
)

// An Identity is the sender of a request, as its token describes it. It must not be
// changed after it was made.
type Identity struct {
	Subject string // who it is; passes [tapedeck.CheckID]
	Role    Role
	Limits  Limits
	Payer   string    // the subject whose quota it uses; "" for Subject
	Token   string    // names its token among those that its verifier keeps, see gate.Keeper; "" if it keeps none
	Expires time.Time // the first moment at which it is no longer valid; zero for never

	// Revoked is done when the token is no longer valid; nil if that cannot happen.
	Revoked context.Context
}

// Limits restrict an identity to some sessions. Zero members do not restrict it.
type Limits struct {
	Prefix string            // the ids of the sessions begin with it
	Labels map[string]string // the sessions have these labels

	// Session is the only session. An identity of role user writes there even if it does
	// not own the session.
	Session    string
	Gen        int64  // with Session: its number in the store, so that a session that replaces it is another one; 0 for any
	Forks      bool   // with Session: also its forks of the same owner
	Invocation string // with Session: the run that an agent writes
	Before     int64  // with Session: only the events before this offset, for reading; 0 for all
}

// IsZero reports whether the limits restrict nothing.
func (l *Limits) IsZero() bool {
	return l.Prefix == "" && len(l.Labels) == 0 && l.Session == ""
}

// System is the identity of the server's own work, such as push notifications.
var System = &Identity{Subject: "tapedeck", Role: Admin}

// IsUnlimited reports whether the identity may do everything.
func (i *Identity) IsUnlimited() bool { return i.Role == Admin && i.Limits.IsZero() }

// IsFrozen reports whether the identity sees only a beginning of its session.
func (i *Identity) IsFrozen() bool { return i.Limits.Before > 0 }

// Actor is the actor of the events that the identity writes.
func (i *Identity) Actor() string {
	if i.Role == Agent {
		return "agent:" + i.Subject
	}
	return "user:" + i.Subject
}

// Valid returns an [tapedeck.Unauthorized] error if the identity has expired or was
// revoked.
func (i *Identity) Valid() error {
	switch {
	case i.Revoked != nil && i.Revoked.Err() != nil:
		return revoked()
	case !i.Expires.IsZero() && !time.Now().Before(i.Expires):
		return expired()
	}
	return nil
}

// Bind returns a context that ends with ctx, and when the identity ends to be valid. Then
// its cause is the error of [Identity.Valid]. Call stop at the end.
func (i *Identity) Bind(ctx context.Context) (bound context.Context, stop func()) {
	if i.Expires.IsZero() && i.Revoked == nil {
		return ctx, func() {}
	}
	bound, cancel := context.WithCancelCause(ctx)
	stop = func() { cancel(nil) }
	if !i.Expires.IsZero() {
		end := wallclock.AfterFunc(i.Expires, func() { cancel(expired()) })
		stop = func() { end(); cancel(nil) }
	}
	if i.Revoked == nil {
		return bound, stop
	}
	release, outer := context.AfterFunc(i.Revoked, func() { cancel(revoked()) }), stop
	return bound, func() { release(); outer() }
}

func revoked() error {
	return tapedeck.Errorf(tapedeck.Unauthorized, "the token was revoked").WithHint("ask for a new one")
}

func expired() error {
	return tapedeck.Errorf(tapedeck.Unauthorized, "the token has expired").WithHint("ask for a new one")
}

// LevelOf returns what the identity may do with a session or a stream. Forks of
// [Limits.Session] are not looked at.
func (i *Identity) LevelOf(s *tapedeck.Session) Level {
	if i.Limits.Session != "" {
		if s.ID != i.Limits.Session {
			return None
		}
		return i.Granted()
	}
	if !i.within(s) {
		return None
	}
	switch i.Role {
	case Admin:
		return Own
	case Reader:
		return Read
	case User:
		return i.levelOfUser(s)
	}
	return None
}

// Granted returns the level at [Limits.Session].
func (i *Identity) Granted() Level {
	if i.Role == User && !i.IsFrozen() {
		return Write
	}
	return Read
}

func (i *Identity) within(s *tapedeck.Session) bool {
	if !strings.HasPrefix(s.ID, i.Limits.Prefix) {
		return false
	}
	return HasLabels(s.Labels, i.Limits.Labels)
}

func (i *Identity) levelOfUser(s *tapedeck.Session) Level {
	if path, ok := strings.CutPrefix(s.ID, tapedeck.StreamPrefix); ok {
		if strings.HasPrefix(path, StreamRoot+i.Subject+"/") {
			return Own
		}
		return None
	}
	switch {
	case s.Owner == i.Subject:
		return Own
	case names(s.Labels[api.ShareWrite], i.Subject):
		return Write
	case names(s.Labels[api.ShareRead], i.Subject):
		return Read
	}
	return None
}

// HasLabels reports whether labels have all of want.
func HasLabels(labels, want map[string]string) bool {
	for name, v := range want {
		if has, ok := labels[name]; !ok || has != v {
			return false
		}
	}
	return true
}

// names reports whether the value of a label that shares a session names a subject.
func names(value, subject string) bool {
	if value == "" {
		return false
	}
	list := api.Subjects(value)
	return slices.Contains(list, subject) || slices.Contains(list, api.Everybody)
}

type contextKey struct{}

// With returns a context with an identity.
func With(ctx context.Context, i *Identity) context.Context {
	return context.WithValue(ctx, contextKey{}, i)
}

// From returns the identity of a context, nil if there is none.
func From(ctx context.Context) *Identity {
	i, _ := ctx.Value(contextKey{}).(*Identity)
	return i
}

// Check returns an error unless the identity is one that rules can be applied to.
func (i *Identity) Check() error {
	if err := tapedeck.CheckID("the subject", i.Subject); err != nil {
		return err
	}
	if err := i.Role.Check("a token", Roles...); err != nil {
		return err
	}
	l := &i.Limits
	switch {
	case i.Role == Agent && (l.Session == "" || l.Invocation == ""):
		return tapedeck.Errorf(tapedeck.Invalid, "an agent's token needs a session and an invocation").WithHint("the token is good for that run only")
	case i.Role != Agent && l.Invocation != "":
		return tapedeck.Errorf(tapedeck.Invalid, "only a token of the role agent names an invocation").
			WithHint("give the role agent, on the command line --role agent with --run, or leave the invocation out")
	case l.Prefix != "" && !isPrefix(l.Prefix):
		return tapedeck.Errorf(tapedeck.Invalid, "no id begins with the prefix %.64q", l.Prefix).WithHint("ids have letters, digits and - _ . : @; those of streams begin with %s", tapedeck.StreamPrefix)
	case l.Session == "" && (l.Forks || l.Before != 0):
		return tapedeck.Errorf(tapedeck.Invalid, "forks and before need a session")
	case l.Before < 0:
		return tapedeck.Errorf(tapedeck.Invalid, "before must be above 0")
	case l.Before > 0 && (i.Role != Reader || l.Forks):
		return tapedeck.Errorf(tapedeck.Invalid, "a token with before has the role reader, and no forks")
	case l.Session != "" && (i.Role == Admin || l.Prefix != "" || len(l.Labels) > 0):
		return tapedeck.Errorf(tapedeck.Invalid, "a token of one session has neither the role admin nor a prefix or labels")
	case l.Session != "":
		return tapedeck.CheckID("the session's id", l.Session)
	}
	for name, value := range l.Labels {
		if err := tapedeck.CheckID("the name of a label", name); err != nil {
			return err
		}
		if err := tapedeck.CheckName("the label "+name, value); err != nil {
			return err
		}
	}
	return nil
}

// isPrefix reports whether the id of a session or of a stream can begin with p.
func isPrefix(p string) bool {
	const stream = tapedeck.StreamPrefix
	return tapedeck.CheckID("the prefix", p) == nil || strings.HasPrefix(p, stream) || strings.HasPrefix(stream, p)
}
