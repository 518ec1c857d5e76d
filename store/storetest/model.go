package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A model is the simplest possible store. It keeps all sessions that ever existed in
// one list, copies all records into every fork, and searches the whole list. So it has
// none of the optimizations in which a real store can have bugs.
//
// Its methods change nothing. They return the expected result of a call and, for a
// change, a function that makes it.
type model struct {
	now     func() time.Time
	entries []*entry // by creation, including deleted ones
}

type entry struct {
	s       tapedeck.Session
	records []string // the inherited ones too
	done    []done   // every append that was accepted and had a producer
	seqs    []string // every stream sequence that was accepted
	touched time.Time
	parent  *entry
	deleted bool
}

type done struct {
	tapedeck.Producer
	first, next int64
}

// expire deletes the expired sessions.
func (m *model) expire() {
	for _, e := range m.entries {
		byTTL := e.s.TTL > 0 && !m.now().Before(e.touched.Add(e.s.TTL))
		byTime := !e.s.Expires.IsZero() && !m.now().Before(e.s.Expires)
		e.deleted = e.deleted || byTTL || byTime
	}
}

// kept reports whether e still exists, also if only for its forks.
func (m *model) kept(e *entry) bool {
	return !e.deleted || slices.ContainsFunc(m.entries, func(f *entry) bool { return f.parent == e && m.kept(f) })
}

// entry returns the session of an id, nil if there is none.
func (m *model) entry(id string) *entry {
	for _, e := range m.entries {
		if e.s.ID == id && m.kept(e) {
			return e
		}
	}
	return nil
}

func (m *model) find(id string) (*entry, error) {
	e := m.entry(id)
	switch {
	case e == nil:
		return nil, tapedeck.Errorf(tapedeck.NotFound, "%s is not there", id)
	case e.deleted:
		return nil, tapedeck.Errorf(tapedeck.Gone, "%s is deleted", id)
	}
	return e, nil
}

func (m *model) append(a tapedeck.Append) (tapedeck.Appended, func(), error) {
	e, err := m.find(a.Session)
	if err != nil {
		return tapedeck.Appended{}, nil, err
	}
	if badAppend(e, a) {
		return tapedeck.Appended{}, nil, tapedeck.Errorf(tapedeck.Invalid, "it makes no sense")
	}
	dup, refusal := e.answer(a)
	if refusal != nil {
		return tapedeck.Appended{}, nil, refusal
	}
	if dup != nil {
		return *dup, nil, nil
	}
	if a.Check != nil {
		s := e.s
		if err := a.Check(&s); err != nil {
			return tapedeck.Appended{}, nil, err
		}
	}
	next := e.s.Head + int64(len(a.Events)+len(a.Chunks))
	out := tapedeck.Appended{First: e.s.Head, Next: next, Head: next, Closed: a.Close}
	if a.Producer != nil {
		out.Seq = a.Producer.Seq
	}
	return out, func() { e.apply(a, m.now()) }, nil
}

func badAppend(e *entry, a tapedeck.Append) bool {
	p := a.Producer
	return len(a.Events)+len(a.Chunks) == 0 && !a.Close ||
		p != nil && (p.ID == "" || p.Epoch < 0 || p.Seq < 0) ||
		len(a.Events) > 0 && e.s.Kind != tapedeck.KindSession ||
		len(a.Chunks) > 0 && e.s.Kind != tapedeck.KindStream
}

