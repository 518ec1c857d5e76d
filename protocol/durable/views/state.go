package views

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// state shows the state of a session as entities of the state protocol: type "state",
// the shared state of each thread; "run", each invocation; "session", the attributes
// of the session.
//
// Only a STATE_DELTA depends on earlier events. A fold that has not seen all events looks
// up a thread's state once, and remembers it until the next jump.
type state struct {
	Source
	session string
	whole   bool            // it has seen all earlier events, so a thread that it does not know is new
	created *tapedeck.Event // session.created, which may have the state that each thread begins with
	threads map[string]*threadState
}

type threadState struct {
	fold  view.Conversation // of the events that change the state
	bytes int
}

func newState(from Source, session string, at int64) Fold {
	return &state{Source: from, session: session, whole: at == 0, threads: map[string]*threadState{}}
}

func (s *state) Size() int {
	n := 0
	for name, t := range s.threads {
		n += 512 + len(name) + 4*t.bytes // the decoded state is larger
	}
	return n
}

func (s *state) Apply(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	switch e.Type {
	case tapedeck.StateSnapshot, tapedeck.StateDelta:
		return s.projectState(ctx, e, out)
	case tapedeck.SessionCreated:
		s.created = e
		return attributes(e, s.thread(e).apply(e, out)), nil
	case tapedeck.SessionRenamed, tapedeck.SessionImported, tapedeck.SessionForked, tapedeck.SessionClosed:
		return attributes(e, out), nil
	case tapedeck.RunStarted, tapedeck.RunFinished, tapedeck.RunError:
		return encodeRun(e, out), nil
	case tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten, tapedeck.AttemptSuperseded:
		s.threads, s.whole = map[string]*threadState{}, false // each is looked up again when it changes
		return s.jump(ctx, s.session, e, stateEntities, out)
	}
	return out, nil
}

func (s *state) projectState(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	if s.threads[e.ThreadName()] == nil && e.Type == tapedeck.StateDelta && !s.whole {
		if err := s.recall(ctx, e); err != nil {
			return out, err
		}
	}
	return s.thread(e).apply(e, out), nil
}

// thread returns the state of the thread of e.
func (s *state) thread(e *tapedeck.Event) *threadState {
	t := s.threads[e.ThreadName()]
	if t == nil {
		t = new(threadState)
		if s.created != nil {
			t.fold.Apply(s.created)
		}
		s.threads[e.ThreadName()] = t
	}
	return t
}

// apply applies e, and appends the state to out if e has changed it. A patch that does
// not fit has no effect, as in clients.
func (t *threadState) apply(e *tapedeck.Event, out [][]byte) [][]byte {
	t.fold.Apply(e)
	thread := e.ThreadName()
	now := t.fold.Thread(thread).State
	if now == nil || now.Offset != e.Offset {
		return out
	}
	t.bytes = len(now.Value)
	return append(out, encodeChange(e, "update", "state", thread, struct {
		Thread string          `json:"thread"`
		State  json.RawMessage `json:"state"`
	}{thread, now.Value}))
}

// recall looks up the state of the thread of e just before e.
func (s *state) recall(ctx context.Context, e *tapedeck.Event) error {
	before, err := s.Views.Snapshot(ctx, s.session, view.Query{At: new(e.Offset), Thread: e.ThreadName(), Limit: 1})
	if err != nil {
		return err
	}
	t := new(threadState)
	if before.State != nil {
		was := payload.NewEvent(payload.StateSnapshot{Snapshot: before.State.Value})
		was.Thread, was.Offset, was.Invocation = e.Thread, e.Offset-1, before.State.Invocation
		t.fold.Apply(&was)
	}
	s.threads[e.ThreadName()] = t
	return nil
}

// attributes shows the attributes of the session that an event has, each as an entity:
// so an event that has only some of them leaves the others unchanged.
func attributes(e *tapedeck.Event, out [][]byte) [][]byte {
	var d map[string]json.RawMessage
	if json.Unmarshal(e.Data, &d) != nil {
		d = nil
	}
	add := func(name string, value any) {
		out = append(out, encodeChange(e, "update", "session", name, struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		}{name, value}))
	}
	for _, name := range [...]string{"title", "owner", "agent", "labels"} {
		if v, ok := d[name]; ok {
			add(name, v)
		}
	}
	switch e.Type {
	case tapedeck.SessionForked:
		add("fork", e.Data)
	case tapedeck.SessionClosed:
		add("closed", true)
	}
	return out
}

// encodeRun shows the status of an invocation.
func encodeRun(e *tapedeck.Event, out [][]byte) [][]byte {
	if e.Invocation == "" { // an entity must have a key
		return out
	}
	var fold tapedeck.Session
	fold.Apply(e)
	return append(out, encodeChange(e, "update", "run", e.Invocation, runEntity{e.Invocation, e.ThreadName(), fold.Status, e.Time}))
}
