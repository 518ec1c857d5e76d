package guard

import (
	"context"
	"io"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Verbs change sessions. The engine implements it.
type Verbs interface {
	Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error)
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	AppendAfter(ctx context.Context, r api.Rewind, a tapedeck.Append) (tapedeck.Appended, error)
	Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error)
	Close(ctx context.Context, session, actor string) error
	Delete(ctx context.Context, session string) error
	Erase(ctx context.Context, e api.Erase) (api.Erased, error)

	Agents() []tapedeck.Agent
	Start(ctx context.Context, t api.Task) (api.Started, error)
	Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Renew(ctx context.Context, r api.Renewal) (api.Renewed, error)
	Resume(ctx context.Context, r api.Resume) (api.Started, error)
	Answer(ctx context.Context, a api.Answer) (api.Answered, error)

	CancelAll(ctx context.Context, session, invocation string) (api.Cancelled, error)
	Inputs(ctx context.Context, session, thread string) ([]view.Input, error)
	Withdraw(ctx context.Context, w api.Withdraw) (view.Input, error)
	Move(ctx context.Context, m api.Move) (view.Input, error)
	Take(ctx context.Context, t api.Take) (api.Taken, error)

	SendMessage(ctx context.Context, m api.SendMessage) (api.MessageSent, error)

	Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error)
	Undo(ctx context.Context, u api.Undo) (api.Rewound, error)
	Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error)
	Clear(ctx context.Context, c api.Clear) (api.Rewound, error)
	Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error)

	Export(ctx context.Context, in api.ExportRequest) (api.Export, error)
	PreviewExport(ctx context.Context, in api.ExportRequest) (api.RedactionPreview, error)
	Import(ctx context.Context, in api.ImportRequest, r io.Reader) (api.Imported, error)
	PreviewImport(ctx context.Context, in api.ImportRequest, r io.Reader) (api.ImportPreview, error)

	Presence(ctx context.Context, n api.PresenceNote) ([]payload.Presence, error)
	Present(ctx context.Context, session string) ([]payload.Presence, error)
	WatchPresence(ctx context.Context, session string) api.PresenceWatcher
}

// Guarded is a [Verbs] that does for each identity what it may do. Owner and actor of what
// is written are those of the identity. Only an admin names others.
type Guarded struct {
	g     *Guard
	verbs Verbs
}

// actor returns the actor of what an identity writes.
func actor(i *access.Identity, given string) string {
	if i.Role == access.Admin && given != "" {
		return given
	}
	return i.Actor()
}

// owner returns the owner of what an identity creates.
func owner(i *access.Identity, given string) string {
	if i.Role == access.Admin && given != "" {
		return given
	}
	return i.Subject
}

// write checks that an identity may change a session, sets the actor of the change, and
// takes its event from the quota.
func (v *Guarded) write(ctx context.Context, session string, by *string) (context.Context, error) {
	ctx, i, err := v.g.allow(ctx, session, access.Write)
	if err != nil {
		return ctx, err
	}
	*by = actor(i, *by)
	return ctx, v.g.take(i, 1, 0)
}

// own checks that an identity owns a session, and sets the actor of the change.
func (v *Guarded) own(ctx context.Context, session string, by *string) (context.Context, error) {
	ctx, i, err := v.g.allow(ctx, session, access.Own)
	if err == nil {
		*by = actor(i, *by)
	}
	return ctx, err
}

// creates returns the identity of a context if it may create sessions.
func creates(ctx context.Context) (*access.Identity, error) {
	i, err := who(ctx)
	switch {
	case err != nil:
		return nil, err
	case i.Limits.Session != "":
		return nil, ofOneSession()
	case i.Role != access.Admin && i.Role != access.User:
		return nil, tapedeck.Errorf(tapedeck.Forbidden, "a token of role %s creates no sessions", i.Role)
	}
	return i, nil
}

// newID returns the id of a new session: the given one if the identity may use it, or else
// one that its prefix begins.
func newID(i *access.Identity, id string) (string, error) {
	switch prefix := i.Limits.Prefix; {
	case prefix == "":
		return id, nil
	case id == "":
		return tapedeck.NewID(prefix), nil
	case !strings.HasPrefix(id, prefix):
		return "", tapedeck.Errorf(tapedeck.Forbidden, "the ids of the sessions of this token begin with %s", prefix)
	}
	return id, nil
}

