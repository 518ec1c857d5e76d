package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tapedeck/tapedeck"
)

func testCreate(t *testing.T, open opener) {
	for _, id := range []string{"a", "stream/a", "stream/a/b c/ä"} {
		play(t, open, "empty/"+id, create(id))
		play(t, open, "with records/"+id, create(id, with(3)), write(id, 2))
		play(t, open, "closed/"+id, create(id, with(2), closed()), write(id, 1, refused(tapedeck.RefusedClosed, tapedeck.Conflict)))
		play(t, open, "twice/"+id, create(id, with(2)), write(id, 1), create(id, with(3), existing()),
			create(id, closed(), fromHead("nowhere"), existing()), write(id, 1))
	}
	play(t, open, "no kind is a session", create("a", spec("of no kind", func(s *tapedeck.Spec) { s.Kind = "" })),
		write("a", 1), looks("a", "is a session", func(s tapedeck.Session) bool { return s.Kind == tapedeck.KindSession }))
	testBadSpecs(t, open)
	t.Run("an old event", func(t *testing.T) { testOldEvents(t, start(t, open)) })
	t.Run("the entry", func(t *testing.T) { testEntry(t, start(t, open)) })
	play(t, open, "generations", create("a"), create("b"), generations("a", "b"),
		remove("b"), create("c"), generations("a", "c"), created("b", 3),
		remove("b"), remove("c"), created("a2", 4), removeAndReopen("a2"), created("a2", 5))
	play(t, open, "an id is used again", create("a", with(3)), write("a", 1, by("w", 3, 0), sequence("m")), remove("a"),
		create("a"), looks("a", "is idle", idle), write("a", 1, by("w", 0, 0), sequence("a")), remove("a"), create("a", with(1)))
}

// These are the longest id of a session and the longest path of a stream, in bytes.
const (
	maxIDLen   = 128
	maxPathLen = 1024
)

func idle(s tapedeck.Session) bool { return s.Status == tapedeck.StatusIdle && len(s.Runs) == 0 }

func testBadSpecs(t *testing.T, open opener) {
	one := int64(1)
	bad := map[string]struct {
		id  string
		set func(s *tapedeck.Spec)
	}{
		"no id":                    {"", nil},
		"a path":                   {"../a", nil},
		"a slash":                  {"a/b", nil},
		"a NUL byte":               {"a\x00", nil},
		"a long id":                {strings.Repeat("a", maxIDLen+1), nil},
		"a long path":              {"stream/" + strings.Repeat("a", maxPathLen+1), nil},
		"no path":                  {"stream/", nil},
		"a path upwards":           {"stream/a/../b", nil},
		"a path that is no UTF-8":  {"stream/\xff", nil},
		"a session named a stream": {"stream/a", func(s *tapedeck.Spec) { s.Kind = tapedeck.KindSession }},
		"a stream named a session": {"a", func(s *tapedeck.Spec) { s.Kind = tapedeck.KindStream }},
		"a view named a stream":    {"stream/a", func(s *tapedeck.Spec) { s.Kind = tapedeck.KindView }},
		"events for a view":        {"view/a", func(s *tapedeck.Spec) { s.Kind, s.Events = tapedeck.KindView, []tapedeck.Event{event("x")} }},
		"an unknown kind":          {"a", func(s *tapedeck.Spec) { s.Kind = "tape" }},
		"a negative TTL":           {"a", func(s *tapedeck.Spec) { s.TTL = -1 }},
		"a fork of nothing":        {"a", func(s *tapedeck.Spec) { s.ForkAt = &one }},
		"bytes for a session":      {"a", func(s *tapedeck.Spec) { s.Chunks = [][]byte{[]byte("x")} }},
		"events for a stream":      {"stream/a", func(s *tapedeck.Spec) { s.Events = []tapedeck.Event{event("x")} }},
	}
	for name, b := range bad {
		if b.set == nil {
			b.set = func(*tapedeck.Spec) {}
		}
		play(t, open, "bad/"+name, create(b.id, spec(name, b.set), failing(tapedeck.Invalid)), is(b.id, tapedeck.NotFound))
	}
}

