// Package instance keeps the context of each agent as a list of events: it creates
// instances of agents in a session, appends to the context of one, reads it,
// reverts its end and copies it. It is for programs that keep their agents'
// messages in this form. It stores nothing but events in the log: sequence numbers
// are counted in the views.
package instance

import (
	"context"
	"hash/fnv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// verbs are the verbs of the engine that are needed here.
type verbs interface {
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error)
}

// views are the views of sessions that are needed here.
type views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Instances(ctx context.Context, session string, at int64) (view.Instances, error)
}

// sessions are the sessions, and their logs.
type sessions interface {
	Head(ctx context.Context, session string) (tapedeck.Session, error)
	List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error)
	Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error)
}

// A Repository has the instances of all sessions. Its methods may be called by
// several goroutines.
type Repository struct {
	verbs  verbs
	views  views
	log    sessions
	keeper keeper

	searching chan struct{} // held while somebody looks through the list of sessions, so that it is one at a time
	outlining chan struct{} // likewise, while a long context is outlined

	// A writer holds one of these, chosen by session, because it reads the context
	// before it appends.
	writing [32]chan struct{}
}

// New returns a repository that uses an engine, and the views and sessions of the same store.
func New(e verbs, v views, s sessions) *Repository {
	r := &Repository{verbs: e, views: v, log: s, searching: make(chan struct{}, 1), outlining: make(chan struct{}, 1)}
	for i := range r.writing {
		r.writing[i] = make(chan struct{}, 1)
	}
	return r
}

// hold waits until no other call here writes to a session. Call free when done.
func (r *Repository) hold(ctx context.Context, session string) (free func(), err error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(session))
	lock := r.writing[h.Sum32()%uint32(len(r.writing))]
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CreateInstance adds an agent to a session. The first instance of a session is that of
// the thread "main", so a run of the agent there continues its context. Each other one has
// a thread of its own, with the id of the instance as its name. The parent is an instance
// of the same session, "" for none. A session with 10,000 instances is [tapedeck.TooLarge].
func (r *Repository) CreateInstance(ctx context.Context, session, agent, parent string) (view.Instance, error) {
	if err := tapedeck.CheckName("the agent's name", agent); err != nil {
		return view.Instance{}, err
	}
	if parent != "" {
		p, err := r.GetInstance(ctx, view.Ref{Session: session, ID: parent})
		if err != nil {
			return view.Instance{}, err
		}
		parent = p.ID
	}
	free, err := r.hold(ctx, session)
	if err != nil {
		return view.Instance{}, err
	}
	defer free()
	id, err := r.announce(ctx, session, payload.InstanceStarted{Name: agent, Parent: parent})
	if tapedeck.KindOf(err) == tapedeck.Conflict { // a run has begun in the thread main
		id, err = r.announce(ctx, session, payload.InstanceStarted{Name: agent, Parent: parent})
	}
	if err != nil {
		return view.Instance{}, err
	}
	r.keeper.noteFound(id, session)
	return r.GetInstance(ctx, view.Ref{Session: session, ID: id})
}

// announce appends the event that adds an instance, and returns its id.
func (r *Repository) announce(ctx context.Context, session string, d payload.InstanceStarted) (string, error) {
	all, err := r.views.Instances(ctx, session, -1)
	if err != nil {
		return "", err
	}
	if len(all) >= view.MaxInstances {
		return "", tapedeck.Errorf(tapedeck.TooLarge, "session %s has %d instances; no more are allowed", session, len(all))
	}
	d.ID = view.NewInstanceID(session)
	thread := d.ID
	if len(all) == 0 {
		thread, d.ID = tapedeck.MainThread, view.AgentInstance(session, d.Name, tapedeck.MainThread)
	}
	e := payload.NewEvent(d)
	e.Thread, e.Instance = thread, d.ID
	_, err = r.verbs.Append(ctx, tapedeck.Append{Session: session, Events: []tapedeck.Event{e}})
	return d.ID, err
}

// GetInstance returns an instance. An unknown or reverted one is
// [tapedeck.NotFound].
func (r *Repository) GetInstance(ctx context.Context, of view.Ref) (view.Instance, error) {
	if err := tapedeck.CheckID("the session", of.Session); err != nil {
		return view.Instance{}, err
	}
	if err := tapedeck.CheckID("the instance", of.ID); err != nil {
		return view.Instance{}, err
	}
	all, err := r.views.Instances(ctx, of.Session, -1)
	if err != nil {
		return view.Instance{}, err
	}
	i, ok := all.Find(of.ID)
	if !ok {
		return view.Instance{}, tapedeck.Errorf(tapedeck.NotFound, "there is no instance %s in session %s", of.ID, of.Session).
			WithHint("GET /sessions/%s/instances lists them", of.Session)
	}
	return i, nil
}

// FindInstance returns the instance with an id, and its session. The id must be one that
// Tapedeck has made: those that programs choose are found in their sessions only. It reads
// the list of sessions when it is first asked for an id.
func (r *Repository) FindInstance(ctx context.Context, id string) (view.Instance, string, error) {
	if err := tapedeck.CheckID("the instance", id); err != nil {
		return view.Instance{}, "", err
	}
	if !view.IsInstanceID(id) {
		return view.Instance{}, "", noInstance(id)
	}
	if session, ok := r.keeper.sessionOf(id); ok {
		i, err := r.GetInstance(ctx, view.Ref{Session: session, ID: id})
		if kind := tapedeck.KindOf(err); kind != tapedeck.NotFound && kind != tapedeck.Gone {
			return i, session, err
		}
	}
	select {
	case r.searching <- struct{}{}:
		defer func() { <-r.searching }()
	case <-ctx.Done():
		return view.Instance{}, "", ctx.Err()
	}
	for f := (tapedeck.Filter{Limit: maxListed}); ; {
		page, err := r.log.List(ctx, f)
		if err != nil {
			return view.Instance{}, "", err
		}
		for n := range page.Sessions {
			session := page.Sessions[n].ID
			if !view.MayBeIn(session, id) {
				continue
			}
			i, err := r.GetInstance(ctx, view.Ref{Session: session, ID: id})
			if kind := tapedeck.KindOf(err); kind == tapedeck.NotFound || kind == tapedeck.Gone {
				continue
			}
			r.keeper.noteFound(id, session)
			return i, session, err
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return view.Instance{}, "", noInstance(id)
		}
	}
}

func noInstance(id string) error {
	return tapedeck.Errorf(tapedeck.NotFound, "there is no instance %s", id)
}

// maxListed is the largest number of sessions in a page of a list.
const maxListed = 1000

// A found instance is an instance with its session.
type found struct {
	view.Instance
	session string
}

func (r *Repository) find(ctx context.Context, of view.Ref) (found, error) {
	i, err := r.GetInstance(ctx, of)
	return found{Instance: i, session: of.Session}, err
}
