package rest

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/view"
)

// views is what sessions look like, folded.
type views interface {
	standing
	chronicle
}

// standing is what is in force in a session.
type standing interface {
	Snapshot(ctx context.Context, session string, q view.Query) (view.Snapshot, error)
	Instances(ctx context.Context, session string, at int64) (view.Instances, error)
	Timeline(ctx context.Context, session string, at int64) (*view.Timeline, error)
	Effective(ctx context.Context, session string, from, at int64) iter.Seq2[tapedeck.Event, error]
}

// chronicle is what happened in it, taken back or not.
type chronicle interface {
	Summary(ctx context.Context, session string, at int64) (view.Summary, error)
	Index(ctx context.Context, session string, at int64) (view.Index, error)
	Branches(ctx context.Context, session string, at int64) ([]view.Branch, error)
	Epoch() string
}

// viewForm changes with the form of views, so that no cache keeps one of an older
// form.
const viewForm = 8

// A viewing is a request for a view.
type viewing struct {
	session tapedeck.Session
	at      int64 // as of this offset
	query   *query
}

// A makeView returns the view of a session as of an offset.
type makeView func(h *handler, ctx context.Context, v *viewing) (any, error)

// serve answers with the view.
func (f makeView) serve(parameters []string) func(*handler, http.ResponseWriter, *http.Request) error {
	return func(h *handler, w http.ResponseWriter, r *http.Request) error {
		id, err := sessionID(r)
		if err != nil {
			return err
		}
		v := viewing{query: parseQuery(r, parameters...)}
		v.at = v.query.offset("at", -1)
		if v.query.err != nil {
			return v.query.err
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
		w.Header().Set("Cache-Control", "no-cache") // ask again each time, and get 304
		if matches(r.Header.Get("If-None-Match"), tag) {
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
		out, err := f(h, r.Context(), &v)
		if err == nil {
			err = v.query.err
		}
		if err != nil {
			return err
		}
		w.Header().Set("ETag", tag)
		return writeJSON(w, http.StatusOK, out)
	}
}

// tag returns the ETag. What a session was at an offset does not change, so that
// makes it; except for its title and the like, which are as they are now, and for
// what is erased.
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
	maxItems     = 10_000 // messages of a snapshot, or tasks
	defaultTasks = 100

	defaultMarkers = 500 // of each kind, and as many invocations and gaps
)

// snapshot returns the part of the conversation that is asked for.
func (h *handler) snapshot(ctx context.Context, v *viewing) (view.Snapshot, error) {
	q := view.Query{
		At: v.at, Thread: v.query.id("thread"),
		Limit: v.query.limit(view.Window, maxItems), Before: v.query.offset("before", 0),
	}
	if v.query.err != nil {
		return view.Snapshot{}, v.query.err
	}
	if !v.query.values.Has("limit") {
		q.Limit = 0 // what is at hand
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

func messages(s *view.Snapshot) any {
	return api.Messages{At: s.At, Messages: s.Messages, Earlier: s.Earlier}
}

func state(s *view.Snapshot) any { return api.SharedState{At: s.At, State: s.State} }

func plan(s *view.Snapshot) any { return api.CurrentPlan{At: s.At, Plan: s.Plan} }

func threads(s *view.Snapshot) any { return api.Threads{At: s.At, Threads: s.Threads} }

func (h *handler) summary(ctx context.Context, v *viewing) (any, error) {
	return h.Views.Summary(ctx, v.session.ID, v.at)
}

func (h *handler) replayIndex(ctx context.Context, v *viewing) (any, error) {
	limit := v.query.limit(defaultMarkers, maxItems)
	if v.query.err != nil {
		return nil, v.query.err
	}
	x, err := h.Views.Index(ctx, v.session.ID, v.at)
	if err != nil {
		return nil, err
	}
	return x.Limited(limit), nil
}

// tasks answers with the newest tasks.
func (h *handler) tasks(ctx context.Context, v *viewing) (any, error) {
	q := view.Query{
		At: v.at, Runs: true, Thread: v.query.id("thread"),
		Limit: v.query.limit(defaultTasks, maxItems), Before: v.query.offset("before", 0),
	}
	if v.query.err != nil {
		return nil, v.query.err
	}
	s, err := h.Views.Snapshot(ctx, v.session.ID, q)
	return api.Tasks{At: s.At, Tasks: view.Tasks(s), Earlier: s.Earlier}, err
}

func (h *handler) instances(ctx context.Context, v *viewing) (any, error) {
	list, err := h.Views.Instances(ctx, v.session.ID, v.at)
	return api.Instances{At: v.at, Instances: orEmpty(list)}, err
}

func (h *handler) branches(ctx context.Context, v *viewing) (any, error) {
	list, err := h.Views.Branches(ctx, v.session.ID, v.at)
	return api.Branches{At: v.at, Branches: orEmpty(list)}, err
}

// context answers with what a model is to be told: the messages, and the same
// event by event.
func (h *handler) context(ctx context.Context, v *viewing) (any, error) {
	id, thread, limit := v.query.id("instance"), v.query.id("thread"), v.query.limit(view.Window, maxItems)
	if id != "" && thread != "" {
		v.query.fail("instance and thread do not go together: an instance has its thread")
	}
	if v.query.err != nil {
		return nil, v.query.err
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
	return api.Context{
		At: v.at, Instance: of.ID, Thread: of.Thread, Earlier: s.Earlier,
		Messages: messages, Places: view.Places(messages), Events: view.ContextEvents(s, of),
	}, err
}

// withPrompt returns the conversation of a thread, with the system text of its
// model also if that is older than the messages that fit into an answer.
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