// testEntry checks every member of the entry of a new session and a new stream.
func testEntry(t *testing.T, w *world) {
	expires := time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC)
	began := w.now().Truncate(time.Millisecond)
	for _, c := range []struct {
		spec tapedeck.Spec
		want tapedeck.Session
	}{
		{
			tapedeck.Spec{ID: "a", Kind: tapedeck.KindSession, TTL: time.Hour, Expires: expires, Origin: "x=1"},
			tapedeck.Session{ID: "a", Kind: tapedeck.KindSession, Status: tapedeck.StatusIdle, TTL: time.Hour, Expires: expires, Origin: "x=1"},
		},
		{
			tapedeck.Spec{ID: "stream/a", Kind: tapedeck.KindStream, ContentType: "Text/Plain; charset=utf-8", Chunks: [][]byte{[]byte("x")}, Closed: true},
			tapedeck.Session{ID: "stream/a", Kind: tapedeck.KindStream, ContentType: "Text/Plain; charset=utf-8", Head: 1, Closed: true},
		},
		{
			tapedeck.Spec{ID: "view/a/1", Kind: tapedeck.KindView, ContentType: "application/json", Chunks: [][]byte{[]byte("{}")}, Closed: true},
			tapedeck.Session{ID: "view/a/1", Kind: tapedeck.KindView, ContentType: "application/json", Head: 1, Closed: true},
		},
	} {
		done, err := w.Create(w.ctx, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		got := done.Session
		if got.Created.Before(began) || got.Created.After(w.now()) || !got.Updated.Equal(got.Created) || got.Created.Location() != time.UTC {
			t.Errorf("%s: created %v and updated %v, and now it is %v", c.spec.ID, got.Created, got.Updated, w.now())
		}
		if got.Gen <= 0 {
			t.Errorf("%s: generation %d", c.spec.ID, got.Gen)
		}
		ignore := cmpopts.IgnoreFields(tapedeck.Session{}, "Created", "Updated", "Gen", "Status")
		if d := cmp.Diff(c.want, got, ignore); d != "" || c.spec.ID == "a" && got.Status != c.want.Status {
			t.Errorf("%s: status %q (-want +got)\n%s", c.spec.ID, got.Status, d)
		}
		if d := cmp.Diff(got, must(w.Head(w.ctx, c.spec.ID))(t)); d != "" {
			t.Errorf("%s: (-created +head)\n%s", c.spec.ID, d)
		}
		all := must(w.list(tapedeck.Filter{Kind: c.spec.Kind}))(t)
		if d := cmp.Diff([]tapedeck.Session{got}, all); d != "" {
			t.Errorf("%s: (-created +listed)\n%s", c.spec.ID, d)
		}
	}
}

// testOldEvents checks that a session is created at the time of its first event, and
// that Updated is never before that, however old later events are.
func testOldEvents(t *testing.T, w *world) {
	old := event("x")
	old.Time = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	w.play(create("a", spec("with an old event", func(s *tapedeck.Spec) { s.Events = []tapedeck.Event{old} }),
		feature{"", func(_ *world, m *making) { m.texts = []string{"x"} }}))
	if s := must(w.Head(w.ctx, "a"))(t); !s.Updated.Equal(s.Created) || !s.Created.Equal(old.Time) {
		t.Errorf("it was updated %v and created %v, its first event is of %v", s.Updated, s.Created, old.Time)
	}
	older := event("y")
	older.Time = old.Time.Add(-time.Hour)
	must(w.Append(w.ctx, tapedeck.Append{Session: "a", Events: []tapedeck.Event{older}}))(t)
	if s := must(w.Head(w.ctx, "a"))(t); !s.Updated.Equal(old.Time) {
		t.Errorf("an event from before it began made it updated %v", s.Updated)
	}
}

// now returns the store's time.
func (w *world) now() time.Time {
	if w.Clock == nil {
		return time.Now()
	}
	return w.Clock.Now()
}

// generations expects that the Gen of sessions grows in this order.
func generations(ids ...string) step {
	return step{"generations grow over " + strings.Join(ids, ", "), func(w *world) error {
		last := int64(0)
		for _, id := range ids {
			s, err := w.Head(w.ctx, id)
			if err != nil {
				return err
			}
			if s.Gen <= last {
				return fmt.Errorf("%s has %d, and there was %d before", id, s.Gen, last)
			}
			last = s.Gen
		}
		return nil
	}}
}

// created creates the n-th session of the store. Its Gen must be at least n.
func created(id string, n int64) step {
	return step{fmt.Sprintf("create %s as number %d", id, n), func(w *world) error {
		if err := create(id).do(w); err != nil {
			return err
		}
		s, err := w.Head(w.ctx, id)
		if err == nil && s.Gen < n {
			err = fmt.Errorf("its generation is %d: one was used twice", s.Gen)
		}
		return err
	}}
}

// removeAndReopen deletes the newest session and, if possible, reopens the store: then
// no row has the newest Gen any more.
func removeAndReopen(id string) step {
	return step{"delete " + id + " and reopen", func(w *world) error {
		if err := remove(id).do(w); err != nil || w.Reopen == nil {
			return err
		}
		return reopen().do(w)
	}}
}
