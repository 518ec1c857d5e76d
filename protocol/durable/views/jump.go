package views

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// maxEntities is how many of the newest messages before and after a jump are
// compared. Older messages count as unchanged.
const maxEntities = 10_000

// An entity is a keyed value of the state protocol.
type entity struct {
	typ, key string
	event    tapedeck.Event // the thread and the invocation for its headers; its place in the order of the entities
	value    json.RawMessage
}

// jump appends the changes that a jump makes to the entities of a view: reverted
// entities are deleted, restored ones are inserted, and others get their earlier
// values.
func (s Source) jump(ctx context.Context, session string, e *tapedeck.Event, entities func(context.Context, Source, string, int64) ([]entity, error), out [][]byte) ([][]byte, error) {
	before, err := entities(ctx, s, session, e.Offset)
	if err != nil {
		return out, err
	}
	after, err := entities(ctx, s, session, e.Offset+1)
	if err != nil {
		return out, err
	}
	was, is := byKey(before), byKey(after)
	for _, b := range before {
		if _, ok := is[b.typ+"/"+b.key]; !ok {
			out = append(out, b.encode(e, "delete"))
		}
	}
	for _, a := range after {
		switch b, ok := was[a.typ+"/"+a.key]; {
		case !ok:
			out = append(out, a.encode(e, "insert"))
		case string(b.value) != string(a.value):
			out = append(out, a.encode(e, "update"))
		}
	}
	return out, nil
}

func byKey(entities []entity) map[string]entity {
	m := make(map[string]entity, len(entities))
	for _, e := range entities {
		m[e.typ+"/"+e.key] = e
	}
	return m
}

func (t *entity) encode(e *tapedeck.Event, operation string) []byte {
	head := *e
	head.Thread, head.Invocation = t.event.Thread, t.event.Invocation
	value := t.value
	if operation == "delete" {
		value = nil
	}
	return encodeChange(&head, operation, t.typ, t.key, value)
}

// messageEntities returns the entities of the view messages as of an offset, in the order in
// which they began: a client that shows its entities in the order of their insertion shows
// them so after an undo, too.
func messageEntities(ctx context.Context, s Source, session string, at int64) ([]entity, error) {
	snapshot, err := s.Views.Snapshot(ctx, session, view.Query{At: new(at), Limit: maxEntities})
	if err != nil {
		return nil, err
	}
	names := namesOf(&snapshot)
	var out []entity
	add := func(i *view.Item, offset int64, typ, key string, value any) {
		if i.Status != tapedeck.StatusRunning && key != "" {
			out = append(out, entity{typ, key, tapedeck.Event{Offset: offset, Thread: i.Thread, Invocation: i.Invocation}, marshal(value)})
		}
	}
	for i := range snapshot.Messages {
		m := &snapshot.Messages[i]
		var content any = m.Text
		if m.Parts != nil {
			content = m.Parts
		} else if m.Content != nil {
			content = m.Content
		}
		thread := names[m.Thread]
		id := thread.Message(m)
		add(&m.Item, m.Offset, "message", id, message{ID: id, Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID, Content: content})
	}
	for i := range snapshot.Calls {
		k := &snapshot.Calls[i]
		thread := names[k.Thread]
		id, parent := thread.Call(k), ""
		if k.MessageID != "" {
			parent = thread.Maker(k)
		}
		add(&k.Item, k.Offset, "toolCall", id, toolCall{
			ID: id, Type: "function", Parent: parent, Function: toolFunction{k.Name, k.Arguments},
		})
		if r := k.Result; r != nil {
			var content any = r.Text
			if r.Parts != nil {
				content = r.Parts
			}
			answer := thread.Answer(r)
			add(&k.Item, r.Offset, "message", answer, message{ID: answer, Role: "tool", ToolCallID: id, Content: content})
		}
	}
	slices.SortStableFunc(out, func(a, b entity) int { return cmp.Compare(a.event.Offset, b.event.Offset) })
	return out, nil
}

// stateEntities returns the entities of the view state as of an offset.
func stateEntities(ctx context.Context, s Source, session string, at int64) ([]entity, error) {
	all, err := s.Views.Snapshot(ctx, session, view.Query{At: new(at), Limit: maxEntities})
	if err != nil {
		return nil, err
	}
	var out []entity
	for _, t := range all.Threads {
		one, err := s.Views.Snapshot(ctx, session, view.Query{At: new(at), Thread: t.Name, Limit: 1})
		if err != nil {
			return nil, err
		}
		if one.State != nil {
			out = append(out, entity{"state", t.Name, tapedeck.Event{Thread: t.Name, Invocation: one.State.Invocation}, marshal(struct {
				Thread string          `json:"thread"`
				State  json.RawMessage `json:"state"`
			}{t.Name, one.State.Value})})
		}
	}
	for i := range all.Runs {
		r := &all.Runs[i]
		since := r.StartedAt
		if r.EndedAt != nil {
			since = *r.EndedAt
		}
		out = append(out, entity{"run", r.Invocation, tapedeck.Event{Thread: r.Thread, Invocation: r.Invocation}, marshal(runEntity{
			r.Invocation, r.Thread, r.Status, since.UTC(),
		})})
	}
	return out, nil
}

// A runEntity is the status of an invocation.
type runEntity struct {
	Invocation string          `json:"invocation"`
	Thread     string          `json:"thread"`
	Status     tapedeck.Status `json:"status"`
	Since      time.Time       `json:"since"`
}
