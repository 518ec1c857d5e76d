package rest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine/instance"
	"github.com/tapedeck/tapedeck/engine/workflow"
	"github.com/tapedeck/tapedeck/hub"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/presence"
	"github.com/tapedeck/tapedeck/projection"
	"github.com/tapedeck/tapedeck/protocol/rest"
	"github.com/tapedeck/tapedeck/store/memory"
	"github.com/tapedeck/tapedeck/view"
)

// An engine is a simple implementation of [rest.Verbs]: a task appends the words of the
// user, and its run stays open until it is cancelled.
type engine struct {
	*hub.Hub
	rooms    *presence.Tracker
	tasks    int
	diagrams workflow.Store
	broken   error // what Create fails with, if not nil
}

func (g *engine) Create(ctx context.Context, n api.NewSession) (tapedeck.Session, error) {
	if g.broken != nil {
		return tapedeck.Session{}, g.broken
	}
	if n.ID == "" {
		n.ID = "ses_new"
	}
	data, _ := json.Marshal(payload.SessionCreated{Title: n.Title, Owner: n.Owner, Agent: n.Agent, Labels: n.Labels, State: n.State})
	done, err := g.Hub.Create(ctx, tapedeck.Spec{ID: n.ID, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated, Data: data}}})
	if err == nil && !done.New {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s is there already", n.ID)
	}
	return done.Session, err
}

func (g *engine) Rename(ctx context.Context, r api.Rename) (tapedeck.Session, error) {
	if r.Title == nil && r.Labels == nil {
		return tapedeck.Session{}, tapedeck.Errorf(tapedeck.Invalid, "there is nothing to change")
	}
	data, _ := json.Marshal(payload.SessionRenamed{Title: r.Title, Labels: r.Labels})
	_, err := g.Append(ctx, tapedeck.Append{Session: r.Session, Events: []tapedeck.Event{{Type: tapedeck.SessionRenamed, Data: data}}})
	if err != nil {
		return tapedeck.Session{}, err
	}
	return g.Head(ctx, r.Session)
}

func (g *engine) Close(ctx context.Context, session, _ string) error {
	_, err := g.Append(ctx, tapedeck.Append{Session: session, Close: true, Events: []tapedeck.Event{{Type: tapedeck.SessionClosed}}})
	return err
}

func (g *engine) PreviewImport(_ context.Context, in api.ImportRequest, r io.Reader) (api.ImportPreview, error) {
	done, err := g.Import(context.Background(), in, r)
	return api.ImportPreview{Format: in.Format, Sessions: []api.PreviewedSession{{Title: in.Title}}, Total: 1, Lines: done.Lines}, err
}

func (g *engine) Import(_ context.Context, in api.ImportRequest, r io.Reader) (api.Imported, error) {
	if in.Format != "lines" {
		return api.Imported{}, tapedeck.Errorf(tapedeck.Invalid, "there is no format %q", in.Format)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return api.Imported{}, tapedeck.Errorf(tapedeck.Invalid, "the import cannot be read").Because(err)
	}
	return api.Imported{Sessions: []string{"ses_imported"}, Lines: strings.Count(string(b), "\n")}, nil
}

func (g *engine) Start(ctx context.Context, t api.Task) (api.Started, error) {
	if t.Text == "" {
		return api.Started{}, tapedeck.Errorf(tapedeck.Invalid, "the task is empty")
	}
	if t.Session == "" {
		s, err := g.Create(ctx, api.NewSession{ID: fmt.Sprintf("ses_%d", g.tasks+1), Title: t.Title})
		if err != nil {
			return api.Started{}, err
		}
		t.Session = s.ID
	}
	g.tasks++
	inv := fmt.Sprintf("inv_%d", g.tasks)
	message, _ := json.Marshal(map[string]any{"message": map[string]string{"id": "msg_" + inv, "role": "user", "content": t.Text}})
	done, err := g.Append(ctx, tapedeck.Append{
		Session: t.Session,
		Check: func(s *tapedeck.Session) error {
			if run, busy := s.Run((&tapedeck.Event{Thread: t.Thread}).ThreadName()); busy {
				return tapedeck.Errorf(tapedeck.Conflict, "thread %s is busy with invocation %s", run.Thread, run.Invocation).
					WithHint("cancel it, or wait")
			}
			return nil
		},
		Events: []tapedeck.Event{
			{Type: tapedeck.MessageAdded, Thread: t.Thread, Invocation: inv, Data: message},
			{Type: tapedeck.RunStarted, Thread: t.Thread, Invocation: inv, Data: json.RawMessage(`{"threadId":"t","runId":"` + inv + `"}`)},
		},
	})
	return api.Started{Session: t.Session, Invocation: inv, Status: tapedeck.StatusRunning, Offset: done.First}, err
}

func (g *engine) Cancel(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	s, err := g.Head(ctx, session)
	if err != nil {
		return api.Cancelled{}, err
	}
	for _, run := range s.Runs {
		if invocation == "" || run.Invocation == invocation {
			done, err := g.Append(ctx, tapedeck.Append{Session: session, Events: []tapedeck.Event{{
				Type: tapedeck.RunFinished, Thread: run.Thread, Invocation: run.Invocation,
				Data: json.RawMessage(`{"threadId":"t","runId":"` + run.Invocation + `","outcome":{"type":"cancelled"}}`),
			}}})
			return api.Cancelled{Session: session, Invocation: run.Invocation, Status: tapedeck.StatusCancelled, Offset: done.First, Resumable: true}, err
		}
	}
	return api.Cancelled{}, tapedeck.Errorf(tapedeck.Conflict, "nothing is running in session %s", session)
}

