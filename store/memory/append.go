package memory

import (
	"context"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// Append implements [tapedeck.Log].
func (m *Store) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	now := m.now()
	if err := store.CheckAppend(&a); err != nil {
		return tapedeck.Appended{}, err
	}
	events, drafts, err := tapedeck.Drafts(a.Events, a.Chunks, now)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	a.Events = events
	unlock, err := m.enter(ctx)
	if err != nil {
		return tapedeck.Appended{}, err
	}
	defer unlock()
	l, err := m.find(a.Session)
	if err == nil {
		err = tapedeck.Condition(ctx)(&l.Session)
	}
	if err != nil {
		return tapedeck.Appended{}, err
	}
	if done, err := store.DecideAppend(&a, &l.Session, l.streamSeq, l.accepted(a.Producer)); done.Duplicate || err != nil {
		return done, err
	}
	return m.write(l, &a, drafts, now, false)
}

// write writes an append that was accepted; erased says that it is the receipt of an
// erasure. Requires m.mu.
func (m *Store) write(l *log, a *tapedeck.Append, drafts []tapedeck.Draft, now time.Time, erased bool) (tapedeck.Appended, error) {
	if a.Check != nil {
		s := l.Session // a copy, which Check may change
		if err := a.Check(&s); err != nil {
			return tapedeck.Appended{}, err
		}
	}
	if err := m.commit(); err != nil {
		return tapedeck.Appended{}, err
	}
	done, before := tapedeck.Appended{First: l.Head}, l.Spent
	records := l.extend(a.Events, drafts, now)
	m.charge(store.ChargeOf(a, before, &l.Session, now))
	if a.Close {
		l.Closed, l.ClosedBy = true, clone(a.Producer)
	}
	if a.StreamSeq != "" {
		l.streamSeq = a.StreamSeq
	}
	l.touched = m.now()
	done.Next, done.Head, done.Closed = l.Head, l.Head, l.Closed
	if p := a.Producer; p != nil {
		if l.producers == nil {
			l.producers = map[string]store.ProducerState{}
		}
		state := store.Accepted(a, done.First, done.Next)
		l.producers[p.ID] = state
		done.Seq = state.Seq
	}
	done.Parts = a.Parts
	m.committed(tapedeck.Commit{Session: l.Session, Records: records, Erased: erased})
	return done, nil
}

// extend adds records, which it returns, and folds events into the session's entry.
func (l *log) extend(events []tapedeck.Event, drafts []tapedeck.Draft, now time.Time) []tapedeck.Record {
	records := make([]tapedeck.Record, len(drafts))
	for i, d := range drafts {
		records[i] = d.Record(l.Head + int64(i))
	}
	for i, e := range events {
		e.Offset = l.Head + int64(i)
		l.Apply(&e)
	}
	if l.Kind != tapedeck.KindSession && len(records) > 0 && now.After(l.Updated) {
		l.Updated = milliseconds(now)
	}
	l.add(records)
	l.Head += int64(len(records))
	return records
}

// accepted returns the newest accepted append of a producer, nil if there is none.
func (l *log) accepted(p *tapedeck.Producer) *store.ProducerState {
	if p == nil {
		return nil
	}
	last, ok := l.producers[p.ID]
	if !ok {
		return nil
	}
	return &last
}

func milliseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

func clone(p *tapedeck.Producer) *tapedeck.Producer {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
