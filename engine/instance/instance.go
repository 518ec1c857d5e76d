// Package instance keeps the context of agents as a list of events per agent: it
// creates instances of agents in a session, appends to the context of one, reads
// it, reverts the end of it and copies it. It is for programs that keep their
// agents' messages in this form. A log and its views are all that is behind it;
// sequence numbers are counted from the log and stored nowhere.
package instance

import (
	"context"
	"hash/fnv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// verbs is what is needed of the engine.
type verbs interface {
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Overwrite(ctx context.Context, o api.Overwrite) (api.Rewound, error)
}

// views is what is needed of the views of sessions.
type views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Instances(ctx context.Context, session string, at int64) (view.Instances, error)
}

// A Repository has the instances of all sessions. Its methods may be called by
// several goroutines.
type Repository struct {
	verbs verbs
	views views

	// Who writes holds one of these, by session: what is written depends on what
	// is there.
	writing [32]chan struct{}
}

// New returns a repository in terms of an engine and views of the same store.
func New(e verbs, v views) *Repository {
	r := &Repository{verbs: e, views: v}
	for i := range r.writing {
		r.writing[i] = make(chan struct{}, 1)
	}
	return r
}

// hold waits until nobody else writes to a session here. The caller calls free.
func (r *Repository) hold(ctx context.Context, session string) (free func(), err error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(session))
	turn := r.writing[h.Sum32()%uint32(len(r.writing))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CreateInstance adds an agent to a session, in a thread of its own that has the
// instance's id as its name. Its parent is an instance of the same session, "" for
// none.
func (r *Repository) CreateInstance(ctx context.Context, session, agent, parent string) (view.Instance, error) {
	if err := tapedeck.CheckName("the agent's name", agent); err != nil {
		return view.Instance{}, err
	}
	d := payload.InstanceStarted{ID: tapedeck.NewID("ins_"), Name: agent}
	if parent != "" {
		p, err := r.GetInstance(ctx, view.Ref{Session: session, ID: parent})
		if err != nil {
			return view.Instance{}, err
		}
		d.Parent = p.ID
	}
	e := payload.NewEvent(d)
	e.Thread, e.Instance = d.ID, d.ID
	if _, err := r.verbs.Append(ctx, tapedeck.Append{Session: session, Events: []tapedeck.Event{e}}); err != nil {
		return view.Instance{}, err
	}
	return r.GetInstance(ctx, view.Ref{Session: session, ID: d.ID})
}

// GetInstance returns an instance. One that is unknown, or was reverted, is
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

// A found instance is one with the session that it is in.
type found struct {
	view.Instance
	session string
}

func (r *Repository) find(ctx context.Context, of view.Ref) (found, error) {
	i, err := r.GetInstance(ctx, of)
	return found{Instance: i, session: of.Session}, err
}
