package rest

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
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

	channels bool // in the form of the six channels, see isChannels
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
		v := viewing{channels: isChannels(r), query: httpapi.ParseQuery(r, parameters...)}
		at, life := v.query.AtCursor()
		v.at = at
		if v.query.Err != nil {
			return v.query.Err
		}
		v.session, err = h.Sessions.Head(r.Context(), id)
		if err != nil {
			return err
		}
		if err := httpapi.CheckIncarnation(&v.session, id, life); err != nil {
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
	maxItems     = 10_000   // messages or tasks
	maxItemBytes = 16 << 20 // of all of them, or what began at one offset
	defaultTasks = 100

	defaultMarkers = 500 // markers of each kind, invocations, and gaps
)

// snapshot returns the requested part of the conversation.
func (h *handler) snapshot(ctx context.Context, v *viewing) (view.Snapshot, error) {
	q := view.Query{
		At: new(v.at), Thread: v.query.ID("thread"),
		Limit: v.query.Limit(view.Window, maxItems), Bytes: maxItemBytes, Before: v.query.Offset("before", 0),
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

func messages(s *view.Snapshot) any {
	m := api.Messages{At: s.At, Messages: s.Messages, Earlier: s.Earlier}
	if exact := view.ExactMessages(s.Messages); exact != nil {
		return struct {
			api.Messages
			Exact any `json:"messages"`
		}{m, exact}
	}
	return m
}

func state(s *view.Snapshot) any {
	return api.SharedState{At: s.At, State: s.State}
}

func plan(s *view.Snapshot) any {
	return api.CurrentPlan{At: s.At, Plan: s.Plan}
}

func threads(s *view.Snapshot) any {
	return api.Threads{At: s.At, Threads: s.Threads}
}

func (h *handler) summary(ctx context.Context, v *viewing) (any, error) {
	if v.query.OneOf("format", "native", "native", "channels"); v.query.Err != nil {
		return nil, v.query.Err
	}
	s, err := h.Views.Summary(ctx, v.session.ID, v.at)
	if err != nil || !v.channels {
		return s, err
	}
	return channelSummary{v.session.ID, v.session.ID, s.Short()}, nil
}

// A channelSummary is a summary in the form of the six channels: that of a list, as a row of
// a table of its own.
type channelSummary struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	view.SessionSummary
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

// tasks answers with the newest tasks.
func (h *handler) tasks(ctx context.Context, v *viewing) (any, error) {
	q := view.Query{
		At: new(v.at), Runs: true, Thread: v.query.ID("thread"),
		Limit: v.query.Limit(defaultTasks, maxItems), Bytes: maxItemBytes, Before: v.query.Offset("before", 0),
	}
	if v.query.Err != nil {
		return nil, v.query.Err
	}
	s, err := h.Views.Snapshot(ctx, v.session.ID, q)
	return api.Tasks{At: s.At, Tasks: view.Tasks(s), Earlier: s.Earlier}, err
}

func (h *handler) instances(ctx context.Context, v *viewing) (any, error) {
	list, err := h.Views.Instances(ctx, v.session.ID, v.at)
	return api.Instances{At: v.at, Instances: httpapi.OrEmpty(list)}, err
}

func (h *handler) branches(ctx context.Context, v *viewing) (any, error) {
	tree, err := h.Views.Branches(ctx, v.session.ID, v.at)
	return api.Branches{At: v.at, Branches: httpapi.OrEmpty(tree.Branches), Cut: tree.Cut}, err
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
	return api.Context{
		At: v.at, Instance: of.ID, Thread: of.Thread, Earlier: s.Earlier,
		Messages: messages, Places: view.Places(messages), Events: view.ContextEvents(s, of),
	}, err
}

// withPrompt returns the conversation of a thread. It includes the system text of the
// model even if that is older than the messages that fit into the answer.
func (h *handler) withPrompt(ctx context.Context, v *viewing, thread string, limit int) (view.Snapshot, error) {
	s, err := h.Views.Snapshot(ctx, v.session.ID, view.Query{At: new(v.at), Thread: thread, Limit: limit, Bytes: maxItemBytes})
	if err != nil || s.Earlier == 0 || len(s.Threads) == 0 || s.Threads[0].Prompt == nil {
		return s, err
	}
	at := s.Threads[0].Prompt.Offset
	if len(s.Messages) > 0 && s.Messages[0].Offset <= at {
		return s, nil
	}
	before, err := h.Views.Snapshot(ctx, v.session.ID, view.Query{At: new(v.at), Thread: thread, Limit: 1, Before: at + 1})
	if err == nil && len(before.Messages) > 0 && before.Messages[0].Offset == at {
		s.Messages = append(before.Messages, s.Messages...)
		s.Earlier--
	}
	return s, err
}
