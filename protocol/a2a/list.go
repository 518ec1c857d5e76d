package a2a

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/a2a03"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Limits of a list.
const (
	defaultPage  = 50
	maxPage      = 100
	listSessions = 500 // the newest sessions of which tasks are listed, if the client names none
	listRuns     = 500 // the newest runs of a session
)

// A listed task is one in a list, before its history is read.
type listed struct {
	ref
	state sdk.TaskState
	at    time.Time // of its status
}

// before is the order of a list: the newest status first.
func (l *listed) before(o *listed) int {
	return cmp.Or(o.at.Compare(l.at), cmp.Compare(l.id(), o.id()))
}

// list returns a page of the active tasks of the agent.
func (c *call) list(ctx context.Context, q *sdk.ListTasksRequest) (*sdk.ListTasksResponse, error) {
	bad := func(format string, args ...any) error {
		return invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, format, args...))
	}
	size := cmp.Or(q.PageSize, defaultPage)
	if size < 1 || size > maxPage {
		return nil, bad("pageSize is %d; it is 1 to %d", q.PageSize, maxPage)
	}
	if q.HistoryLength != nil && *q.HistoryLength < 0 {
		return nil, bad("historyLength is %d; it must be 0 or more", *q.HistoryLength)
	}
	if q.Status != sdk.TaskStateUnspecified {
		state, ok := a2a03.StateToV1(string(q.Status))
		if !ok {
			return nil, bad("there is no state %.40q of a task", q.Status)
		}
		q.Status = state
	}
	after, err := parseToken(q.PageToken)
	if err != nil {
		return nil, err
	}
	all, err := c.candidates(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &sdk.ListTasksResponse{Tasks: []*sdk.Task{}, TotalSize: len(all), PageSize: size}
	if after != nil {
		all = slices.DeleteFunc(all, func(l *listed) bool { return after.before(l) >= 0 })
	}
	for i, l := range all {
		if i == size {
			out.NextPageToken = all[i-1].token()
			break
		}
		f, err := c.load(ctx, l.ref, -1)
		switch tapedeck.KindOf(err) {
		case "":
		case tapedeck.NotFound: // it was reverted or deleted in the meantime
			continue
		default:
			return nil, err
		}
		t := trim(f.task(), q.HistoryLength)
		if !q.IncludeArtifacts {
			t.Artifacts = nil
		}
		out.Tasks = append(out.Tasks, t)
	}
	return out, nil
}

// candidates returns the tasks that match, in their order.
func (c *call) candidates(ctx context.Context, q *sdk.ListTasksRequest) ([]*listed, error) {
	sessions, err := c.sessions(ctx, q.ContextID)
	if err != nil {
		return nil, err
	}
	var out []*listed
	for i := range sessions {
		tasks, err := c.tasksOf(ctx, &sessions[i])
		if err != nil {
			return nil, err
		}
		for _, l := range tasks {
			older := q.StatusTimestampAfter != nil && l.at.Before(*q.StatusTimestampAfter)
			if !older && (q.Status == "" || q.Status == l.state) {
				out = append(out, l)
			}
		}
	}
	slices.SortFunc(out, (*listed).before)
	return out, nil
}

// sessions returns one session, or the newest ones. A session that does not exist has no
// tasks.
func (c *call) sessions(ctx context.Context, id string) ([]tapedeck.Session, error) {
	if id == "" {
		page, err := c.Sessions.List(ctx, tapedeck.Filter{Limit: listSessions})
		return page.Sessions, err
	}
	if err := tapedeck.CheckID("the contextId", id); err != nil {
		return nil, err
	}
	s, err := c.Sessions.Head(ctx, id)
	switch tapedeck.KindOf(err) {
	case "":
		if s.Kind == tapedeck.KindSession {
			return []tapedeck.Session{s}, nil
		}
		return nil, nil
	case tapedeck.NotFound, tapedeck.Gone:
		return nil, nil
	}
	return nil, err
}

