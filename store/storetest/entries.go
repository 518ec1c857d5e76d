package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/store"
)

// testEntries appends all events that change an entry, at random, between erasures, forks,
// failing commits, deletions and reopenings. The entry must always be the fold of the
// events that the store has: that is what verify checks, and what a store would compute
// from its log if it had no catalogue. The events need not make sense as runs.
func testEntries(t *testing.T, open opener) {
	rapid.Check(t, func(r *rapid.T) {
		w := start(t, open)
		defer func() { _ = w.Close() }()
		b := &bookkeeper{world: w}
		actions := map[string]func(*rapid.T){
			"append": b.append, "append again": b.append, "erase": b.erase, "erase again": b.erase,
			"create": b.create, "fork": b.fork, "delete": b.remove, "": b.audit,
		}
		if w.FailCommits != nil {
			actions["fail"] = b.fail
		}
		if w.Reopen != nil {
			actions["reopen"] = func(*rapid.T) { w.reopen() }
		}
		b.create(r)
		r.Repeat(actions)
	})
}

// A bookkeeper changes sessions as an engine does, and compares their entries.
type bookkeeper struct {
	*world
	failing bool // commits fail, so nothing that is refused matters
	minutes int  // since the first event
}

var entryIDs = []string{"a", "b", "c"}

// done ends the test after an error that is no answer to a random call.
func (b *bookkeeper) done(r *rapid.T, what string, err error) {
	switch tapedeck.KindOf(err) {
	case "", tapedeck.NotFound, tapedeck.Gone, tapedeck.Conflict:
	case tapedeck.Unavailable:
		if !b.failing {
			r.Fatalf("%s: %v", what, err)
		}
	default:
		r.Fatalf("%s: %v", what, err)
	}
}

func (b *bookkeeper) head(r *rapid.T, id string) (tapedeck.Session, bool) {
	s, err := b.Head(b.ctx, id)
	b.done(r, "head of "+id, err)
	return s, err == nil
}

func (b *bookkeeper) create(r *rapid.T) {
	_, err := b.Create(b.ctx, tapedeck.Spec{ID: rapid.SampledFrom(entryIDs).Draw(r, "id"), Events: []tapedeck.Event{payload.NewEvent(payload.SessionCreated{
		Title: drawTitle(r), Owner: "ada", Agent: rapid.SampledFrom([]string{"", "coder"}).Draw(r, "agent"), Labels: drawLabels(r),
	})}})
	b.done(r, "create", err)
}

// fork forks a session at any offset, also between the events of a run.
func (b *bookkeeper) fork(r *rapid.T) {
	id, parent := rapid.SampledFrom(entryIDs).Draw(r, "id"), rapid.SampledFrom(entryIDs).Draw(r, "parent")
	s, ok := b.head(r, parent)
	if !ok {
		return
	}
	at := rapid.Int64Range(0, s.Head).Draw(r, "at")
	d := payload.SessionForked{Session: id, Parent: parent, At: at, Copy: rapid.Bool().Draw(r, "copy"), Title: s.Title, Owner: s.Owner, Agent: s.Agent, Labels: s.Labels}
	d.Status, d.Resumable = drawStatus(r)
	if s.LastJump > 0 && s.LastJump < at {
		d.Previous = &s.LastJump
	}
	_, err := b.Create(b.ctx, tapedeck.Spec{ID: id, Parent: parent, ForkAt: &at, Events: []tapedeck.Event{payload.NewEvent(d)}})
	b.done(r, "fork", err)
}

func (b *bookkeeper) remove(r *rapid.T) {
	if chance(r, 3, "delete") {
		b.done(r, "delete", b.Delete(b.ctx, rapid.SampledFrom(entryIDs).Draw(r, "id")))
	}
}

// fail makes calls whose commits fail, and one after them that succeeds.
func (b *bookkeeper) fail(r *rapid.T) {
	b.FailCommits(true)
	b.failing = true
	rapid.SampledFrom([]func(*rapid.T){b.append, b.erase, b.fork, b.create}).Draw(r, "call")(r)
	b.FailCommits(false)
	b.failing = false
	b.append(r)
}

