package durable

import (
	"context"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// state shows what a session is, as entities of the state protocol: type
// "state", what agent and screen share in each thread; "run", each invocation;
// "session", the session's own attributes.
//
// Only a STATE_DELTA depends on what was before it. Whoever begins between two
// of them looks up the state once; from there on it is remembered, until a jump.
type state struct {
	source
	session string
	whole   bool            // it has seen all events, so a thread that it does not know is new
	created *tapedeck.Event // which may say with what state each thread begins
	threads map[string]*threadState
}

type threadState struct {
	fold  view.Conversation // of the events of the state alone
	bytes int
}

func newState(from source, session string, at int64) projection {
	return &state{source: from, session: session, whole: at == 0, threads: map[string]*threadState{}}
}

func (s *state) weight() int {
	n := 0
	for name, t := range s.threads {
		n += 512 + len(name) + 4*t.bytes // decoded it is larger
	}
	return n
}

func (s *state) project(ctx context.Context, _ tapedeck.Record, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
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
	case tapedeck.SessionRewound, tapedeck.SessionCleared, tapedeck.SessionOverwritten:
		s.threads, s.whole = map[string]*threadState{}, false // looked up again when they change
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

// apply folds e in, and appends to out the state if e changed it: a patch that
// does not fit is left out, as clients do it.
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

// recall makes known the state of a thread before e, as it is in force then.
func (s *state) recall(ctx context.Context, e *tapedeck.Event) error {
	before, err := s.views.Snapshot(ctx, s.session, view.Query{At: e.Offset, Thread: e.ThreadName(), Limit: 1})
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

// attributes shows what an event says about the session, each attribute as an
// entity: so an event that names only some leaves the others as they are.
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

// encodeRun shows where an invocation stands.
func encodeRun(e *tapedeck.Event, out [][]byte) [][]byte {
	if e.Invocation == "" { // an entity must have a key
		return out
	}
	var fold tapedeck.Session
	fold.Apply(e)
	return append(out, encodeChange(e, "update", "run", e.Invocation, runEntity{e.Invocation, e.ThreadName(), fold.Status, e.Time}))
}
