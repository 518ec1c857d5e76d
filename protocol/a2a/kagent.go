package a2a

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/a2a03"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// The screen of kagent makes sessions and reads their tasks outside of A2A, and its agents
// write tasks there. These requests have the form of version 0.3.
const (
	kagentSessions = "/api/sessions"
	kagentTasks    = "/api/tasks"
)

// A kagentMethod carries out a request of kagent. id is a part of the path, see [kagentRoutes].
type kagentMethod func(c *call, id string) (any, error)

// kagentRoutes has what is served, by the path and the method.
var kagentRoutes = map[string]map[string]kagentMethod{
	kagentTasks:                                   {http.MethodPost: (*call).saveTask},
	kagentSessions + "/{id}/tasks":                {http.MethodGet: (*call).sessionTasks},
	kagentSessions + "/{id}/effective_history":    {http.MethodPut: (*call).saveHistory},
	kagentSessions:                                {http.MethodGet: (*call).listSessions, http.MethodPost: (*call).createSession},
	kagentSessions + "/{id}":                      {http.MethodGet: (*call).getSession, http.MethodDelete: (*call).deleteSession},
	kagentSessions + "/agent/{namespace}/{agent}": {http.MethodGet: (*call).agentSessions},
}

// kagentRoute returns the route of a request and the id in its path, "" if it is not one of
// kagent's. The API has sessions at the same paths: a request for them is kagent's if it
// says which user it is for, as each of kagent's does.
func kagentRoute(r *http.Request) (route, id string) {
	rest, ok := strings.CutPrefix(r.URL.Path, kagentSessions)
	id, what, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	user := userOf(r) != ""
	switch {
	case r.URL.Path == kagentTasks:
		return kagentTasks, ""
	case !ok || rest != "" && id == "":
		return "", ""
	case user && rest == "":
		return kagentSessions, ""
	case user && what == "":
		return kagentSessions + "/{id}", id
	case user && id == "agent" && strings.Count(what, "/") == 1:
		return kagentSessions + "/agent/{namespace}/{agent}", what
	case what == "tasks", what == "effective_history":
		return kagentSessions + "/{id}/" + what, id
	}
	return "", ""
}

// userOf returns the user for whom a client of kagent asks, "" if the request names none.
func userOf(r *http.Request) string { return r.URL.Query().Get("user_id") }

// IsKagent reports whether a request below /api is one of kagent's, which a [Handler]
// answers.
func IsKagent(r *http.Request) bool {
	route, _ := kagentRoute(r)
	return route != ""
}

// serveKagent answers a request of kagent. It reports false for other ones.
func (h *Handler) serveKagent(w http.ResponseWriter, r *http.Request) bool {
	route, id := kagentRoute(r)
	if route == "" {
		return false
	}
	c := &call{Handler: h, w: w, r: r, version: v03}
	data, err := c.kagent(route, id)
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		f := c.failure(err)
		httpapi.WriteBytes(w, f.status, encodeJSON(map[string]any{"error": f.sentence(), "message": f.sentence()}))
		return true
	}
	status := http.StatusOK
	if route == kagentSessions && r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	httpapi.WriteBytes(w, status, encodeJSON(map[string]any{"error": false, "data": data, "message": "ok"}))
	return true
}

func (c *call) kagent(route, id string) (any, error) {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	serve := kagentRoutes[route][method]
	switch {
	case serve == nil:
		return nil, problem.MethodNotAllowed(c.w, c.r, slices.Sorted(maps.Keys(kagentRoutes[route]))...)
	case strings.Contains(route, "{id}"):
		if err := tapedeck.CheckID("the session", id); err != nil {
			return nil, err
		}
	}
	return serve(c, id)
}

// sessionTasks returns the active tasks of a session, the oldest first.
func (c *call) sessionTasks(session string) (any, error) {
	ctx := c.r.Context()
	s, err := c.Sessions.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	refs, err := c.tasksOf(ctx, &s)
	if err != nil {
		return nil, err
	}
	tasks := make([]json.RawMessage, 0, len(refs))
	for _, l := range refs {
		f, err := c.load(ctx, l.ref, -1)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, c.version.encodeTask(f.task()))
	}
	return tasks, nil
}

// saveTask accepts the task that an agent of kagent saves. The agents of this server
// write the log, so there is nothing to save except a rewind: the task of the session,
// with a history that ends earlier than the active one; or the first task of a session in
// which nobody has written. The task of a run must be what the
// log has. The answer is the task as a GET returns it.
func (c *call) saveTask(string) (any, error) {
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	var t a2a03.Task
	if err := decodeParams(body, &t); err != nil {
		return nil, err
	}
	if err := tapedeck.CheckID("the contextId of the task", t.ContextID); err != nil {
		return nil, err
	}
	switch _, known := a2a03.StateToV1(t.Status.State); {
	case !known:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "there is no state %.40q of a task", t.Status.State)
	case len(t.ID) > maxName:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the id of the task has %d bytes; at most %d are allowed", len(t.ID), maxName)
	}
	ctx := c.r.Context()
	if t.ID != "" && t.ID != t.ContextID {
		return c.saveRun(ctx, &t)
	}
	inserted, err := c.insertTask(ctx, &t)
	if err == nil && !inserted && t.History != nil {
		err = c.rewindToHistory(ctx, t.ContextID, t.History)
	}
	if err != nil {
		return nil, err
	}
	f, err := c.load(ctx, ref{session: t.ContextID}, -1)
	if err != nil {
		return nil, err
	}
	return c.version.encodeTask(f.task()), nil
}