func (g *engine) Renew(ctx context.Context, r api.Renewal) (api.Renewed, error) {
	s, err := g.Head(ctx, r.Session)
	if err == nil && !slices.ContainsFunc(s.Runs, func(o tapedeck.OpenRun) bool { return o.Invocation == r.Invocation }) {
		err = tapedeck.Errorf(tapedeck.Conflict, "run %s is not open in session %s", r.Invocation, r.Session)
	}
	return api.Renewed{Session: r.Session, Invocation: r.Invocation, LeaseMS: 15_000}, err
}

// The queue is tested with the real engine.
func (g *engine) CancelAll(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	done, err := g.Cancel(ctx, session, invocation)
	done.Withdrawn = 2
	return done, err
}

func (g *engine) Inputs(ctx context.Context, session, thread string) ([]view.Input, error) {
	if _, err := g.Head(ctx, session); err != nil {
		return nil, err
	}
	return []view.Input{{ID: "in_1", When: "queue", Text: "later", Item: view.Item{Offset: 7, Thread: cmp.Or(thread, "main"), Status: view.InputWaiting}}}, nil
}

func (g *engine) Withdraw(ctx context.Context, w api.Withdraw) (view.Input, error) {
	return g.changed(ctx, w.Session, w.Input, w.Actor, view.InputWithdrawn)
}

func (g *engine) Move(ctx context.Context, m api.Move) (view.Input, error) {
	return g.changed(ctx, m.Session, m.Input, m.Actor, view.InputWaiting)
}

func (g *engine) Take(ctx context.Context, t api.Take) (api.Taken, error) {
	in, err := g.changed(ctx, t.Session, t.Input, "", view.InputSteered)
	return api.Taken{Input: in.ID, Invocation: t.Invocation, Offset: 8, Message: payload.NewMessage("msg_1", payload.RoleUser, "later")}, err
}

func (g *engine) changed(ctx context.Context, session, input, actor string, status tapedeck.Status) (view.Input, error) {
	if _, err := g.Head(ctx, session); err != nil {
		return view.Input{}, err
	}
	if input != "in_1" {
		return view.Input{}, tapedeck.Errorf(tapedeck.NotFound, "session %s has no input %q", session, input).WithHint("these wait: in_1")
	}
	return view.Input{ID: input, When: "queue", Item: view.Item{Offset: 7, Thread: "main", Actor: actor, Status: status}}, nil
}

func (g *engine) Agents() []tapedeck.Agent {
	return []tapedeck.Agent{{Name: "demo", Kind: "script", Description: "plays a script"}}
}

func (g *engine) SendMessage(ctx context.Context, m api.SendMessage) (api.MessageSent, error) {
	if m.Name != "Payment" {
		return api.MessageSent{}, tapedeck.Errorf(tapedeck.Conflict, "no workflow is running in session %s", m.Session)
	}
	data, _ := json.Marshal(payload.WorkflowMessage{Name: m.Name, Correlation: m.Key(), Variables: m.Variables})
	done, err := g.Append(ctx, tapedeck.Append{Session: m.Session, Events: []tapedeck.Event{{Type: tapedeck.WorkflowMessage, Actor: m.Actor, Data: data}}})
	return api.MessageSent{Invocation: "inv_1", Offset: done.First}, err
}

func (g *engine) Presence(_ context.Context, n api.PresenceNote) ([]payload.Presence, error) {
	_, _, err := g.rooms.Note(n)
	return g.rooms.Present(n.Session), err
}

func (g *engine) Present(ctx context.Context, session string) ([]payload.Presence, error) {
	_, err := g.Head(ctx, session)
	return g.rooms.Present(session), err
}

func (g *engine) WatchPresence(_ context.Context, session string) api.PresenceWatcher {
	return g.rooms.Watch(session)
}

// newHandler returns a handler over an empty store in memory, and its engine.
func newHandler(o rest.Options) (http.Handler, *engine) {
	m := memory.New(memory.Options{})
	g := &engine{Hub: hub.New(m), rooms: presence.New(0, nil), diagrams: m.Workflows()}
	return g.handler(o), g
}

func (g *engine) handler(o rest.Options) http.Handler {
	o.Sessions, o.Verbs, o.Views = g.Hub, g, sameEpoch{projection.New(projection.Options{Store: g.Hub})}
	o.Contexts = instance.New(g, o.Views, g.Hub)
	o.Search = newSearch(g)
	o.Workflows = workflow.New(workflow.Options{Store: g.diagrams, Engine: g})
	return rest.New(o)
}

// session makes a session of n events besides session.created.
func (g *engine) session(t testing.TB, id string, n int) {
	t.Helper()
	if _, err := g.Create(t.Context(), api.NewSession{ID: id}); err != nil {
		t.Fatal(err)
	}
	g.say(t, id, n)
}

// say appends n events in n appends.
func (g *engine) say(t testing.TB, id string, n int) {
	t.Helper()
	for range n {
		g.append(t, id, tapedeck.Event{Type: "acme.said", Channel: tapedeck.ChannelChunks})
	}
}

func (g *engine) append(t testing.TB, id string, events ...tapedeck.Event) {
	t.Helper()
	if _, err := g.Append(context.Background(), tapedeck.Append{Session: id, Events: events}); err != nil {
		t.Error(err)
	}
}

// sameEpoch has views whose ETags are the same in every run.
type sameEpoch struct{ *projection.Projections }

func (sameEpoch) Epoch() string { return "e" }