// Create creates a session.
func (v *Guarded) Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error) {
	i, err := creates(ctx)
	if err != nil {
		return tapedeck.Session{}, err
	}
	if n.ID, err = newID(i, n.ID); err != nil {
		return tapedeck.Session{}, err
	}
	n.Owner, n.Actor = owner(i, n.Owner), actor(i, n.Actor)
	if !access.HasLabels(n.Labels, i.Limits.Labels) {
		labels := map[string]string{}
		for _, from := range []map[string]string{n.Labels, i.Limits.Labels} {
			for name, value := range from {
				labels[name] = value
			}
		}
		n.Labels = labels
	}
	if err := v.g.take(i, 1, int64(len(n.State))); err != nil {
		return tapedeck.Session{}, err
	}
	done, err := v.g.found(ctx, i, n.Owner)
	if err != nil {
		return tapedeck.Session{}, err
	}
	defer done()
	s, err := v.verbs.Create(onlyIf(ctx, i, n.ID, 0, access.Own), n)
	return s, v.conflict(ctx, i, n.ID, err)
}

// conflict returns the error of the creation of an id that exists. What is hidden from the
// identity is the same for all that it cannot read.
func (v *Guarded) conflict(ctx context.Context, i *access.Identity, id string, err error) error {
	k := tapedeck.KindOf(err)
	hidden := k == tapedeck.NotFound && v.g.exists(ctx, id) // what it should create is somebody else's now
	if id == "" || i.IsUnlimited() || k != tapedeck.Conflict && k != tapedeck.Gone && !hidden {
		return err
	}
	have, _, failed := v.g.level(ctx, i, id)
	switch {
	case failed != nil:
		return failed
	case have == access.None:
		return taken(id)
	}
	return err
}

// Rename changes the title, the labels or the budget of a session.
func (v *Guarded) Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error) {
	need := access.Write
	if r.Labels != nil || r.ChangeLabels != nil || r.Budget != nil {
		need = access.Own
	}
	ctx, i, err := v.g.allow(ctx, r.Session, need)
	if err != nil {
		return tapedeck.Session{}, err
	}
	if r.Labels != nil && !access.HasLabels(r.Labels, i.Limits.Labels) || changes(r.ChangeLabels, i.Limits.Labels) {
		return tapedeck.Session{}, tapedeck.Errorf(tapedeck.Forbidden, "a session keeps the labels by which this token finds it")
	}
	if err := v.g.take(i, 1, 0); err != nil {
		return tapedeck.Session{}, err
	}
	r.Actor = actor(i, r.Actor)
	s, err := v.verbs.Rename(ctx, r)
	v.g.hide(ctx, i, &s)
	return s, err
}

// changes reports whether a change of labels does not keep some that must stay.
func changes(labels map[string]*string, keep map[string]string) bool {
	for name, value := range keep {
		if to, ok := labels[name]; ok && (to == nil || *to != value) {
			return true
		}
	}
	return false
}

// Close closes a session.
func (v *Guarded) Close(ctx context.Context, session, by string) error {
	ctx, err := v.own(ctx, session, &by)
	if err != nil {
		return err
	}
	return v.verbs.Close(ctx, session, by)
}

// Delete deletes a session.
func (v *Guarded) Delete(ctx context.Context, session string) error {
	ctx, _, err := v.g.allow(ctx, session, access.Own)
	if err != nil {
		return err
	}
	return v.verbs.Delete(ctx, session)
}

// Erase removes payloads. The forks that lost them, too, are named if the identity can
// read them.
func (v *Guarded) Erase(ctx context.Context, e api.Erase) (api.Erased, error) {
	ctx, err := v.own(ctx, e.Session, &e.Actor)
	if err != nil {
		return api.Erased{}, err
	}
	out, err := v.verbs.Erase(ctx, e)
	var shown []string
	for _, f := range out.Forks {
		if _, hidden := v.g.may(ctx, f, access.Read); hidden == nil {
			shown = append(shown, f)
		}
	}
	out.Forks = shown
	return out, err
}

// Agents lists the agents.
func (v *Guarded) Agents() []tapedeck.Agent { return v.verbs.Agents() }

// Cancel stops a run.
func (v *Guarded) Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	ctx, _, err := v.g.allow(ctx, session, access.Write)
	if err != nil {
		return api.Cancelled{}, err
	}
	return v.verbs.Cancel(ctx, session, invocation)
}

// Renew says that the program of a run is alive. An agent's token does it for its own run.
func (v *Guarded) Renew(ctx context.Context, r api.Renewal) (api.Renewed, error) {
	ctx, err := v.drive(ctx, r.Session, r.Invocation)
	if err != nil {
		return api.Renewed{}, err
	}
	return v.verbs.Renew(ctx, r)
}

// drive allows what the program of a run does with it. An agent's token has only its own run.
func (v *Guarded) drive(ctx context.Context, session, invocation string) (context.Context, error) {
	need := access.Write
	if i := access.From(ctx); i != nil && i.Role == access.Agent {
		if invocation != i.Limits.Invocation {
			return ctx, tapedeck.Errorf(tapedeck.Forbidden, "this token writes run %s, and not run %.128s", i.Limits.Invocation, invocation)
		}
		need = access.Read
	}
	ctx, _, err := v.g.allow(ctx, session, need)
	return ctx, err
}

