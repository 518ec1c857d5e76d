package tail_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/tail"
)

// errBeneath is the error of every call of beneath, so that a test sees which calls
// reach it.
var errBeneath = errors.New("asked the store beneath")

// beneath is a store that knows only the heads of its sessions.
type beneath struct {
	tapedeck.Store
	sessions sync.Map // of tapedeck.Session by id
	observer tapedeck.Observer
}

func (b *beneath) Observe(o tapedeck.Observer) { b.observer = o }

func (b *beneath) Head(_ context.Context, id string) (tapedeck.Session, error) {
	if s, ok := b.sessions.Load(id); ok {
		return *s.(*tapedeck.Session), nil
	}
	return tapedeck.Session{}, errBeneath
}

func (*beneath) Read(context.Context, string, tapedeck.Range) (tapedeck.Page, error) {
	return tapedeck.Page{}, errBeneath
}

// A cache has a store beneath, which shows each commit before the cache gets it.
type cache struct {
	*tail.Cache
	below beneath
	layer tapedeck.Store
}

func newCache(maxBytes int64) *cache {
	c := &cache{Cache: tail.New(maxBytes)}
	c.layer = c.Layer(&c.below)
	return c
}

func (c *cache) over() tapedeck.Store { return c.layer }

func feed(c *cache, commits ...tapedeck.Commit) {
	for i := range commits {
		c.below.show(&commits[i])
	}
	c.below.observer.Committed(commits)
}

func (b *beneath) show(c *tapedeck.Commit) {
	if c.Gone {
		b.sessions.Delete(c.Session.ID)
		return
	}
	s := c.Session
	b.sessions.Store(s.ID, &s)
}

// A log makes the commits of one session.
type log struct{ tapedeck.Session }

// commit returns a commit of records of 100 bytes.
func (l *log) commit(records int) tapedeck.Commit {
	c := tapedeck.Commit{}
	for range records {
		c.Records = append(c.Records, tapedeck.Record{Offset: l.Head, Data: []byte(fmt.Sprintf("%s %0*d", l.ID, 99-len(l.ID), l.Head))})
		l.Head++
	}
	c.Session = l.Session
	return c
}

func newLog(id string, head int64) *log {
	return &log{tapedeck.Session{ID: id, Gen: 1, Head: head}}
}

// TestWindow reads pages of a session with 100 records; the last 20 are in the cache.
func TestWindow(t *testing.T) {
	c := newCache(1 << 20)
	l := newLog("a", 80)
	feed(c, l.commit(15))
	feed(c, l.commit(0), l.commit(5))
	s := c.over()
	seq := func(from, to int64) (out []int64) {
		for ; from < to; from++ {
			out = append(out, from)
		}
		return out
	}
	down := func(from, to int64) []int64 {
		out := seq(to, from)
		slices.Reverse(out)
		return out
	}
	for _, x := range []struct {
		r    tapedeck.Range
		want []int64 // nil with next 0: the read reaches the store beneath
		next int64
	}{
		{tapedeck.Range{From: 80}, seq(80, 100), 100},
		{tapedeck.Range{From: 99}, seq(99, 100), 100},
		{tapedeck.Range{From: 100}, nil, 100},
		{tapedeck.Range{From: 101}, nil, 0},
		{tapedeck.Range{From: 79}, nil, 0},
		{tapedeck.Range{From: 0}, nil, 0},
		{tapedeck.Range{From: -1}, nil, 0},
		{tapedeck.Range{From: 90, Limit: 3}, seq(90, 93), 93},
		{tapedeck.Range{From: 90, MaxBytes: 299}, seq(90, 92), 92},
		{tapedeck.Range{From: 90, MaxBytes: 300}, seq(90, 93), 93},
		{tapedeck.Range{From: 90, MaxBytes: 1}, seq(90, 91), 91},
		{tapedeck.Range{From: -1, Limit: 3, Reverse: true}, down(100, 97), 97},
		{tapedeck.Range{From: 100, Limit: 20, Reverse: true}, down(100, 80), 80},
		{tapedeck.Range{From: 100, Limit: 21, Reverse: true}, nil, 0},
		{tapedeck.Range{From: 100, Reverse: true}, nil, 0},
		{tapedeck.Range{From: 101, Limit: 1, Reverse: true}, nil, 0},
		{tapedeck.Range{From: 90, MaxBytes: 250, Reverse: true}, down(90, 88), 88},
		{tapedeck.Range{From: 81, MaxBytes: 100, Reverse: true}, nil, 0}, // the cache does not know whether the record before would fit
		{tapedeck.Range{From: 81, Limit: 1, Reverse: true}, down(81, 80), 80},
		{tapedeck.Range{From: 80, Limit: 1, Reverse: true}, nil, 0},
	} {
		p, err := s.Read(t.Context(), "a", x.r)
		if x.next == 0 {
			if !errors.Is(err, errBeneath) {
				t.Errorf("%+v: got %d records and %v, want a read of the store beneath", x.r, len(p.Records), err)
			}
			continue
		}
		var got []int64
		for _, r := range p.Records {
			got = append(got, r.Offset)
		}
		if err != nil || p.Next != x.next || p.Head != 100 || cmp.Diff(x.want, got) != "" {
			t.Errorf("%+v: got %v, next %d, head %d, %v; want %v, next %d", x.r, got, p.Next, p.Head, err, x.want, x.next)
		}
	}
}

