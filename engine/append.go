package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Append appends events from outside. AG-UI events are brought into the form
// that the log keeps and must come in an order that can be replayed; events of
// the session's own life are refused, for they are made by verbs. What a
// producer says of time is kept in the data; the event's own time is ours.
func (e *Engine) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	if len(a.Events) > e.options.MaxEvents {
		return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.TooLarge, "the append has %d events; at most %d are allowed", len(a.Events), e.options.MaxEvents).
			WithHint("append them in several parts")
	}
	events := make([]tapedeck.Event, len(a.Events))
	for i, ev := range a.Events {
		if err := fromOutside(&ev); err != nil {
			return tapedeck.Appended{}, err
		}
		events[i] = ev
	}
	a.Events = events
	return e.write(ctx, a, nil)
}

// fromOutside checks an event of a client and takes from it what is not the
// client's to say.
func fromOutside(ev *tapedeck.Event) error {
	if err := ev.Check(); err != nil {
		return err
	}
	if strings.HasPrefix(ev.Type, "session.") {
		return tapedeck.Errorf(tapedeck.Invalid, "%s cannot be appended", ev.Type).
			WithHint("events of the session itself are made by its verbs, such as PATCH, DELETE and close")
	}
	if ev.Time.IsZero() {
		return nil
	}
	at := ev.Time.UnixMilli()
	ev.Time = time.Time{}
	var d map[string]json.RawMessage
	if len(ev.Data) > 0 && json.Unmarshal(ev.Data, &d) != nil {
		return nil
	}
	if _, ok := d["timestamp"]; ok {
		return nil
	}
	if d == nil {
		d = map[string]json.RawMessage{}
	}
	d["timestamp"], _ = json.Marshal(at)
	data, err := json.Marshal(d)
	if err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the data of %s is not a JSON object: %w", ev.Type, err)
	}
	ev.Data = data
	return nil
}

// maxTries bounds how often an append is tried whose ledger was stale. One
// repetition is usual after a restart or a failed commit; many mean that
// somebody writes past the engine all the time.
const maxTries = 50

// write appends events that must be in order. guard, if not nil, is asked in the
// store's writer first.
func (e *Engine) write(ctx context.Context, a tapedeck.Append, guard func(*tapedeck.Session) error) (tapedeck.Appended, error) {
	given := a.Events
	for range maxTries {
		l, v, err := e.current(ctx, a.Session)
		if err != nil {
			return tapedeck.Appended{}, err
		}
		// The form depends on what is open. An error is told only by the
		// writer, if the ledger was right: before that a repetition by a
		// producer must be known as one.
		events, formErr := v.Clone().Accept(given)
		if a.Events = events; formErr != nil {
			a.Events = append([]tapedeck.Event(nil), given...)
		}
		checked := false
		a.Check = func(s *tapedeck.Session) error {
			if s.Kind != tapedeck.KindSession {
				return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", s.ID)
			}
			if guard != nil {
				if err := guard(s); err != nil {
					return err
				}
			}
			err := l.advance(s, a.Events, formErr, v)
			checked = err == nil
			return err
		}
		done, err := e.store.Append(ctx, a)
		if err != nil && checked {
			l.drop() // counted on, and not written as far as we know
		}
		if !errors.Is(err, errStale) {
			return done, err
		}
		l.refresh(v)
	}
	return tapedeck.Appended{}, tapedeck.Errorf(tapedeck.Unavailable, "session %s is being written by someone else", a.Session).WithHint("try again")
}