// Resume continues a run.
func (v *Guarded) Resume(ctx context.Context, r api.Resume) (api.Started, error) {
	ctx, i, err := v.g.allow(ctx, r.Session, access.Write)
	if err != nil {
		return api.Started{}, err
	}
	r.Capped = capped(ctx)
	r.Actor = actor(i, r.Actor)
	if err := v.g.take(i, 1, int64(len(r.Text)+len(r.Config))); err != nil {
		return api.Started{}, err
	}
	owner, err := v.g.ownerOf(ctx, r.Session)
	if err != nil {
		return api.Started{}, err
	}
	r.Invocation = tapedeck.NewID("inv_")
	begun, err := v.g.begin(ctx, i, owner, r.Invocation)
	if err != nil {
		return api.Started{}, err
	}
	out, err := v.verbs.Resume(ctx, r)
	begun(&out, err)
	return out, err
}

// Answer answers a question of an agent.
func (v *Guarded) Answer(ctx context.Context, a api.Answer) (api.Answered, error) {
	ctx, err := v.write(ctx, a.Session, &a.Actor)
	if err != nil {
		return api.Answered{}, err
	}
	switch i := access.From(ctx); {
	case i.IsUnlimited():
		a.Grants = ""
	case v.g.owns(ctx, a.Session):
		a.Grants = "session"
	default:
		a.Grants = "run"
	}
	return v.verbs.Answer(ctx, a)
}

// SendMessage sends a message to a workflow.
func (v *Guarded) SendMessage(ctx context.Context, m api.SendMessage) (api.MessageSent, error) {
	ctx, err := v.write(ctx, m.Session, &m.Actor)
	if err != nil {
		return api.MessageSent{}, err
	}
	return v.verbs.SendMessage(ctx, m)
}

// Rewind reverts events.
func (v *Guarded) Rewind(ctx context.Context, r api.Rewind) (api.Rewound, error) {
	ctx, err := v.write(ctx, r.Session, &r.Actor)
	if err != nil {
		return api.Rewound{}, err
	}
	return v.verbs.Rewind(ctx, r)
}

// Undo makes reverted events active again.
func (v *Guarded) Undo(ctx context.Context, u api.Undo) (api.Rewound, error) {
	ctx, err := v.write(ctx, u.Session, &u.Actor)
	if err != nil {
		return api.Rewound{}, err
	}
	return v.verbs.Undo(ctx, u)
}

// Overwrite reverts events that others replace.
func (v *Guarded) Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error) {
	ctx, err := v.write(ctx, o.Session, &o.Actor)
	if err != nil {
		return api.Rewound{}, err
	}
	return v.verbs.Overwrite(ctx, o)
}

// Clear reverts everything in a thread.
func (v *Guarded) Clear(ctx context.Context, c api.Clear) (api.Rewound, error) {
	ctx, err := v.write(ctx, c.Session, &c.Actor)
	if err != nil {
		return api.Rewound{}, err
	}
	return v.verbs.Clear(ctx, c)
}

// shares are the labels that share a session.
var shares = []string{api.ShareRead, api.ShareWrite}

// Fork creates a session that shares the events of another. It belongs to the identity,
// and is shared with nobody. A fork by the token of one session belongs to the owner of
// that session.
func (v *Guarded) Fork(ctx context.Context, f api.Fork) (tapedeck.Session, error) {
	ctx, i, err := v.g.whole(ctx, f.Parent)
	switch {
	case err != nil:
		return tapedeck.Session{}, err
	case i.Role != access.Admin && i.Role != access.User:
		return tapedeck.Session{}, tapedeck.Errorf(tapedeck.Forbidden, "a token of role %s creates no sessions", i.Role)
	case i.Limits.Session != "" && !i.Limits.Forks:
		return tapedeck.Session{}, ofOneSession()
	}
	if f.ID, err = newID(i, f.ID); err != nil {
		return tapedeck.Session{}, err
	}
	f.Actor = actor(i, f.Actor)
	switch {
	case i.Limits.Session != "":
		f.Owner = "" // that of the parent
	case i.Role != access.Admin:
		f.Owner = i.Subject
	}
	f.WithoutLabels = shares
	owner := f.Owner
	if owner == "" {
		if owner, err = v.g.ownerOf(ctx, f.Parent); err != nil {
			return tapedeck.Session{}, err
		}
	}
	if err := v.g.take(i, 1, 0); err != nil {
		return tapedeck.Session{}, err
	}
	done, err := v.g.found(ctx, i, owner)
	if err != nil {
		return tapedeck.Session{}, err
	}
	defer done()
	s, err := v.verbs.Fork(ctx, f)
	return s, v.conflict(ctx, i, f.ID, err)
}