// answer returns the answer to a duplicate, or the refusal.
func (e *entry) answer(a tapedeck.Append) (*tapedeck.Appended, *tapedeck.AppendError) {
	p := tapedeck.Producer{Epoch: -1}
	if a.Producer != nil {
		p = *a.Producer
	}
	last := done{tapedeck.Producer{ID: p.ID, Epoch: -1, Seq: -1}, -1, -1}
	for _, d := range e.done {
		if d.ID == p.ID {
			last = d
		}
	}
	known, newer := last.Epoch >= 0, last.Epoch >= 0 && p.Epoch > last.Epoch
	no := func(r tapedeck.Refusal, k tapedeck.Kind) *tapedeck.AppendError {
		return store.Refuse(r, e.s.Head, k, "refused: %s", r)
	}
	switch {
	case e.s.Closed && a.Producer == nil && len(a.Events)+len(a.Chunks) == 0:
		return &tapedeck.Appended{First: -1, Next: -1, Head: e.s.Head, Closed: true, Duplicate: true}, nil
	case e.s.Closed && e.s.ClosedBy != nil && *e.s.ClosedBy == p:
		return e.repeat(p, last), nil
	case known && p.Epoch < last.Epoch:
		r := no(tapedeck.RefusedEpoch, tapedeck.Forbidden)
		r.Epoch = last.Epoch
		return nil, r
	case e.s.Closed:
		return nil, no(tapedeck.RefusedClosed, tapedeck.Conflict)
	case newer && p.Seq != 0:
		return nil, no(tapedeck.RefusedReset, tapedeck.Invalid)
	case known && !newer && p.Seq <= last.Seq:
		return e.repeat(p, last), nil
	case !newer && a.Producer != nil && p.Seq != last.Seq+1:
		r := no(tapedeck.RefusedGap, tapedeck.Conflict)
		r.Seq = last.Seq + 1
		return nil, r
	case a.StreamSeq != "" && slices.ContainsFunc(e.seqs, func(s string) bool { return s >= a.StreamSeq }):
		return nil, no(tapedeck.RefusedSeq, tapedeck.Conflict)
	case a.Expect != nil && *a.Expect != e.s.Head:
		return nil, no(tapedeck.RefusedOffset, tapedeck.Conflict)
	}
	return nil, nil
}

func (e *entry) repeat(p tapedeck.Producer, last done) *tapedeck.Appended {
	out := &tapedeck.Appended{First: -1, Next: -1, Head: e.s.Head, Closed: e.s.Closed, Duplicate: true, Seq: last.Seq}
	if p == last.Producer {
		out.First, out.Next = last.first, last.next
	}
	return out
}

// apply applies an accepted append.
func (e *entry) apply(a tapedeck.Append, now time.Time) {
	first := e.s.Head
	e.add(a.Events, a.Chunks, now)
	e.touched = now
	if a.Close {
		e.s.Closed, e.s.ClosedBy = true, a.Producer
	}
	if a.Producer != nil {
		e.done = append(e.done, done{*a.Producer, first, e.s.Head})
	}
	if a.StreamSeq != "" {
		e.seqs = append(e.seqs, a.StreamSeq)
	}
}

func (e *entry) add(events []tapedeck.Event, chunks [][]byte, now time.Time) {
	for _, ev := range events {
		ev.Offset = int64(len(e.records))
		b, err := ev.MarshalJSON()
		if err != nil {
			panic(err) // the machine draws only events that can be encoded
		}
		e.records = append(e.records, string(b))
		e.s.Apply(&ev)
	}
	for _, c := range chunks {
		e.records = append(e.records, string(c))
		e.s.Updated = now
	}
	e.s.Head = int64(len(e.records))
}

func (m *model) create(s tapedeck.Spec) (tapedeck.Session, bool, func() *entry, error) {
	var none tapedeck.Session
	if old := m.entry(s.ID); old != nil {
		if old.deleted {
			return none, false, nil, tapedeck.Errorf(tapedeck.Conflict, "forks need %s", s.ID)
		}
		return old.s, false, nil, nil
	}
	e := &entry{touched: m.now()}
	e.s = tapedeck.Session{
		ID: s.ID, Kind: s.Kind, Created: m.now(), Updated: m.now(), ContentType: s.ContentType,
		TTL: s.TTL, Expires: s.Expires, Origin: s.Origin, Closed: s.Closed, Parent: s.Parent,
	}
	if s.Kind == tapedeck.KindSession {
		e.s.Status = tapedeck.StatusIdle
	}
	if s.Parent != "" {
		if err := m.inherit(e, s); err != nil {
			return none, false, nil, err
		}
	}
	e.add(s.Events, s.Chunks, m.now())
	return e.s, true, func() *entry {
		m.entries = append(m.entries, e)
		return e
	}, nil
}

func (m *model) inherit(e *entry, s tapedeck.Spec) error {
	e.parent = m.entry(s.Parent)
	if e.parent == nil {
		return tapedeck.Errorf(tapedeck.NotFound, "there is no parent")
	}
	at := e.parent.s.Head
	if s.ForkAt != nil {
		at = *s.ForkAt
	}
	base := func(t string) string { return strings.ToLower(strings.Split(t, ";")[0]) }
	switch {
	case e.parent.deleted:
		return tapedeck.Errorf(tapedeck.Conflict, "the parent is deleted")
	case e.parent.s.Kind != s.Kind:
		return tapedeck.Errorf(tapedeck.Invalid, "the parent is of another kind")
	case s.ContentType != "" && base(s.ContentType) != base(e.parent.s.ContentType):
		return tapedeck.Errorf(tapedeck.Conflict, "the parent is of another type")
	case at < 0 || at > e.parent.s.Head:
		return tapedeck.Errorf(tapedeck.Invalid, "the parent has no such offset")
	}
	if s.ContentType == "" {
		e.s.ContentType = e.parent.s.ContentType
	}
	e.records = slices.Clone(e.parent.records[:at])
	e.s.Head, e.s.ForkedAt = at, at
	return nil
}