// tasksOf returns the active tasks of a session, without their history.
func (c *call) tasksOf(ctx context.Context, s *tapedeck.Session) ([]*listed, error) {
	if !s.Status.Begun() && s.Parent == "" && s.LastJump == 0 {
		return nil, nil // nothing has run in it
	}
	now, err := c.Views.Snapshot(ctx, s.ID, view.Query{Runs: true, Limit: listRuns})
	switch tapedeck.KindOf(err) {
	case "":
	case tapedeck.NotFound, tapedeck.Gone: // it was deleted in the meantime
		return nil, nil
	default:
		return nil, err
	}
	var out []*listed
	for i := range now.Runs {
		r := &now.Runs[i]
		if r.Sub || payload.IsSubThread(r.Thread) || !c.sees(r.Agent) || c.Policy == PerSession && r.Thread != tapedeck.MainThread {
			continue
		}
		l := &listed{c.refOf(s.ID, r.Invocation), stateOf(r, &now), r.StartedAt.Time}
		if r.EndedAt != nil {
			l.at = r.EndedAt.Time
		}
		out = append(out, l)
	}
	if c.Policy == PerSession {
		return c.taskOf(ctx, s, &now, out)
	}
	return out, nil
}

// taskOf returns the task of a session, which has the state of its newest run, or is
// completed if that was before a rewind. A session from which a rewind has removed all runs
// has it, too.
func (c *call) taskOf(ctx context.Context, s *tapedeck.Session, now *view.Snapshot, runs []*listed) ([]*listed, error) {
	runs = runs[max(0, len(runs)-1):]
	if s.LastJump == 0 {
		return runs, nil
	}
	t, err := c.Views.Timeline(ctx, s.ID, now.At)
	if err != nil {
		return nil, err
	}
	newest := int64(-1)
	for i := range now.Threads {
		if now.Threads[i].Name == tapedeck.MainThread {
			newest = now.Threads[i].Last
		}
	}
	if _, ok := wentBack(t, newest, now.At); !ok {
		return runs, nil
	}
	inMain := func(r view.Run) bool { return r.Thread == tapedeck.MainThread }
	if !slices.ContainsFunc(now.Runs, inMain) && c.sees(s.Agent) {
		runs = []*listed{{ref: ref{session: s.ID}, at: s.Created}}
	}
	for _, l := range runs {
		l.state = sdk.TaskStateCompleted
	}
	return runs, nil
}

// stateOf returns the state of the task of a run.
func stateOf(r *view.Run, s *view.Snapshot) sdk.TaskState {
	switch r.Status {
	case tapedeck.StatusComplete:
		return sdk.TaskStateCompleted
	case tapedeck.StatusCancelled:
		return sdk.TaskStateCanceled
	case tapedeck.StatusFailed:
		return sdk.TaskStateFailed
	case tapedeck.StatusInterrupted:
		switch {
		case r.Error != nil:
			return sdk.TaskStateFailed
		case r.EndOffset != nil && len(r.Interrupts) > 0:
			return sdk.TaskStateInputRequired
		}
		return sdk.TaskStateCanceled
	}
	for i := range s.Permissions {
		if p := &s.Permissions[i]; p.Status == view.PermissionOpen && p.Invocation == r.Invocation {
			return sdk.TaskStateInputRequired
		}
	}
	return sdk.TaskStateWorking
}

// token returns the token of the page after the task.
func (l *listed) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(l.at.UnixMilli(), 10) + " " + l.id()))
}

// parseToken returns the task before a page, nil for the first page.
func parseToken(s string) (*listed, error) {
	if s == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	at, id, ok := strings.Cut(string(b), " ")
	ms, bad := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || bad != nil {
		return nil, invalidParams.of(tapedeck.Errorf(tapedeck.Invalid, "the pageToken is not one that this server has given out"))
	}
	session, invocation, _ := strings.Cut(id, divider)
	return &listed{ref: ref{session, invocation}, at: time.UnixMilli(ms)}, nil
}

func (c *call) rpcList(q *rpcRequest) (json.RawMessage, bool, error) {
	var in sdk.ListTasksRequest
	if err := decodeParams(q.Params, &in); err != nil {
		return nil, false, err
	}
	out, err := c.list(c.r.Context(), &in)
	if err != nil {
		return nil, false, err
	}
	return c.encodeList(out), false, nil
}

// encodeList encodes a page of tasks. The token is there on the last page, too.
func (c *call) encodeList(l *sdk.ListTasksResponse) json.RawMessage {
	tasks := make([]json.RawMessage, len(l.Tasks))
	for i, t := range l.Tasks {
		tasks[i] = c.version.encodeTask(t)
	}
	return encodeJSON(map[string]any{"tasks": tasks, "totalSize": l.TotalSize, "pageSize": l.PageSize, "nextPageToken": l.NextPageToken})
}
