package adk

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"

	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/deck"
	"github.com/tapedeck/tapedeck/view"
)

// Labels of the Tapedeck sessions of ADK.
const (
	labelApp     = "adk.app"
	labelUser    = "adk.user"
	labelSession = "adk.session"
	labelState   = "adk.state" // "app" or "user": the session has the state of an app or a user
)

// Options of a [Service]. The zero value is ready for use.
type Options struct {
	// Logger logs the errors that the plugin cannot return to ADK: the end of a run could
	// not be stored, or its text could not be streamed. Nil means [slog.Default].
	Logger *slog.Logger
}

// A Service is a session.Service of ADK that keeps its sessions in Tapedeck. Its errors
// are [tapedeck.Error] values. Its methods may be called by several goroutines.
type Service struct {
	store  store
	logger *slog.Logger

	mu       sync.Mutex
	attended map[attendance]*conversation // the invocations that the plugin watches
}

var _ session.Service = (*Service)(nil)

// NewService returns a service on an open deck. Close the deck after the last run.
func NewService(d *deck.Deck, o Options) *Service { return newService(local{d}, o) }

// NewRemoteService returns a service on a server of Tapedeck, which may have agents of
// many programs.
func NewRemoteService(c *client.Client, o Options) *Service { return newService(remote{c}, o) }

func newService(s store, o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Service{store: s, logger: o.Logger, attended: map[attendance]*conversation{}}
}

// Create creates a session with its initial state. Without an id it chooses one. An id
// that the user has in this app already is a [tapedeck.Conflict].
func (s *Service) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	if err := checkNames(req.AppName, req.UserID); err != nil {
		return nil, err
	}
	k := key{req.AppName, req.UserID, req.SessionID}
	if k.session == "" {
		k.session = platform.NewUUID(ctx)
	}
	if err := checkKey(k); err != nil {
		return nil, err
	}
	delta := splitDelta(req.State)
	own, err := json.Marshal(delta.session)
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the initial state is not JSON: %w", err)
	}
	log := LogID(k.app, k.user, k.session)
	exists := tapedeck.Errorf(tapedeck.Conflict, "session %s already exists", k).WithHint("choose another id")
	if _, err := s.store.Info(ctx, log); err == nil {
		return nil, exists
	} else if tapedeck.KindOf(err) != tapedeck.NotFound {
		return nil, err
	}
	// The shared state comes first: a session that exists then has all of it.
	if err := s.share(ctx, k, delta, "create:"+tapedeck.NewID("")); err != nil {
		return nil, err
	}
	err = s.store.Create(ctx, api.NewSession{
		ID: log, Owner: k.user, Actor: userActor(k.user), State: own,
		Labels: map[string]string{labelApp: k.app, labelUser: k.user, labelSession: k.session},
	})
	if tapedeck.KindOf(err) == tapedeck.Conflict {
		return nil, exists
	}
	if err != nil {
		return nil, err
	}
	made, err := s.get(ctx, k)
	if err != nil {
		return nil, err
	}
	return &session.CreateResponse{Session: made}, nil
}

// Get returns a session as the active events of its log have it: without those that a
// rewind has reverted. Besides its own sessions, ADK can name a fork of one of them by
// the id that the fork has in Tapedeck.
func (s *Service) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	found, err := s.get(ctx, key{req.AppName, req.UserID, req.SessionID})
	if err != nil {
		return nil, err
	}
	found.keep(req.NumRecentEvents, req.After)
	return &session.GetResponse{Session: found}, nil
}

func (s *Service) get(ctx context.Context, k key) (*conversation, error) {
	if err := checkKey(k); err != nil {
		return nil, err
	}
	info, err := s.find(ctx, k)
	if err != nil {
		return nil, err
	}
	c, err := s.load(ctx, k, &info)
	if err != nil {
		return nil, err
	}
	shared, err := s.sharedState(ctx, k)
	if err != nil {
		return nil, err
	}
	maps.Copy(c.state, shared)
	return c, nil
}

// find returns the catalogue entry of a session. Its labels must name the app and the
// user, so nobody gets the session of another user by its id.
func (s *Service) find(ctx context.Context, k key) (tapedeck.Session, error) {
	ids := []string{LogID(k.app, k.user, k.session)}
	if tapedeck.CheckID("the session's id", k.session) == nil {
		ids = append(ids, k.session)
	}
	for _, id := range ids {
		info, err := s.store.Info(ctx, id)
		switch kind := tapedeck.KindOf(err); {
		case err == nil && info.Labels[labelApp] == k.app && info.Labels[labelUser] == k.user:
			return info, nil
		case err != nil && kind != tapedeck.NotFound && kind != tapedeck.Gone:
			return tapedeck.Session{}, err
		}
	}
	return tapedeck.Session{}, tapedeck.Errorf(tapedeck.NotFound, "there is no session %s", k)
}