func (b *bookkeeper) append(r *rapid.T) {
	s, ok := b.head(r, rapid.SampledFrom(entryIDs).Draw(r, "id"))
	if !ok {
		return
	}
	a := tapedeck.Append{Session: s.ID, Close: chance(r, 40, "close")}
	for range rapid.IntRange(1, 4).Draw(r, "events") {
		e := b.drawEvent(r, &s)
		if chance(r, 3, "dated") { // producers may be late, and their clocks wrong
			b.minutes += rapid.IntRange(-2, 3).Draw(r, "minutes")
			e.Time = time.Date(2026, 7, 1, 12, b.minutes, 0, 0, time.UTC)
		}
		a.Events = append(a.Events, e)
	}
	_, err := b.Append(b.ctx, a)
	b.done(r, "append", err)
}

// drawEvent draws an event that changes an entry.
func (b *bookkeeper) drawEvent(r *rapid.T, s *tapedeck.Session) tapedeck.Event {
	run := rapid.SampledFrom([]string{"i1", "i2", "i3"}).Draw(r, "invocation")
	thread := rapid.SampledFrom([]string{"", "t"}).Draw(r, "thread")
	var e tapedeck.Event
	switch rapid.SampledFrom([]string{"message", "start", "end", "end", "error", "rename", "rename", "imported", "jump", "input", "input", "other"}).Draw(r, "event") {
	case "message":
		role := rapid.SampledFrom([]string{payload.RoleUser, payload.RoleAssistant}).Draw(r, "role")
		e = payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(tapedeck.NewID("msg_"), role, "a text")})
	case "start":
		e = eventOf(tapedeck.RunStarted, `{"threadId":%q,"runId":%q,"parentRunId":"i1","metadata":{"tapedeck":{"owner":"eng_1"}}}`, laneOf(thread), run)
	case "end":
		e = eventOf(tapedeck.RunFinished, rapid.SampledFrom(ends).Draw(r, "end"), laneOf(thread), run)
	case "error":
		code := rapid.SampledFrom([]string{"", tapedeck.CodeInterrupted, tapedeck.CodeLeaseExpired, "my code"}).Draw(r, "code")
		e = eventOf(tapedeck.RunError, `{"message":"it broke","code":%q}`, code)
	case "rename":
		e = payload.NewEvent(drawRename(r))
	case "imported":
		e = payload.NewEvent(payload.SessionImported{Format: "openai", Title: drawTitle(r)})
	case "jump":
		return payload.NewEvent(drawJump(r, s))
	case "input":
		e = payload.NewEvent(drawInput(r))
	default:
		e = event("nothing")
	}
	e.Thread = thread
	if e.Channel != tapedeck.ChannelSession && !strings.HasPrefix(e.Type, "input.") {
		e.Invocation = run
	}
	return e
}

func laneOf(thread string) string {
	if thread == "" {
		return tapedeck.MainThread
	}
	return thread
}

func eventOf(typ, data string, args ...any) tapedeck.Event {
	return tapedeck.Event{Type: typ, Data: json.RawMessage(fmt.Sprintf(data, args...))}
}

var ends = []string{
	`{"threadId":%q,"runId":%q}`,
	`{"threadId":%q,"runId":%q,"outcome":{"type":"cancelled"}}`,
	`{"threadId":%q,"runId":%q,"outcome":{"type":"cancelled"},"metadata":{"tapedeck":{"resumable":false}}}`,
	`{"threadId":%q,"runId":%q,"outcome":{"type":"interrupt","interrupts":[{"id":"q","reason":"why"}]}}`,
}

func drawTitle(r *rapid.T) string {
	return rapid.SampledFrom([]string{"", "one", "two"}).Draw(r, "title")
}

func drawLabels(r *rapid.T) map[string]string {
	return rapid.SampledFrom([]map[string]string{nil, {}, {"k": "v"}, {"k": "w", "l": ""}}).Draw(r, "labels")
}

func drawRename(r *rapid.T) (d payload.SessionRenamed) {
	if d.Labels = drawLabels(r); d.Labels == nil || rapid.Bool().Draw(r, "both") {
		d.Title = new(drawTitle(r))
	}
	return d
}

func drawStatus(r *rapid.T) (string, *bool) {
	st := rapid.SampledFrom([]tapedeck.Status{"", tapedeck.StatusIdle, tapedeck.StatusComplete, tapedeck.StatusCancelled}).Draw(r, "status")
	if st == tapedeck.StatusCancelled {
		return string(st), new(rapid.Bool().Draw(r, "resumable"))
	}
	return string(st), nil
}