// saveRun compares the task of a run with the log. A task with an id of the agent's own is
// that of the newest run.
func (c *call) saveRun(ctx context.Context, t *a2a03.Task) (any, error) {
	all, err := c.effective(ctx, t.ContextID)
	if err != nil {
		return nil, err
	}
	r, err := c.parseRef(t.ID)
	if err != nil || r.session != t.ContextID || r.invocation == "" {
		r = ref{session: t.ContextID}
		if n := len(all.history); n > 0 {
			r.invocation = invocationOf(all.history[n-1])
		}
	}
	var own []*sdk.Message
	for _, m := range all.history {
		if invocationOf(m) == r.invocation {
			own = append(own, m)
		}
	}
	if len(t.History) > 0 && all.match(own, t.History) < 0 {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the messages are not those of task %.200q", t.ID).
			WithHint("the agents of this server write the log; to rewind, save the effective history as a task whose id is that of the session")
	}
	f, err := c.load(ctx, r, -1)
	if err != nil {
		return nil, err
	}
	return c.version.encodeTask(f.task()), nil
}

// saveHistory accepts the effective history of a session: a list of messages, or an
// object with such a list.
func (c *call) saveHistory(session string) (any, error) {
	body, err := c.readBody()
	if err != nil {
		return nil, err
	}
	var in struct {
		Messages []*a2a03.Message `json:"messages"`
		History  []*a2a03.Message `json:"history"`
	}
	if strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		body = append(append([]byte(`{"messages":`), body...), '}')
	}
	if err := decodeParams(body, &in); err != nil {
		return nil, err
	}
	if in.Messages == nil {
		in.Messages = in.History
	}
	if in.Messages == nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the body has no messages").WithHint("send a list of messages")
	}
	if err := c.rewindToHistory(c.r.Context(), session, in.Messages); err != nil {
		return nil, err
	}
	return c.sessionTasks(session)
}

// rewindToHistory rewinds a session so that its active messages are those of a list. The
// list must be a beginning of them that ends with an invocation. If it has all of them,
// there is nothing to do.
func (c *call) rewindToHistory(ctx context.Context, session string, list []*a2a03.Message) error {
	all, err := c.effective(ctx, session)
	if err != nil {
		return err
	}
	kept := all.match(all.history, list)
	switch kept {
	case -1:
		return tapedeck.Errorf(tapedeck.Conflict, "the messages are not a beginning of the conversation of session %s", session).
			WithHint("the agents of this server write the log; a history that is saved can only end earlier")
	case len(all.history):
		return nil
	}
	next := invocationOf(all.history[kept])
	if next == "" || kept > 0 && invocationOf(all.history[kept-1]) == next {
		return tapedeck.Errorf(tapedeck.Invalid, "the messages end within the invocation %q", next).
			WithHint("end with the last message of an invocation")
	}
	_, err = c.rewindSession(ctx, session, next)
	return err
}

// An effective has the active messages of a session, and their names.
type effective struct {
	history          []*sdk.Message
	ids, invocations map[string]bool
}

func (c *call) effective(ctx context.Context, session string) (*effective, error) {
	s, err := c.Sessions.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	f, err := c.fold(ctx, ref{session: session}, 0, s.Head)
	if err != nil {
		return nil, err
	}
	all := &effective{history: f.history, ids: map[string]bool{}, invocations: map[string]bool{}}
	for _, m := range f.history {
		all.ids[m.ID], all.ids[ownID(m)], all.invocations[invocationOf(m)] = true, true, true
	}
	return all, nil
}

// ownID returns the id that a message has in the task of its run, see [fold.messageID].
func ownID(m *sdk.Message) string { return strings.TrimSuffix(m.ID, divider+invocationOf(m)) }

// match returns how many messages of a history a list has, or -1 if the list is not a
// beginning of the history. A message without a text, such as a tool call, may be missing
// in the list or in the history, and at the end of a run the error with which it has failed.
func (all *effective) match(history []*sdk.Message, list []*a2a03.Message) int {
	n := 0
	for _, m := range list {
		at := n
		for at < len(history) && !all.same(history[at], m) && saidIn(history[at].Parts) == "" {
			at++
		}
		switch {
		case m == nil:
			return -1
		case at < len(history) && all.same(history[at], m):
			n = at + 1
		case len(m.Parts) == 0 || saidBy(m) != "" || all.ids[m.ID]:
			return -1
		}
	}
	if n == 0 && len(list) > 0 {
		return -1
	}
	ours := func(m *sdk.Message) bool { return saidIn(m.Parts) == "" || strings.HasPrefix(m.ID, keyError) }
	for n > 0 && n < len(history) && ours(history[n]) && invocationOf(history[n]) == invocationOf(history[n-1]) {
		n++
	}
	return n
}

// same reports whether m is the message h of the history: by its id, or by its text if the
// agent has given it an id of its own. Its role, text and invocation must not differ.
func (all *effective) same(h *sdk.Message, m *a2a03.Message) bool {
	if m == nil {
		return false
	}
	role := "agent"
	if h.Role == sdk.MessageRoleUser {
		role = "user"
	}
	said := saidBy(m)
	invocation, _ := m.Metadata[prefixes[1]+keyInvocation].(string)
	switch {
	case m.Role != role, said != "" && said != saidIn(h.Parts), all.invocations[invocation] && invocation != invocationOf(h):
		return false
	case all.ids[m.ID]:
		return m.ID == h.ID || m.ID == ownID(h)
	}
	return said != ""
}

func saidIn(parts sdk.ContentParts) (text string) {
	for _, p := range parts {
		text += p.Text()
	}
	return text
}

func saidBy(m *a2a03.Message) (text string) {
	for _, p := range m.Parts {
		if p.Text != nil {
			text += *p.Text
		}
	}
	return text
}

func invocationOf(m *sdk.Message) string {
	id, _ := m.Metadata[prefixes[0]+keyInvocation].(string)
	return id
}
