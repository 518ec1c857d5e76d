package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// A step is a step of a scenario. The error of do says what the store did wrong.
type step struct {
	name string
	do   func(w *world) error
}

// A world is a store with the content that it must have.
type world struct {
	t   testing.TB
	ctx context.Context
	Store
	witness  *witness
	expected map[string]*expected // by session
	n        int                  // number of records written, so that each has a text of its own
}

// expected is what a session must hold.
type expected struct {
	texts  []string
	closed bool
	kind   tapedeck.Kind // if not "", every call on the session fails with this kind
}

// play runs a scenario on a store of its own, then reads all sessions again.
func play(t *testing.T, open opener, name string, steps ...step) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		w := start(t, open)
		w.play(steps...)
		w.play(readAll())
		if w.Reopen != nil {
			w.play(reopen(), readAll())
		}
	})
}

func (w *world) play(steps ...step) {
	w.t.Helper()
	for i, s := range steps {
		if err := s.do(w); err != nil {
			w.t.Fatalf("step %d of %d: %s: %v", i+1, len(steps), s.name, err)
		}
	}
}

// session returns what a session must hold.
func (w *world) session(id string) *expected {
	if w.expected[id] == nil {
		w.expected[id] = &expected{kind: tapedeck.NotFound}
	}
	return w.expected[id]
}

// texts returns n new texts of records.
func (w *world) texts(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("record %d", w.n)
		w.n++
	}
	return out
}

// isStream reports whether an id is that of a stream.
func isStream(id string) bool { return strings.HasPrefix(id, tapedeck.StreamPrefix) }

// contents returns texts as events, or as chunks for a stream.
func contents(id string, texts []string) (events []tapedeck.Event, chunks [][]byte) {
	for _, text := range texts {
		if isStream(id) {
			chunks = append(chunks, []byte(text))
		} else {
			events = append(events, event(text))
		}
	}
	return events, chunks
}

// event returns an event with a text.
func event(text string) tapedeck.Event {
	data, _ := json.Marshal(map[string]string{"text": text})
	return tapedeck.Event{Type: "CUSTOM", Data: data}
}

// textOf returns the text of a record. It also checks that the record of a session
// has the right offset.
func textOf(id string, r tapedeck.Record) (string, error) {
	if isStream(id) {
		return string(r.Data), nil
	}
	e, err := r.Event()
	if err != nil {
		return "", fmt.Errorf("record %d is not an event: %s", r.Offset, r.Data)
	}
	if e.Offset != r.Offset {
		return "", fmt.Errorf("record %d has the offset %d in it", r.Offset, e.Offset)
	}
	var d struct{ Text string }
	_ = json.Unmarshal(e.Data, &d)
	return d.Text, nil
}

// readAll reads all sessions that the scenario has named, in both directions.
func readAll() step {
	return step{"read everything", func(w *world) error {
		for id, want := range w.expected {
			if err := w.verify(id, want); err != nil {
				return fmt.Errorf("session %s: %w", id, err)
			}
		}
		return nil
	}}
}

func (w *world) verify(id string, want *expected) error {
	s, err := w.Head(w.ctx, id)
	if want.kind != "" {
		_, rerr := w.Read(w.ctx, id, tapedeck.Range{})
		return errors.Join(isKind(err, want.kind), isKind(rerr, want.kind))
	}
	if err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if s.ID != id || s.Head != int64(len(want.texts)) || s.Closed != want.closed {
		return fmt.Errorf("it is %q at %d, closed %t; want %d, %t", s.ID, s.Head, s.Closed, len(want.texts), want.closed)
	}
	for _, r := range []tapedeck.Range{{}, {Limit: 7}, {From: -1, Reverse: true}, {From: -1, Limit: 7, Reverse: true}} {
		if len(want.texts) > 2000 && r.Limit > 0 {
			continue
		}
		got, err := w.readTexts(id, r)
		if err != nil {
			return fmt.Errorf("reading %+v: %w", r, err)
		}
		if d := cmp.Diff(want.texts, got); d != "" && len(want.texts)+len(got) > 0 {
			return fmt.Errorf("reading %+v: (-want +got)\n%s", r, d)
		}
	}
	return w.witness.compare(w, &s)
}

// readTexts reads page after page and returns all texts in log order.
func (w *world) readTexts(id string, r tapedeck.Range) ([]string, error) {
	pages, err := w.pages(id, r)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range pages {
		for _, rec := range p.Records {
			text, err := textOf(id, rec)
			if err != nil {
				return nil, err
			}
			out = append(out, text)
		}
	}
	if r.Reverse {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out, nil
}

// pages follows Next to the end. It checks that offsets are dense and that every page
// has records.
func (w *world) pages(id string, r tapedeck.Range) ([]tapedeck.Page, error) {
	var out []tapedeck.Page
	next := r.From
	for {
		r.From = next
		p, err := w.Read(w.ctx, id, r)
		if err != nil {
			return nil, err
		}
		if next == -1 {
			next = p.Head
		}
		for _, rec := range p.Records {
			if r.Reverse {
				next--
			}
			if rec.Offset != next {
				return nil, fmt.Errorf("the page from %d has offset %d where %d belongs", r.From, rec.Offset, next)
			}
			if !r.Reverse {
				next++
			}
		}
		out = append(out, p)
		switch {
		case p.Next != next:
			return nil, fmt.Errorf("the page from %d has next %d, want %d", r.From, p.Next, next)
		case r.Reverse && next == 0, !r.Reverse && p.CaughtUp():
			return out, nil
		case len(p.Records) == 0:
			return nil, fmt.Errorf("the page from %d is empty, and the head is %d", r.From, p.Head)
		}
	}
}

// reopen opens the store again.
func reopen() step {
	return step{"reopen", func(w *world) error {
		w.reopen()
		return nil
	}}
}

func (w *world) reopen() {
	w.Store.Store = w.Reopen(w.t)
	w.watch()
}

// isKind returns an error if err is not of kind want. It also does so if the message
// of an Unavailable error has its cause, which is for the operator only, or if the
// error has no hint.
func isKind(err error, want tapedeck.Kind) error {
	if got := tapedeck.KindOf(err); got != want {
		return fmt.Errorf("got the error %v of kind %q, want kind %q", err, got, want)
	}
	var e *tapedeck.Error
	if want != tapedeck.Unavailable || !errors.As(err, &e) || e.Err == nil {
		return nil
	}
	if e.Hint == "" || strings.Contains(e.Message+e.Hint, e.Err.Error()) {
		return fmt.Errorf("the error for users is %q, hint %q, for the cause %v", e.Message, e.Hint, e.Err)
	}
	return nil
}

// must returns the result of a call that the test needs, and ends the test if it fails.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