func drawJump(r *rapid.T, s *tapedeck.Session) payload.Payload {
	f := payload.RevertFields{Marker: tapedeck.NewID("rew_"), Thread: rapid.SampledFrom([]string{"", "t"}).Draw(r, "jump on")}
	if f.Status, f.Resumable = drawStatus(r); s.LastJump > 0 {
		f.Previous = &s.LastJump
	}
	to := rapid.Int64Range(0, s.Head).Draw(r, "to")
	return rapid.SampledFrom([]payload.Payload{
		payload.SessionRewound{RevertFields: f, ToOffset: to}, payload.SessionCleared{RevertFields: f}, payload.SessionOverwritten{RevertFields: f, FromOffset: to},
	}).Draw(r, "jump")
}

func drawInput(r *rapid.T) payload.Payload {
	ids := rapid.SampledFrom([]string{"in_1", "in_2", "in_3"})
	id := ids.Draw(r, "input")
	before := rapid.SampledFrom([]string{"", "in_1", "in_3"}).Draw(r, "before")
	return rapid.SampledFrom([]payload.Payload{
		payload.InputQueued{ID: id, Text: "a text", When: "steer", Before: before}, payload.InputQueued{ID: id, Text: "a text", Outside: true},
		payload.InputMoved{ID: id, Before: before}, payload.InputSteered{ID: id}, payload.InputStarted{ID: id}, payload.InputWithdrawn{ID: id},
	}).Draw(r, "of the input")
}

// erase erases own events of a session as an engine does: none of an open run, with events
// that remove what the entry has from an erased event and cannot have any more.
func (b *bookkeeper) erase(r *rapid.T) {
	s, ok := b.head(r, rapid.SampledFrom(entryIDs).Draw(r, "id"))
	if !ok || s.Head == s.ForkedAt {
		return
	}
	from := rapid.Int64Range(s.ForkedAt, s.Head-1).Draw(r, "from")
	to := rapid.Int64Range(from+1, s.Head).Draw(r, "to")
	e := erasure(s.ID, from, to)
	for _, run := range s.Runs {
		if run.Offset < to {
			end := eventOf(tapedeck.RunFinished, ends[0], laneOf(run.Thread), run.Invocation)
			end.Invocation = run.Invocation
			e.Events = append(e.Events, end)
		}
	}
	for _, in := range s.Inputs {
		if from <= in.Offset && in.Offset < to {
			e.Events = append([]tapedeck.Event{payload.NewEvent(payload.InputWithdrawn{ID: in.ID})}, e.Events...)
		}
	}
	if d := b.renameFor(r, &s, from, to); d.Title != nil || d.Labels != nil {
		e.Events = append([]tapedeck.Event{payload.NewEvent(d)}, e.Events...)
	}
	_, err := b.Erase(b.ctx, e)
	b.done(r, "erase", err)
}

// renameFor returns what removes the title and the labels that s has from events in a
// range.
func (b *bookkeeper) renameFor(r *rapid.T, s *tapedeck.Session, from, to int64) (d payload.SessionRenamed) {
	for ev, err := range tapedeck.Events(b.ctx, b.Store, s.ID, from) {
		b.done(r, "reading", err)
		if err != nil || ev.Offset >= to {
			break
		}
		var said tapedeck.Session
		if ev.Channel == tapedeck.ChannelSession {
			said.Apply(&ev)
		}
		if said.Title != "" && said.Title == s.Title {
			d.Title = new(string)
		}
		if len(said.Labels) > 0 && maps.Equal(said.Labels, s.Labels) {
			d.Labels = map[string]string{}
		}
	}
	return d
}

// audit compares every entry with the fold of the session's own events.
func (b *bookkeeper) audit(r *rapid.T) {
	for _, id := range entryIDs {
		s, ok := b.head(r, id)
		if !ok {
			continue
		}
		fold := tapedeck.Session{Created: s.Created, Updated: s.Created, Status: tapedeck.StatusIdle}
		for ev, err := range tapedeck.Events(b.ctx, b.Store, id, s.ForkedAt) {
			if err != nil {
				r.Fatalf("%s: %v", id, err)
			}
			fold.Apply(&ev)
		}
		if differ := store.EntryDifferences(&s, &fold); len(differ) > 0 {
			r.Fatalf("the entry of %s: %s", id, strings.Join(differ, "; "))
		}
		if !s.Updated.Equal(fold.Updated) {
			r.Fatalf("%s is updated at %v, but %v by its events", id, s.Updated, fold.Updated)
		}
	}
}
