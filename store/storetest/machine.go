package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A machine makes random calls on a store and on the model, and compares the results.
// When they differ, rapid looks for fewer and smaller calls with a difference, and
// prints those with the seed.
type machine struct {
	*world
	model model
	gen   int64 // the highest Gen so far
}

// testModel needs a clock, because entries have times.
func testModel(t *testing.T, open opener) {
	if s := start(t, open); s.Clock == nil {
		t.Skip("the store has no clock to move")
	}
	rapid.Check(t, func(r *rapid.T) {
		w := start(t, open)
		m := &machine{world: w, model: model{now: w.Clock.Now}}
		defer func() { _ = w.Close() }()
		m.make(r, tapedeck.Spec{ID: "a", Kind: tapedeck.KindSession})
		m.make(r, tapedeck.Spec{ID: "stream/a", Kind: tapedeck.KindStream})
		actions := map[string]func(*rapid.T){
			"append": m.append, "append again": m.append, "append once more": m.append,
			"create": m.create, "fork": m.fork, "read": m.read, "list": m.list,
			"delete": m.remove, "touch": m.touch, "advance": m.advance, "erase": m.erase,
			"": m.compare,
		}
		if w.FailCommits != nil {
			actions["fail"] = m.fail
		}
		if w.Reopen != nil {
			actions["reopen"] = m.reopen
		}
		r.Repeat(actions)
		m.readAll(r)
	})
}

func (m *machine) append(r *rapid.T) {
	a := m.drawAppend(r)
	want, apply, wantErr := m.model.append(a)
	got, err := m.Append(m.ctx, a)
	if !same(r, a.Session, wantErr, err) {
		return
	}
	diff(r, "append", want, got)
	if apply != nil {
		apply()
	}
	if want.Duplicate { // the contract does not say whether a duplicate restarts the TTL
		m.touchBoth(r, a.Session)
	}
}

// fail makes calls whose commits fail. A call that would have changed something must
// fail.
func (m *machine) fail(r *rapid.T) {
	m.FailCommits(true)
	defer m.FailCommits(false)
	a := m.drawAppend(r)
	if _, apply, _ := m.model.append(a); apply != nil {
		_, err := m.Append(m.ctx, a)
		same(r, "append", tapedeck.Errorf(tapedeck.Unavailable, "the commit fails"), err)
	}
	s := m.drawSpec(r)
	if _, made, _, _ := m.model.create(s); made {
		_, err := m.Create(m.ctx, s)
		same(r, "create", tapedeck.Errorf(tapedeck.Unavailable, "the commit fails"), err)
	}
	if _, err := m.model.find(a.Session); err == nil {
		same(r, "delete", tapedeck.Errorf(tapedeck.Unavailable, "the commit fails"), m.Delete(m.ctx, a.Session))
	}
}

func (m *machine) create(r *rapid.T) {
	s := m.drawSpec(r)
	if isStream(s.ID) {
		s.ContentType = rapid.SampledFrom([]string{"", "text/plain", "application/json"}).Draw(r, "content type")
	}
	m.make(r, s)
}

func (m *machine) fork(r *rapid.T) {
	s := m.drawSpec(r)
	s.Parent = drawID(r)
	parent := m.model.entry(s.Parent)
	if chance(r, 4, "at the head") || parent == nil {
		m.make(r, s)
		return
	}
	// One fault at a time, as with appends.
	if isStream(s.ID) && chance(r, 3, "typed") {
		s.ContentType = rapid.SampledFrom([]string{"text/plain", "TEXT/plain; charset=x", "application/json"}).Draw(r, "content type")
	} else {
		at := rapid.Int64Range(0, parent.s.Head+1).Draw(r, "fork at")
		s.ForkAt = &at
	}
	m.make(r, s)
}

func (m *machine) make(r *rapid.T, s tapedeck.Spec) {
	want, made, apply, wantErr := m.model.create(s)
	done, err := m.Create(m.ctx, s)
	if !same(r, "create", wantErr, err) {
		return
	}
	if made != done.New {
		r.Fatalf("create %s: New is %t, want %t", s.ID, done.New, made)
	}
	got := done.Session
	if made {
		if got.Gen <= m.gen {
			r.Fatalf("create %s: its generation is %d, and %d was used before", s.ID, got.Gen, m.gen)
		}
		want.Gen, m.gen = got.Gen, got.Gen
		apply().s.Gen = got.Gen
	}
	diff(r, "create", want, got)
}

func (m *machine) read(r *rapid.T) {
	id := drawID(r)
	head := int64(3)
	if e := m.model.entry(id); e != nil {
		head = e.s.Head
	}
	m.readBoth(r, id, tapedeck.Range{
		From:     rapid.Int64Range(-2, head+1).Draw(r, "from"),
		Limit:    rapid.IntRange(0, 5).Draw(r, "limit"),
		MaxBytes: rapid.SampledFrom([]int{0, 0, 1, 100, 300}).Draw(r, "max bytes"),
		Reverse:  rapid.Bool().Draw(r, "reverse"),
	})
}

func (m *machine) readBoth(r *rapid.T, id string, rng tapedeck.Range) {
	want, wantErr := m.model.read(id, rng)
	got, err := m.Read(m.ctx, id, rng)
	if same(r, fmt.Sprintf("read %s from %+v", id, rng), wantErr, err) {
		diff(r, fmt.Sprintf("read %s from %+v", id, rng), want, got)
	}
}

