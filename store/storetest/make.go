package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A making is a Create and its expected result.
type making struct {
	tapedeck.Spec
	texts  []string
	kind   tapedeck.Kind // if not "", Create fails with this kind
	exists bool          // the session exists already
}

// A feature changes a making.
type feature struct {
	name string
	set  func(w *world, m *making)
}

// create creates a session, which must be new unless a feature says otherwise.
func create(id string, features ...feature) step {
	say := []string{"create " + id}
	for _, f := range features {
		if f.name != "" {
			say = append(say, f.name)
		}
	}
	return step{strings.Join(say, ", "), func(w *world) error {
		m := &making{Spec: tapedeck.Spec{ID: id, Kind: tapedeck.KindSession}}
		if isStream(id) {
			m.Kind = tapedeck.KindStream
		}
		for _, f := range features {
			f.set(w, m)
		}
		done, err := w.Create(w.ctx, m.Spec)
		return m.judge(w, done, err)
	}}
}

func (m *making) judge(w *world, done tapedeck.Created, err error) error {
	if m.kind != "" {
		return isKind(err, m.kind)
	}
	if err != nil {
		return fmt.Errorf("it failed: %w", err)
	}
	s := w.session(m.ID)
	if !m.exists {
		s.kind, s.closed, s.texts = "", m.Closed, nil
		if m.Parent != "" {
			s.texts = append(s.texts, m.inherited(w)...)
		}
		s.texts = append(s.texts, m.texts...)
	}
	if done.New == m.exists {
		return fmt.Errorf("its New is %t, want %t", done.New, !m.exists)
	}
	if got := &done.Session; got.ID != m.ID || got.Head != int64(len(s.texts)) || got.Closed != s.closed {
		return fmt.Errorf("got %q at %d, closed %t; want head %d, closed %t", got.ID, got.Head, got.Closed, len(s.texts), s.closed)
	}
	return nil
}

// inherited returns what a fork shares with its parent.
func (m *making) inherited(w *world) []string {
	texts := w.session(m.Parent).texts
	if m.ForkAt != nil {
		texts = texts[:*m.ForkAt]
	}
	return texts
}

// from makes the session a fork at an offset.
func from(parent string, at int64) feature {
	return feature{fmt.Sprintf("forked from %s at %d", parent, at), func(_ *world, m *making) {
		m.Parent, m.ForkAt = parent, &at
	}}
}

// fromHead makes the session a fork at the parent's head.
func fromHead(parent string) feature {
	return feature{"forked from the head of " + parent, func(_ *world, m *making) { m.Parent = parent }}
}

// with gives the session n first records.
func with(n int) feature {
	return feature{fmt.Sprintf("with %d records", n), func(w *world, m *making) {
		m.texts = w.texts(n)
		m.Events, m.Chunks = contents(m.ID, m.texts)
	}}
}

// spec changes the Spec.
func spec(say string, set func(s *tapedeck.Spec)) feature {
	return feature{say, func(_ *world, m *making) { set(&m.Spec) }}
}

// typed sets the content type.
func typed(contentType string) feature {
	return spec("of type "+contentType, func(s *tapedeck.Spec) { s.ContentType = contentType })
}

// living sets the TTL.
func living(ttl time.Duration) feature {
	return spec("with a TTL of "+ttl.String(), func(s *tapedeck.Spec) { s.TTL = ttl })
}

// closed makes the session closed from the beginning.
func closed() feature { return spec("closed", func(s *tapedeck.Spec) { s.Closed = true }) }

// existing expects that the session exists already.
func existing() feature {
	return feature{"which exists", func(_ *world, m *making) { m.exists = true }}
}

// failing expects an error.
func failing(k tapedeck.Kind) feature {
	return feature{"which fails: " + string(k), func(_ *world, m *making) { m.kind = k }}
}

// remove deletes a session that no fork needs.
func remove(id string) step { return removeLeaving(id, tapedeck.NotFound) }

// removeSoftly deletes a session that forks need.
func removeSoftly(id string) step { return removeLeaving(id, tapedeck.Gone) }

func removeLeaving(id string, k tapedeck.Kind) step {
	return step{"delete " + id, func(w *world) error {
		if err := w.Delete(w.ctx, id); err != nil {
			return err
		}
		*w.session(id) = expected{kind: k}
		return is(id, k).do(w)
	}}
}

// vanished expects that a session does not exist any more.
func vanished(id string) step {
	return step{id + " is no more", func(w *world) error {
		*w.session(id) = expected{kind: tapedeck.NotFound}
		return is(id, tapedeck.NotFound).do(w)
	}}
}

// is expects that every call on a session fails with kind k.
func is(id string, k tapedeck.Kind) step {
	return step{fmt.Sprintf("%s is %s to every call", id, k), func(w *world) error {
		w.session(id).kind = k
		a := tapedeck.Append{Session: id}
		a.Events, a.Chunks = contents(id, w.texts(1))
		_, aerr := w.Append(w.ctx, a)
		_, cerr := w.Append(w.ctx, tapedeck.Append{Session: id, Close: true})
		_, rerr := w.Read(w.ctx, id, tapedeck.Range{})
		_, herr := w.Head(w.ctx, id)
		derr := w.Delete(w.ctx, id)
		terr := w.Touch(w.ctx, id)
		_, eerr := w.Erase(w.ctx, erasure(id, 0, 1))
		for call, err := range map[string]error{
			"append": aerr, "close": cerr, "read": rerr, "head": herr, "delete": derr, "touch": terr, "erase": eerr,
		} {
			if err := isKind(err, k); err != nil {
				return fmt.Errorf("%s: %w", call, err)
			}
		}
		return w.unlisted(id)
	}}
}

// unlisted returns an error if a session is in the list.
func (w *world) unlisted(id string) error {
	all, err := w.list(tapedeck.Filter{Kind: kindOf(id)})
	for _, s := range all {
		if s.ID == id {
			return errors.Join(err, errors.New("it is in the list"))
		}
	}
	return err
}

func kindOf(id string) tapedeck.SessionKind {
	if isStream(id) {
		return tapedeck.KindStream
	}
	return tapedeck.KindSession
}

// list returns all pages of a list.
func (w *world) list(f tapedeck.Filter) ([]tapedeck.Session, error) {
	var out []tapedeck.Session
	for {
		page, err := w.List(w.ctx, f)
		out = append(out, page.Sessions...)
		if err != nil || page.Next == "" {
			return out, err
		}
		if len(page.Sessions) == 0 || page.Next == f.Cursor {
			return out, fmt.Errorf("the list does not advance from cursor %q", page.Next)
		}
		f.Cursor = page.Next
	}
}

// looks expects that the entry of a session passes ok.
func looks(id, say string, ok func(s tapedeck.Session) bool) step {
	return step{id + " " + say, func(w *world) error {
		s, err := w.Head(w.ctx, id)
		if err == nil && !ok(s) {
			err = fmt.Errorf("it does not: %+v", s)
		}
		return err
	}}
}

// touch restarts the TTL of a session.
func touch(id string) step {
	return step{"touch " + id, func(w *world) error { return w.Touch(w.ctx, id) }}
}

// advance moves the clock.
func advance(d time.Duration) step {
	return step{"advance " + d.String(), func(w *world) error {
		w.Clock.Advance(d)
		return nil
	}}
}