func (m *model) erase(a tapedeck.Erasure) (tapedeck.Appended, []string, func(), error) {
	r := a.Ranges[0]
	e, err := m.find(a.Session)
	switch {
	case r.To <= r.From:
		err = tapedeck.Errorf(tapedeck.Invalid, "there is nothing in the range")
	case err != nil:
	case e.s.Kind != tapedeck.KindSession:
		err = tapedeck.Errorf(tapedeck.NotFound, "it is a stream")
	case r.To > e.s.Head || r.From < e.s.ForkedAt:
		err = tapedeck.Errorf(tapedeck.Invalid, "these are not its own")
	}
	if err != nil {
		return tapedeck.Appended{}, nil, nil, err
	}
	var forks []string
	var lose []func()
	for _, f := range m.entries {
		below := r.To
		x := f
		for ; x != e && x != nil; x = x.parent {
			below = min(below, x.s.ForkedAt)
		}
		if x == nil || below <= r.From {
			continue
		}
		lose = append(lose, func() { f.erase(r.From, below) })
		if f != e && !f.deleted {
			forks = append(forks, f.s.ID)
		}
	}
	slices.Sort(forks)
	head := e.s.Head
	return tapedeck.Appended{First: head, Next: head + 1, Head: head + 1, Closed: e.s.Closed}, forks, func() {
		for _, f := range lose {
			f()
		}
		e.add(a.Events, nil, m.now())
		e.touched = m.now()
	}, nil
}

// erase removes the payloads of records.
func (e *entry) erase(from, to int64) {
	for i := from; i < to; i++ {
		r, err := store.EraseRecord(tapedeck.Record{Offset: i, Data: []byte(e.records[i])})
		if err != nil {
			panic(err)
		}
		e.records[i] = string(r.Data)
	}
}

func (m *model) read(id string, r tapedeck.Range) (tapedeck.Page, error) {
	e, err := m.find(id)
	if err != nil {
		return tapedeck.Page{}, err
	}
	at, step := r.From, int64(1)
	if r.Reverse {
		step = -1
		if at == -1 {
			at = e.s.Head
		}
	}
	if at < 0 || at > e.s.Head {
		return tapedeck.Page{}, tapedeck.Errorf(tapedeck.Invalid, "there is no such offset")
	}
	p := tapedeck.Page{Head: e.s.Head, Closed: e.s.Closed, Gen: e.s.Gen}
	for size := 0; ; at += step {
		i := at
		if r.Reverse {
			i--
		}
		if i < 0 || i >= e.s.Head || r.Limit > 0 && len(p.Records) == r.Limit {
			break
		}
		size += len(e.records[i])
		if r.MaxBytes > 0 && size > r.MaxBytes && len(p.Records) > 0 {
			break
		}
		p.Records = append(p.Records, tapedeck.Record{Offset: i, Data: []byte(e.records[i])})
	}
	p.Next = at
	return p, nil
}

func (m *model) list(f tapedeck.Filter) []tapedeck.Session {
	var out []tapedeck.Session
	for _, e := range slices.Backward(m.entries) {
		text := strings.ToLower(e.s.Title + "\n" + e.s.ID)
		if !e.deleted && e.s.Kind == f.Kind && (strings.Contains(text, strings.ToLower(f.Query)) || slices.Contains(f.MatchIDs, e.s.ID)) &&
			(f.Status == "" || f.Status == e.s.Status) && (!f.OpenRun || len(e.s.Runs) > 0) && (!f.Inputs || len(e.s.Inputs) > 0) && (!f.Closed || e.s.Closed) && store.HasLabels(&e.s, &f) &&
			(f.Parent == "" || f.Parent == e.s.Parent) &&
			(f.From.IsZero() || !f.From.After(e.s.Created)) && (f.To.IsZero() || f.To.After(e.s.Created)) {
			out = append(out, e.s)
		}
	}
	slices.SortStableFunc(out, func(a, b tapedeck.Session) int {
		c := store.PlaceOf(&a, f.Sort).Compare(store.PlaceOf(&b, f.Sort))
		if f.Ascending {
			return c
		}
		return -c
	})
	return out
}