// List returns the sessions of an app, or those of one user, with their state and
// without their events. Forks of them are included.
func (s *Service) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	if req.AppName == "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "app_name is required, got app_name: %q", req.AppName)
	}
	labels := map[string]string{labelApp: req.AppName}
	if req.UserID != "" {
		labels[labelUser] = req.UserID
	}
	out := &session.ListResponse{Sessions: []session.Session{}}
	shared := map[string]map[string]any{} // by user
	for cursor := ""; ; {
		page, err := s.store.List(ctx, tapedeck.Filter{Labels: labels, Cursor: cursor, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for i := range page.Sessions {
			c, err := s.listed(ctx, &page.Sessions[i], shared)
			if missing(err) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			out.Sessions = append(out.Sessions, c)
		}
		if cursor = page.Next; cursor == "" {
			return out, nil
		}
	}
}

// listed returns a session without its events.
func (s *Service) listed(ctx context.Context, info *tapedeck.Session, shared map[string]map[string]any) (*conversation, error) {
	k := keyOf(info)
	if shared[k.user] == nil {
		state, err := s.sharedState(ctx, k)
		if err != nil {
			return nil, err
		}
		shared[k.user] = state
	}
	state, err := s.stateOf(ctx, info.ID, info.Head)
	if err != nil {
		return nil, err
	}
	maps.Copy(state, shared[k.user])
	return &conversation{service: s, key: k, log: info.ID, next: info.Head, state: state, updated: info.Updated}, nil
}

// keyOf returns the names by which ADK knows a Tapedeck session.
func keyOf(info *tapedeck.Session) key {
	k := key{info.Labels[labelApp], info.Labels[labelUser], info.Labels[labelSession]}
	if LogID(k.app, k.user, k.session) != info.ID {
		k.session = info.ID // a fork has the labels of its parent
	}
	return k
}

// Delete deletes a session. If there is none, it does nothing. The state of the app and
// of the user stays.
func (s *Service) Delete(ctx context.Context, req *session.DeleteRequest) error {
	k := key{req.AppName, req.UserID, req.SessionID}
	if err := checkKey(k); err != nil {
		return err
	}
	info, err := s.find(ctx, k)
	if err == nil {
		err = s.store.Delete(ctx, info.ID)
	}
	if missing(err) {
		return nil
	}
	return err
}

// AppendEvent stores an event. It changes cur, too, which must be a session that this
// service returned. A partial event is not stored. If cur does not have the newest events
// of the log, such as those of another run or a rewind, the event is refused as a
// [tapedeck.Conflict]: get the session again.
func (s *Service) AppendEvent(ctx context.Context, cur session.Session, event *session.Event) error {
	switch {
	case cur == nil:
		return tapedeck.Errorf(tapedeck.Invalid, "the session is nil")
	case event == nil:
		return tapedeck.Errorf(tapedeck.Invalid, "the event is nil")
	case event.Partial:
		return nil
	}
	c, ok := cur.(*conversation)
	if !ok || c.service != s {
		return tapedeck.Errorf(tapedeck.Invalid, "the session %q was not returned by this service", cur.ID()).WithHint("create it, or get it")
	}
	return c.append(ctx, event)
}

// stateOf returns the state of a Tapedeck session as of an offset.
func (s *Service) stateOf(ctx context.Context, log string, at int64) (map[string]any, error) {
	now, err := s.store.Snapshot(ctx, log, view.Query{At: &at, Limit: 1})
	if err != nil {
		return nil, err
	}
	state := map[string]any{}
	if now.State == nil {
		return state, nil
	}
	// Another program may have put something else there, which ADK has no form for.
	if err := json.Unmarshal(now.State.Value, &state); err != nil || state == nil {
		return map[string]any{}, nil //nolint:nilerr // such a state has no keys
	}
	return state, nil
}

// missing reports whether an error means that a session does not exist any more.
func missing(err error) bool {
	kind := tapedeck.KindOf(err)
	return kind == tapedeck.NotFound || kind == tapedeck.Gone
}