func (m *machine) readAll(r *rapid.T) {
	for _, id := range modelIDs {
		m.readBoth(r, id, tapedeck.Range{})
		m.readBoth(r, id, tapedeck.Range{From: -1, Reverse: true})
		if s, err := m.Head(m.ctx, id); err == nil {
			if err := m.witness.compare(m.world, &s); err != nil {
				r.Fatalf("%v", err)
			}
		}
	}
}

func (m *machine) list(r *rapid.T) {
	f := tapedeck.Filter{
		Kind:    rapid.SampledFrom([]tapedeck.SessionKind{tapedeck.KindSession, tapedeck.KindStream}).Draw(r, "kind"),
		Status:  rapid.SampledFrom(modelStatuses).Draw(r, "status"),
		Query:   rapid.SampledFrom([]string{"", "", "A", "X", "/"}).Draw(r, "query"),
		OpenRun: chance(r, 8, "open run"),
		Limit:   rapid.IntRange(0, 3).Draw(r, "limit"),
	}
	if f.Kind == tapedeck.KindSession {
		f.Sort = rapid.SampledFrom([]string{"", "", store.SortActivity, store.SortTitle, store.SortTokens}).Draw(r, "sort")
		f.Ascending = chance(r, 3, "ascending")
	}
	if chance(r, 5, "parent") {
		f.Parent = drawID(r)
	}
	ago := func(what string) time.Time {
		return m.now().Add(-time.Duration(rapid.IntRange(0, 20).Draw(r, what)) * time.Second)
	}
	if chance(r, 5, "since") {
		f.From = ago("from")
	}
	if chance(r, 5, "before") {
		f.To = ago("to")
	}
	got, err := m.world.list(f)
	same(r, "list", nil, err)
	diff(r, fmt.Sprintf("list %+v", f), m.model.list(f), got)
}

func (m *machine) remove(r *rapid.T) {
	id := drawID(r)
	e, want := m.model.find(id)
	if same(r, "delete "+id, want, m.Delete(m.ctx, id)) {
		e.deleted = true
	}
}

func (m *machine) erase(r *rapid.T) {
	id := drawID(r)
	head := int64(3)
	if e := m.model.entry(id); e != nil {
		head = e.s.Head
	}
	a := erasure(id, rapid.Int64Range(0, head).Draw(r, "from"), rapid.Int64Range(0, head+1).Draw(r, "to"))
	a.Events[0].Time, a.Events[0].Channel = m.now(), tapedeck.ChannelSession // as the store keeps it
	want, forks, apply, wantErr := m.model.erase(a)
	got, err := m.Erase(m.ctx, a)
	if !same(r, "erase "+id, wantErr, err) {
		return
	}
	apply()
	slices.Sort(got.Forks)
	diff(r, "erase "+id, tapedeck.Erased{Appended: want, Forks: forks}, got)
}

func (m *machine) touch(r *rapid.T) { m.touchBoth(r, drawID(r)) }

func (m *machine) touchBoth(r *rapid.T, id string) {
	e, want := m.model.find(id)
	if same(r, "touch "+id, want, m.Touch(m.ctx, id)) {
		e.touched = m.now()
	}
}

func (m *machine) advance(r *rapid.T) {
	m.Clock.Advance(time.Duration(rapid.IntRange(1, 8).Draw(r, "seconds")) * time.Second)
	m.model.expire()
}

// reopen opens the store again. That may restart TTLs, so it restarts them all.
func (m *machine) reopen(r *rapid.T) {
	m.world.reopen()
	for _, id := range modelIDs {
		m.touchBoth(r, id)
	}
}

// compare compares the entries after every call.
func (m *machine) compare(r *rapid.T) {
	for _, id := range modelIDs {
		e, want := m.model.find(id)
		got, err := m.Head(m.ctx, id)
		if same(r, "head of "+id, want, err) {
			diff(r, "head of "+id, e.s, got)
			if err := m.witness.compareEntry(&got); err != nil {
				r.Fatalf("%v", err)
			}
		}
	}
}

// same ends the test if a caller can see a difference between the errors. It reports
// whether there is no error.
func same(r *rapid.T, what string, want, got error) bool {
	r.Helper()
	if tapedeck.KindOf(want) != tapedeck.KindOf(got) {
		r.Fatalf("%s: got the error %v, want %v", what, got, want)
	}
	var w, g *tapedeck.AppendError
	if errors.As(want, &w) != errors.As(got, &g) {
		r.Fatalf("%s: got the error %#v, want %#v", what, got, want)
	}
	if w != nil {
		diff(r, what+" refused", *w, *g)
	}
	return want == nil
}

func diff[T any](r *rapid.T, what string, want, got T) {
	r.Helper()
	if d := cmp.Diff(want, got, sameSessions, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(tapedeck.AppendError{}, "Err")); d != "" {
		r.Fatalf("%s: (-want +got)\n%s", what, d)
	}
}

// sameSessions ignores the status of streams, which have none.
var sameSessions = cmp.FilterPath(func(p cmp.Path) bool {
	return p.Last().String() == ".Status"
}, cmp.Comparer(func(a, b tapedeck.Status) bool { return a == b || a+b == tapedeck.StatusIdle }))
