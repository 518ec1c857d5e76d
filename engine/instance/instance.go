// Package instance keeps the context of agents as a list of events per agent: it
// creates instances of agents in a session, appends to the context of one, reads
// it, cuts it off and copies it. It is for programs that have kept their agents'
// messages so; a log and its views are all that is behind it.
package instance

import (
	"context"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// verbs is what is needed of the engine.
type verbs interface {
	Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error)
	Overwrite(ctx context.Context, o tapedeck.Overwrite) (tapedeck.Rewound, error)
}

// views is what is needed of the views of sessions.
type views interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Instances(ctx context.Context, session string, at int64) (view.Instances, error)
}

// A Repository has the instances of all sessions. Its methods may be called by
// several goroutines.
//
// The id of an instance, here, names its session, too: "ses_01J…/ins_01J…".
type Repository struct {
	verbs verbs
	views views
}

// New returns a repository in terms of an engine and views of the same store.
func New(e verbs, v views) *Repository { return &Repository{verbs: e, views: v} }

// An Instance is an agent in a session.
type Instance struct {
	ID        string    `json:"id"`
	Session   string    `json:"session_id"`
	Agent     string    `json:"agent_name"`
	Parent    string    `json:"parent_instance_id,omitempty"` // the instance that started it; "" for none
	CreatedAt time.Time `json:"created_at"`
}

// CreateInstance adds an agent to a session, in a thread of its own that has the
// instance's name. Its parent is an instance of the same session, "" for none.
func (r *Repository) CreateInstance(ctx context.Context, session, agent, parent string) (Instance, error) {
	if err := tapedeck.CheckName("the agent's name", agent); err != nil {
		return Instance{}, err
	}
	d := tapedeck.InstanceStartedData{ID: tapedeck.NewID("ins_"), Name: agent}
	if parent != "" {
		p, err := r.find(ctx, parent)
		if err != nil {
			return Instance{}, err
		}
		if p.session != session {
			return Instance{}, tapedeck.Errorf(tapedeck.Invalid, "the instance %s is in another session", parent)
		}
		d.Parent = p.ID
	}
	e := tapedeck.NewEvent(d)
	e.Thread, e.Instance = d.ID, d.ID
	if _, err := r.verbs.Append(ctx, tapedeck.Append{Session: session, Events: []tapedeck.Event{e}}); err != nil {
		return Instance{}, err
	}
	return r.GetInstance(ctx, session+"/"+d.ID)
}

// GetInstance returns an instance. One that is unknown, or was taken back, is
// [tapedeck.NotFound].
func (r *Repository) GetInstance(ctx context.Context, id string) (Instance, error) {
	f, err := r.find(ctx, id)
	if err != nil {
		return Instance{}, err
	}
	i := Instance{ID: f.session + "/" + f.ID, Session: f.session, Agent: f.Name, CreatedAt: f.StartedAt.Time}
	if f.Parent != "" {
		i.Parent = f.session + "/" + f.Parent
	}
	return i, nil
}

// A found instance is one with the session that it is in.
type found struct {
	view.Instance
	session string
}

func (r *Repository) find(ctx context.Context, id string) (found, error) {
	session, name, ok := strings.Cut(id, "/")
	if !ok || tapedeck.CheckID("the session", session) != nil || tapedeck.CheckID("the instance", name) != nil {
		return found{}, tapedeck.Errorf(tapedeck.Invalid, "%.200q is not the id of an instance", id).
			WithHint("it is that of the session, a slash, and that of the instance in it")
	}
	all, err := r.views.Instances(ctx, session, -1)
	if err != nil {
		return found{}, err
	}
	i, ok := all.Find(name)
	if !ok {
		return found{}, tapedeck.Errorf(tapedeck.NotFound, "there is no instance %s in session %s", name, session)
	}
	return found{Instance: i, session: session}, nil
}