// TestNeverOlder: the store shows a commit before the cache gets it. A reader that knows
// the new head must not get a page with the old one.
func TestNeverOlder(t *testing.T) {
	c := newCache(1 << 20)
	s := c.over()
	l := newLog("a", 0)
	feed(c, l.commit(5))
	m := l.commit(2)
	c.below.show(&m)
	if v, err := s.Head(t.Context(), "a"); err != nil || v.Head != 7 {
		t.Fatalf("the store is at %d (%v)", v.Head, err)
	}
	for _, r := range []tapedeck.Range{{}, {From: 5}, {From: -1, Reverse: true}} {
		if p, err := s.Read(t.Context(), "a", r); !errors.Is(err, errBeneath) {
			t.Errorf("%+v: a page up to %d of %d (%v)", r, p.Next, p.Head, err)
		}
	}
	c.below.observer.Committed([]tapedeck.Commit{m})
	if p, err := s.Read(t.Context(), "a", tapedeck.Range{}); err != nil || p.Head != 7 {
		t.Errorf("a page of %d (%v)", p.Head, err)
	}
	again := newLog("a", 0)
	again.Gen = 2
	made := again.commit(1)
	c.below.show(&made)
	if p, err := s.Read(t.Context(), "a", tapedeck.Range{}); !errors.Is(err, errBeneath) {
		t.Errorf("a page of %d of the session that was there before (%v)", p.Head, err)
	}
}

