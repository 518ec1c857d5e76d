package instance

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// maxMessages is the largest number of messages of a context that are read.
const maxMessages = 10_000

// maxCopied is the largest size in bytes of the contents that are copied to another context
// at once.
const maxCopied = 16 << 20

// maxTries is how often an append is tried again because others write to the session.
const maxTries = 100

// GetEvents returns the context of an instance from a sequence number on, and the number to
// read from next: that of the first event that may still change, or else the one that the
// next event gets.
func (r *Repository) GetEvents(ctx context.Context, of view.Ref, from int) ([]view.ContextEvent, int, error) {
	i, err := r.find(ctx, of)
	if err != nil {
		return nil, 0, err
	}
	events, err := r.events(ctx, &i)
	next := slices.IndexFunc(events, func(e view.ContextEvent) bool { return e.MayChange })
	if next < 0 {
		next = len(events)
	}
	return events[min(max(from, 0), len(events)):], next, err
}

// events returns the context of an instance.
func (r *Repository) events(ctx context.Context, i *found) ([]view.ContextEvent, error) {
	s, err := r.snapshot(ctx, i, -1)
	if err != nil {
		return nil, err
	}
	events := view.ContextEvents(s, i.Instance)
	for n := range events {
		i.identify(&events[n])
	}
	return events, nil
}

// identify gives a context event its ids.
func (i *found) identify(e *view.ContextEvent) {
	e.ID, e.Instance = e.IDIn(i.session), i.ID
}

// snapshot returns the whole thread of an instance as of an offset.
func (r *Repository) snapshot(ctx context.Context, i *found, at int64) (view.Snapshot, error) {
	s, err := r.views.Snapshot(ctx, i.session, view.Query{At: &at, Thread: i.Thread, Limit: maxMessages})
	if err == nil && s.Earlier > 0 {
		err = tooLong(i)
	}
	return s, err
}

func tooLong(i *found) error {
	return tapedeck.Errorf(tapedeck.TooLarge, "the thread of instance %s has more than %d messages", i.ID, maxMessages)
}

// AppendEvent appends to the context of an instance and returns the resulting event. The
// content is that of the type, see [view.ContextEvent], and is kept as it is. toolCallID may
// be empty if the content has it.
//
// Events in the context never change. A call with the id of one that has no result yet is a
// [tapedeck.Conflict], and so is a second result of a call. A tool_call that was appended
// already and has no result is returned unchanged. More than 500 calls without a result are
// [tapedeck.TooLarge].
func (r *Repository) AppendEvent(ctx context.Context, of view.Ref, typ string, content json.RawMessage, toolCallID string) (view.ContextEvent, error) {
	free, err := r.hold(ctx, of.Session)
	if err != nil {
		return view.ContextEvent{}, err
	}
	defer free()
	i, err := r.find(ctx, of)
	if err != nil {
		return view.ContextEvent{}, err
	}
	s := step{Type: typ, ToolCallID: toolCallID}
	if err := s.read(content); err != nil {
		return view.ContextEvent{}, err
	}
	var number int
	done, err := r.append(ctx, &i, func(k *known) ([]*step, error) {
		there, err := k.check(&s, &i)
		if number = k.events; err != nil || there < 0 {
			k.namer().name(&s)
			return []*step{&s}, err
		}
		number = there
		return nil, nil
	})
	switch {
	case err != nil:
		return view.ContextEvent{}, err
	case done == nil:
		return r.event(ctx, of, number)
	}
	at, err := r.timeOf(ctx, i.session, done.First)
	out := view.ContextEvent{Sequence: number, Type: typ, Content: s.content(), Offset: done.First, EndOffset: &done.First, CreatedAt: at}
	if typ == view.ResultEvent {
		out.ToolCallID = s.ToolCallID
	}
	i.identify(&out)
	return out, err
}

// timeOf returns the time of an event of the log.
func (r *Repository) timeOf(ctx context.Context, session string, offset int64) (view.Time, error) {
	page, err := r.log.Read(ctx, session, tapedeck.Range{From: offset, Limit: 1})
	if err == nil && len(page.Records) == 0 {
		err = tapedeck.Errorf(tapedeck.Conflict, "session %s was deleted and recreated meanwhile", session)
	}
	if err != nil {
		return view.Time{}, err
	}
	e, err := page.Records[0].Event()
	return view.Time{Time: e.Time}, err
}

// event returns one event of a context.
func (r *Repository) event(ctx context.Context, of view.Ref, number int) (view.ContextEvent, error) {
	events, _, err := r.GetEvents(ctx, of, number)
	if err == nil && len(events) == 0 {
		err = tapedeck.Errorf(tapedeck.Conflict, "another request has removed event %d from the context", number)
	}
	if err != nil {
		return view.ContextEvent{}, err
	}
	return events[0], nil
}

