package rest

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
)

// viewForm changes with the form of views, so that no cache keeps a view of an older
// form.
const viewForm = 8

// A viewing is a request for a view.
type viewing struct {
	session tapedeck.Session
	at      int64 // the view is as of this offset
	query   *httpapi.Query
}

// A makeView returns the view of a session as of an offset.
type makeView func(h *handler, ctx context.Context, v *viewing) (any, error)

// serve answers with the view.
func (f makeView) serve(parameters []string) func(*handler, http.ResponseWriter, *http.Request) error {
	return func(h *handler, w http.ResponseWriter, r *http.Request) error {
		id, err := httpapi.SessionID(r)
		if err != nil {
			return err
		}
		v := viewing{query: httpapi.ParseQuery(r, parameters...)}
		v.at = v.query.Offset("at", -1)
		if v.query.Err != nil {
			return v.query.Err
		}
		v.session, err = h.Sessions.Head(r.Context(), id)
		if err != nil {
			return err
		}
		if v.at < 0 {
			v.at = v.session.Head
		}
		if v.at > v.session.Head {
			return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", id, v.session.Head, v.at)
		}
		tag := v.tag(h.Views.Epoch())
		w.Header().Set("Cache-Control", "no-cache") // a client asks again each time, and gets 304
		if matches(r.Header.Get("If-None-Match"), tag) {
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		out, err := f(h, r.Context(), &v)
		if err == nil {
			err = v.query.Err
		}
		if err != nil {
			return err
		}
		w.Header().Set("ETag", tag)
		return httpapi.WriteJSON(w, http.StatusOK, out)
	}
}

// tag returns the ETag. A session as of an offset does not change, except for its title
// and other attributes, which are the current ones, and for erased events, which change
// the epoch.
func (v *viewing) tag(epoch string) string {
	s, h := &v.session, fnv.New32a()
	fmt.Fprintf(h, "%q %q %q %q %t", s.Title, s.Owner, s.Agent, s.Labels, s.Closed)
	return fmt.Sprintf(`"%d-%d-%d-%x-%s"`, viewForm, s.Gen, v.at, h.Sum32(), epoch)
}

// matches reports whether If-None-Match names the tag.
func matches(header, tag string) bool {
	for v := range strings.SplitSeq(header, ",") {
		if v = strings.TrimSpace(v); v == "*" || strings.TrimPrefix(v, "W/") == tag {
			return true
		}
	}
	return false
}

// Limits of one answer.
const (
	maxItems     = 10_000 // messages or tasks
	defaultTasks = 100

	defaultMarkers = 500 // markers of each kind, invocations, and gaps
)

// snapshot returns the requested part of the conversation.
func (h *handler) snapshot(ctx context.Context, v *viewing) (view.Snapshot, error) {
	q := view.Query{
		At: v.at, Thread: v.query.ID("thread"),
		Limit: v.query.Limit(view.Window, maxItems), Before: v.query.Offset("before", 0),
	}
	if v.query.Err != nil {
		return view.Snapshot{}, v.query.Err
	}
	if !v.query.Values.Has("limit") {
		q.Limit = 0 // the messages that are in memory
	}
	return h.Views.Snapshot(ctx, v.session.ID, q)
}

// ofSnapshot makes a view that is a part of a snapshot.
func ofSnapshot(part func(*view.Snapshot) any) makeView {
	return func(h *handler, ctx context.Context, v *viewing) (any, error) {
		s, err := h.snapshot(ctx, v)
		if err != nil {
			return nil, err
		}
		return part(&s), nil
	}
}

// A messagesAnswer is the answer to GET /sessions/{id}/messages.
type messagesAnswer struct {
	At       int64          `json:"at"`
	Messages []view.Message `json:"messages"`
	Earlier  int            `json:"earlier"`
}

func messages(s *view.Snapshot) any {
	return messagesAnswer{s.At, s.Messages, s.Earlier}
}

// A stateAnswer is the answer to GET /sessions/{id}/state.
type stateAnswer struct {
	At    int64       `json:"at"`
	State *view.State `json:"state"`
}

func state(s *view.Snapshot) any {
	return stateAnswer{s.At, s.State}
}

// A planAnswer is the answer to GET /sessions/{id}/plan.
type planAnswer struct {
	At   int64      `json:"at"`
	Plan *view.Plan `json:"plan"`
}

func plan(s *view.Snapshot) any {
	return planAnswer{s.At, s.Plan}
}

// A threadsAnswer is the answer to GET /sessions/{id}/threads.
type threadsAnswer struct {
	At      int64         `json:"at"`
	Threads []view.Thread `json:"threads"`
}

func threads(s *view.Snapshot) any {
	return threadsAnswer{s.At, s.Threads}
}

func (h *handler) summary(ctx context.Context, v *viewing) (any, error) {
	return h.Views.Summary(ctx, v.session.ID, v.at)
}

func (h *handler) replayIndex(ctx context.Context, v *viewing) (any, error) {
	limit := v.query.Limit(defaultMarkers, maxItems)
	if v.query.Err != nil {
		return nil, v.query.Err
	}
	x, err := h.Views.Index(ctx, v.session.ID, v.at)
	if err != nil {
		return nil, err
	}
	return x.Limited(limit), nil
}

// A tasksAnswer is the answer to GET /sessions/{id}/tasks.
type tasksAnswer struct {
	At      int64       `json:"at"`
	Tasks   []view.Task `json:"tasks"`
	Earlier int         `json:"earlier,omitempty"`
}

// tasks answers with the newest tasks.
func (h *handler) tasks(ctx context.Context, v *viewing) (any, error) {
	q := view.Query{
		At: v.at, Runs: true, Thread: v.query.ID("thread"),
		Limit: v.query.Limit(defaultTasks, maxItems), Before: v.query.Offset("before", 0),
	}
	if v.query.Err != nil {
		return nil, v.query.Err
	}
	s, err := h.Views.Snapshot(ctx, v.session.ID, q)
	return tasksAnswer{s.At, view.Tasks(s), s.Earlier}, err
}

// An instancesAnswer is the answer to GET /sessions/{id}/instances.
type instancesAnswer struct {
	At        int64          `json:"at"`
	Instances view.Instances `json:"instances"`
}

func (h *handler) instances(ctx context.Context, v *viewing) (any, error) {
	list, err := h.Views.Instances(ctx, v.session.ID, v.at)
	return instancesAnswer{v.at, httpapi.OrEmpty(list)}, err
}

// A branchesAnswer is the answer to GET /sessions/{id}/branches.
type branchesAnswer struct {
	At       int64         `json:"at"`
	Branches []view.Branch `json:"branches"`
	Cut      bool          `json:"cut,omitempty"` // the tree is larger than its limits
}

func (h *handler) branches(ctx context.Context, v *viewing) (any, error) {
	list, cut, err := h.Views.Branches(ctx, v.session.ID, v.at)
	return branchesAnswer{v.at, httpapi.OrEmpty(list), cut}, err
}

// A contextAnswer is the answer to GET /sessions/{id}/context.
type contextAnswer struct {
	At       int64                 `json:"at"`
	Instance string                `json:"instance,omitempty"`
	Thread   string                `json:"thread"`
	Messages []view.ContextMessage `json:"messages"`
	Places   []view.ContextPlace   `json:"places"` // where each message comes from
	Events   []view.ContextEvent   `json:"events"`
	Earlier  int                   `json:"earlier,omitempty"`
}

// context answers with what a model receives: the messages, and the same event by event.
func (h *handler) context(ctx context.Context, v *viewing) (any, error) {
	id, thread, limit := v.query.ID("instance"), v.query.ID("thread"), v.query.Limit(view.Window, maxItems)
	if id != "" && thread != "" {
		v.query.Fail("instance and thread do not go together: an instance has its thread")
	}
	if v.query.Err != nil {
		return nil, v.query.Err
	}
	of := view.InThread(thread)
	if id != "" {
		all, err := h.Views.Instances(ctx, v.session.ID, v.at)
		if err != nil {
			return nil, err
		}
		var ok bool
		if of, ok = all.Find(id); !ok {
			return nil, tapedeck.Errorf(tapedeck.NotFound, "session %s has no instance %s", v.session.ID, id).
				WithHint("GET /sessions/%s/instances lists them", v.session.ID)
		}
	}
	s, err := h.withPrompt(ctx, v, of.Thread, limit)
	messages := view.Context(s, of)
	return contextAnswer{v.at, of.ID, of.Thread, messages, view.Places(messages), view.ContextEvents(s, of), s.Earlier}, err
}

// withPrompt returns the conversation of a thread. It includes the system text of the
// model even if that is older than the messages that fit into the answer.
func (h *handler) withPrompt(ctx context.Context, v *viewing, thread string, limit int) (view.Snapshot, error) {
	s, err := h.Views.Snapshot(ctx, v.session.ID, view.Query{At: v.at, Thread: thread, Limit: limit})
	if err != nil || s.Earlier == 0 || len(s.Threads) == 0 || s.Threads[0].Prompt == nil {
		return s, err
	}
	at := s.Threads[0].Prompt.Offset
	if len(s.Messages) > 0 && s.Messages[0].Offset <= at {
		return s, nil
	}
	before, err := h.Views.Snapshot(ctx, v.session.ID, view.Query{At: v.at, Thread: thread, Limit: 1, Before: at + 1})
	if err == nil && len(before.Messages) > 0 && before.Messages[0].Offset == at {
		s.Messages = append(before.Messages, s.Messages...)
		s.Earlier--
	}
	return s, err
}