// TestWholeSession: no read of a session that is completely in the cache reaches the
// store.
func TestWholeSession(t *testing.T) {
	c := newCache(1 << 20)
	l := newLog("a", 0)
	feed(c, l.commit(5))
	s := c.over()
	for _, r := range []tapedeck.Range{{}, {From: -1, Reverse: true}, {Reverse: true}, {From: 3, Reverse: true}} {
		if _, err := s.Read(t.Context(), "a", r); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestNotHeld(t *testing.T) {
	for name, change := range map[string]func(*tapedeck.Commit){
		"deleted":    func(c *tapedeck.Commit) { c.Gone = true },
		"a TTL":      func(c *tapedeck.Commit) { c.Session.TTL = time.Hour },
		"an expiry":  func(c *tapedeck.Commit) { c.Session.Expires = time.Unix(1, 0) },
		"nobody was": nil,
	} {
		c := newCache(1 << 20)
		if change != nil {
			l := newLog("a", 0)
			feed(c, l.commit(1)) // it is in the cache, and then not any more
			m := l.commit(1)
			change(&m)
			feed(c, m)
		}
		s := c.over()
		if _, err := s.Read(t.Context(), "a", tapedeck.Range{}); !errors.Is(err, errBeneath) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGap: records that do not follow on those in the cache replace them.
func TestGap(t *testing.T) {
	for name, change := range map[string]func(*log){
		"a commit passed by":   func(l *log) { l.Head += 3 },
		"another incarnation":  func(l *log) { l.Gen++ },
		"another, at its head": func(l *log) { l.Gen, l.Head = 7, 0 },
	} {
		c := newCache(1 << 20)
		l := newLog("a", 0)
		feed(c, l.commit(5))
		change(l)
		first := l.Head
		feed(c, l.commit(2))
		s := c.over()
		if p, err := s.Read(t.Context(), "a", tapedeck.Range{From: first}); err != nil || len(p.Records) != 2 || p.Records[0].Offset != first {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if _, err := s.Read(t.Context(), "a", tapedeck.Range{From: first - 1}); !errors.Is(err, errBeneath) {
			t.Errorf("%s: it has the records before: %v", name, err)
		}
	}
}

// heldOf counts the records of a session in the cache.
func heldOf(s tapedeck.Store, l *log) int64 {
	n := int64(0)
	for n < l.Head {
		if _, err := s.Read(context.Background(), l.ID, tapedeck.Range{From: l.Head - n - 1}); err != nil {
			break
		}
		n++
	}
	return n
}

// TestBudget: a session takes at most an eighth of the budget and keeps its newest
// records; of many sessions, the cache keeps those that were used last.
func TestBudget(t *testing.T) {
	const budget = 1 << 20
	c := newCache(budget)
	s := c.over()
	l := newLog("a", 0)
	for range 5000 {
		feed(c, l.commit(3))
		if c.Size() > budget/8+1000 {
			t.Fatalf("one session takes %d of %d bytes", c.Size(), budget)
		}
	}
	if n := heldOf(s, l); n < budget/16/150 || n > budget/8/100 {
		t.Errorf("%d records are held of one session", n)
	}
	logs := []*log{l}
	for i := range 100 {
		m := newLog(fmt.Sprint("s", i), 0)
		logs = append(logs, m)
		for range 10 {
			feed(c, m.commit(20))
		}
		if c.Size() > budget {
			t.Fatalf("after session %d it is %d bytes", i, c.Size())
		}
		if heldOf(s, logs[1]) != 200 { // this reads the session, so it must stay
			t.Fatalf("after session %d the one that is read was dropped", i)
		}
	}
	for i, m := range logs[2:] {
		want := int64(0)
		if i >= 90 {
			want = 200
		}
		if n := heldOf(s, m); n != want && (i < 50 || i >= 90) {
			t.Errorf("session %d of 99 has %d records, want %d", i, n, want)
		}
	}
	if c.Size() < budget/2 {
		t.Errorf("only %d of %d bytes are used", c.Size(), budget)
	}
}

// TestHugeRecord: a record that does not fit is not cached, and breaks nothing.
func TestHugeRecord(t *testing.T) {
	c := newCache(10_000)
	s := c.over()
	l := newLog("a", 0)
	for range 3 {
		m := l.commit(1)
		m.Records[0].Data = []byte(strings.Repeat("x", 100_000))
		feed(c, m)
	}
	if c.Size() > 10_000 {
		t.Errorf("it is %d bytes", c.Size())
	}
	feed(c, l.commit(1))
	if n := heldOf(s, l); n != 1 {
		t.Errorf("%d records are held", n)
	}
}

// TestPagesShareMemory: two readers get the same memory, and an append by one of them
// does not change the slice of the other.
func TestPagesShareMemory(t *testing.T) {
	c := newCache(1 << 20)
	l := newLog("a", 0)
	feed(c, l.commit(10))
	s := c.over()
	one, _ := s.Read(t.Context(), "a", tapedeck.Range{From: 5, Limit: 2})
	two, _ := s.Read(t.Context(), "a", tapedeck.Range{From: 5})
	if unsafe.SliceData(one.Records) != unsafe.SliceData(two.Records) {
		t.Error("the lists are copies")
	}
	_ = append(one.Records, tapedeck.Record{Offset: -1})
	if two.Records[2].Offset != 7 {
		t.Error("a reader changed the page of another one")
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Read(ctx, "a", tapedeck.Range{From: 8}) }); n != 0 {
		t.Errorf("a read near the head allocates %v times", n)
	}
}

// TestReadersWhileWritten has many readers follow a session while it is written, and
// while another session pushes it out of the cache again and again. Each reader must
// see dense offsets and a head that never decreases.
func TestReadersWhileWritten(t *testing.T) {
	c := newCache(64 << 10)
	s := c.over()
	const commits, readers = 3000, 16
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for head := int64(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				v, err := s.Head(context.Background(), "a")
				if err != nil {
					continue // it does not exist yet
				}
				if v.Head < head {
					t.Errorf("the head went from %d to %d", head, v.Head)
					return
				}
				head = v.Head
				p, err := s.Read(context.Background(), "a", tapedeck.Range{From: max(0, head-5)})
				for i, r := range p.Records {
					if r.Offset != max(0, head-5)+int64(i) || !strings.HasSuffix(string(r.Data), fmt.Sprint(r.Offset)) {
						t.Errorf("offset %d holds %s", r.Offset, r.Data)
						return
					}
				}
				if err == nil && (!p.CaughtUp() || p.Head < head) {
					t.Errorf("a page up to %d where the head was %d", p.Next, head)
				}
			}
		})
	}
	a, b := newLog("a", 0), newLog("b", 0)
	for i := range commits {
		feed(c, a.commit(1+i%4))
		if i%50 == 0 {
			feed(c, b.commit(300))
		}
	}
	close(stop)
	wg.Wait()
}

// BenchmarkHead has many goroutines read the newest record, as followers do.
func BenchmarkHead(b *testing.B) {
	c := newCache(1 << 20)
	l := newLog("a", 0)
	feed(c, l.commit(10))
	s := c.over()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if p, err := s.Read(context.Background(), "a", tapedeck.Range{From: 9}); err != nil || len(p.Records) != 1 {
				b.Error(err)
			}
		}
	})
}

// BenchmarkCommit measures the cost of the cache for the writer.
func BenchmarkCommit(b *testing.B) {
	c := newCache(64 << 20)
	logs := make([]*log, 64)
	for i := range logs {
		logs[i] = newLog(fmt.Sprint("s", i), 0)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l := logs[i%64]
		feed(c, tapedeck.Commit{Session: func() tapedeck.Session { l.Head++; return l.Session }(), Records: []tapedeck.Record{{Offset: l.Head - 1, Data: make([]byte, 330)}}})
	}
}