// checkSize refuses steps that the context cannot have, because views could not show them.
func (k *known) checkSize(steps []*step, i *found) error {
	messages, open := k.messages, k.open
	for _, s := range steps {
		switch {
		case s.Type == view.ResultEvent:
			open--
		case !s.made && len(s.calls) > 0:
			if open += len(s.calls); open > maxOpen {
				return tapedeck.Errorf(tapedeck.TooLarge, "the thread of %s has %d tool calls without a result; at most %d are allowed", i.ID, open, maxOpen).
					WithHint("nothing was written; append results first")
			}
		}
		if !s.made {
			messages++
		}
	}
	if messages > maxMessages {
		return tooLong(i)
	}
	return nil
}

// append appends steps to the context of an instance: what choose makes of the context as it
// then is. Without steps it appends nothing and returns nil. The caller holds the session.
func (r *Repository) append(ctx context.Context, i *found, choose func(*known) ([]*step, error)) (*tapedeck.Appended, error) {
	for range maxTries {
		k, c, err := r.known(ctx, i)
		if err != nil {
			return nil, err
		}
		steps, err := choose(k)
		if err != nil || len(steps) == 0 {
			return nil, err
		}
		if err := k.checkSize(steps, i); err != nil {
			return nil, err
		}
		a := tapedeck.Append{Session: i.session, Expect: new(c.next)}
		for _, s := range steps {
			a.Events = append(a.Events, s.event(i))
		}
		done, err := r.verbs.Append(ctx, a)
		switch {
		case tapedeck.RefusalOf(err) == tapedeck.RefusedOffset:
			continue
		case err != nil:
			return nil, err
		}
		for _, s := range steps {
			k.add(s)
		}
		c.appended(i, k, done.First, done.Next)
		return &done, nil
	}
	return nil, tapedeck.Errorf(tapedeck.Unavailable, "session %s is constantly written by others", i.session).WithHint("try again")
}

// DeleteEventsAfter reverts the events after a sequence number in the context of
// an instance, and all other events of its thread from there on. It returns how
// many context events these are. It deletes nothing: it is an overwrite, which can
// be undone. -1 reverts all events.
func (r *Repository) DeleteEventsAfter(ctx context.Context, of view.Ref, sequence int) (int, api.Rewound, error) {
	i, err := r.find(ctx, of)
	if err != nil {
		return 0, api.Rewound{}, err
	}
	events, head, err := r.outline(ctx, &i)
	if sequence = max(sequence, -1); err != nil || sequence+1 >= len(events) {
		return 0, api.Rewound{}, err
	}
	o := api.Overwrite{Session: i.session, Thread: i.Thread, FromOffset: events[0].Offset}
	switch {
	case sequence >= 0:
		o.Context = &view.ContextCut{Thread: i.Thread}
		if o.FromOffset, o.Context.Uncalled = view.CutContext(events, sequence); o.FromOffset < 0 {
			o.FromOffset = head
		}
	case i.Offset >= o.FromOffset && i.Subagent == "" && i.Name != "":
		o.Instance = &payload.InstanceStarted{ID: i.ID, Name: i.Name, Parent: i.Parent}
	}
	done, err := r.verbs.Overwrite(ctx, o)
	if err != nil {
		return 0, api.Rewound{}, err
	}
	return len(events) - sequence - 1, done, nil
}

// CopyEvents appends the context of one instance to that of another: up to and
// including a sequence number, or all of it if that is nil. It returns how many
// events these are. It appends all or none. Calls keep their ids: a result in the copy is
// that of a call in the copy.
func (r *Repository) CopyEvents(ctx context.Context, source, target view.Ref, upTo *int) (int, error) {
	free, err := r.hold(ctx, target.Session)
	if err != nil {
		return 0, err
	}
	defer free()
	from, err := r.find(ctx, source)
	if err != nil {
		return 0, err
	}
	to, err := r.find(ctx, target)
	if err != nil {
		return 0, err
	}
	events, err := r.events(ctx, &from)
	if err != nil {
		return 0, err
	}
	if upTo != nil {
		events = events[:min(max(*upTo+1, 0), len(events))]
	}
	size := 0
	for n := range events {
		size += len(events[n].Content)
	}
	if size > maxCopied {
		return 0, tapedeck.Errorf(tapedeck.TooLarge, "the events have %d bytes; at most %d are copied at once", size, maxCopied).
			WithHint("copy the session, which costs the same at any length, or copy the events up to a lower sequence number")
	}
	_, err = r.append(ctx, &to, func(k *known) ([]*step, error) { return copies(events, k) })
	if err != nil {
		return 0, err
	}
	return len(events), nil
}

// copies returns context events as steps for another context.
func copies(events []view.ContextEvent, to *known) (steps []*step, err error) {
	n := to.namer()
	asked := map[string]bool{} // the ids of the calls that a copied message has and no tool_call yet
	for _, e := range events {
		s := &step{Type: e.Type, ToolCallID: e.CallID()}
		if err := s.read(e.Content); err != nil {
			return nil, err
		}
		s.made = s.Type == view.CallEvent && asked[s.ToolCallID]
		delete(asked, s.ToolCallID)
		if s.Type == view.AssistantMessage {
			for _, c := range s.calls {
				asked[c.ID] = true
			}
		}
		n.name(s)
		steps = append(steps, s)
	}
	return steps, nil
}
