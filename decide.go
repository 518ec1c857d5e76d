package tapedeck

import (
	"fmt"
	"strings"
	"time"
)

// What a store decides before it writes is the same for every store, and is
// decided here: pure functions of what the store has read. A store calls them
// in the transaction that writes.

// Accepted is the newest append of a producer that a session has accepted.
type Accepted struct {
	Epoch, Seq  int64
	First, Next int64 // its offsets, as in [Appended]
}

// CheckAppend reports what is wrong with an append whatever the session: [Invalid].
func CheckAppend(a *Append) error {
	if len(a.Events)+len(a.Chunks) == 0 && !a.Close {
		return Errorf(Invalid, "there is nothing to append")
	}
	if p := a.Producer; p != nil {
		switch {
		case p.ID == "":
			return Errorf(Invalid, "the producer has no id")
		case p.Epoch < 0 || p.Seq < 0:
			return Errorf(Invalid, "producer %q has a negative epoch or sequence", p.ID)
		}
	}
	return nil
}

// DecideAppend says what becomes of a valid append to session s: it is to be written
// (no error, not a duplicate), it is a duplicate, or it is refused. streamSeq is
// the newest [Append.StreamSeq] of the session; last is the newest append of the
// append's producer, nil if there is none. Check has not been called yet.
func DecideAppend(a *Append, s *Session, streamSeq string, last *Accepted) (Appended, error) {
	if err := takes(s.Kind, a.Events, a.Chunks); err != nil {
		return Appended{}, err
	}
	if s.Closed {
		return decideClosed(a, s, last)
	}
	if a.Producer != nil {
		if done, err := decideProducer(a, s, last); done.Duplicate || err != nil {
			return done, err
		}
	}
	if a.StreamSeq != "" && a.StreamSeq <= streamSeq {
		return Appended{}, refuse(s, RefusedSeq, Conflict,
			"the sequence %q is not above %q, the last one of session %q", a.StreamSeq, streamSeq, s.ID)
	}
	if a.Expect != nil && *a.Expect != s.Head {
		e := refuse(s, RefusedOffset, Conflict, "session %s is at offset %d, you expected %d", s.ID, s.Head, *a.Expect)
		e.Err.Hint = fmt.Sprintf("read from %d and try again", max(0, min(*a.Expect, s.Head)))
		return Appended{}, e
	}
	return Appended{}, nil
}

func decideClosed(a *Append, s *Session, last *Accepted) (Appended, error) {
	p := a.Producer
	switch {
	case p == nil && len(a.Events)+len(a.Chunks) == 0:
		return Appended{First: -1, Next: -1, Head: s.Head, Closed: true, Duplicate: true}, nil
	case p != nil && s.ClosedBy != nil && *p == *s.ClosedBy && last != nil:
		return duplicate(s, p, last), nil
	case p != nil && last != nil && p.Epoch < last.Epoch:
		return Appended{}, staleEpoch(s, p, last)
	}
	return Appended{}, refuse(s, RefusedClosed, Conflict, "session %q is closed", s.ID)
}

func decideProducer(a *Append, s *Session, last *Accepted) (Appended, error) {
	p := a.Producer
	if last == nil {
		last = &Accepted{Epoch: p.Epoch, Seq: -1}
	}
	switch {
	case p.Epoch < last.Epoch:
		return Appended{}, staleEpoch(s, p, last)
	case p.Epoch > last.Epoch && p.Seq != 0:
		return Appended{}, refuse(s, RefusedReset, Invalid,
			"producer %q begins epoch %d with sequence %d; a new epoch begins with 0", p.ID, p.Epoch, p.Seq)
	case p.Epoch > last.Epoch:
		return Appended{}, nil
	case p.Seq <= last.Seq:
		return duplicate(s, p, last), nil
	case p.Seq > last.Seq+1:
		e := refuse(s, RefusedGap, Conflict, "producer %q sent sequence %d, but %d comes next", p.ID, p.Seq, last.Seq+1)
		e.Seq = last.Seq + 1
		return Appended{}, e
	}
	return Appended{}, nil
}

// duplicate answers a repetition.
func duplicate(s *Session, p *Producer, last *Accepted) Appended {
	done := Appended{First: last.First, Next: last.Next, Head: s.Head, Closed: s.Closed, Duplicate: true, Seq: last.Seq}
	if p.Seq != last.Seq {
		done.First, done.Next = -1, -1
	}
	return done
}

func staleEpoch(s *Session, p *Producer, last *Accepted) error {
	e := refuse(s, RefusedEpoch, Forbidden,
		"producer %q has gone on to epoch %d; epoch %d may not write any more", p.ID, last.Epoch, p.Epoch)
	e.Epoch = last.Epoch
	return e
}

func refuse(s *Session, r Refusal, k Kind, format string, args ...any) *AppendError {
	return Refuse(r, s.Head, k, format, args...)
}

// takes reports whether a session of kind k takes these records.
func takes(k SessionKind, events []Event, chunks [][]byte) error {
	switch {
	case k != KindSession && len(events) > 0:
		return Errorf(Invalid, "a stream takes bytes, not events")
	case k == KindSession && len(chunks) > 0:
		return Errorf(Invalid, "a session takes events, not bytes")
	}
	return nil
}

// CheckSpec reports what is wrong with s whatever sessions there are: [Invalid].
// An empty kind becomes [KindSession].
func CheckSpec(s *Spec) error {
	if s.Kind == "" {
		s.Kind = KindSession
	}
	if err := checkSpecID(s); err != nil {
		return err
	}
	switch {
	case s.TTL < 0:
		return Errorf(Invalid, "the time to live is negative")
	case s.ForkAt != nil && (s.Parent == "" || *s.ForkAt < 0):
		return Errorf(Invalid, "a fork needs a parent and an offset from 0")
	}
	return takes(s.Kind, s.Events, s.Chunks)
}

// CreatedAt returns when the session of a spec was created: with its first event, which may
// have been elsewhere and long ago; without one, now.
func CreatedAt(s *Spec, now time.Time) time.Time {
	if len(s.Events) > 0 && !s.Events[0].Time.IsZero() {
		now = s.Events[0].Time
	}
	return now.UTC().Truncate(time.Millisecond)
}

func checkSpecID(s *Spec) error {
	switch s.Kind {
	case KindSession:
		return CheckID("the session's id", s.ID)
	case KindStream:
		return checkPrefixed(s.Kind, s.ID, StreamPrefix)
	case KindView:
		return checkPrefixed(s.Kind, s.ID, ViewPrefix)
	}
	return Errorf(Invalid, "there are no sessions of kind %q", s.Kind)
}

func checkPrefixed(kind SessionKind, id, prefix string) error {
	path, ok := strings.CutPrefix(id, prefix)
	if !ok {
		return Errorf(Invalid, "the id of %s %q does not begin with %q", kind, id, prefix)
	}
	return CheckPath(path)
}

// ForkPoint says whether s, which names a parent, may be a fork of it, and returns
// the offset at which it would be. gone tells that the parent was deleted.
func ForkPoint(s *Spec, parent *Session, gone bool) (at int64, err error) {
	at = parent.Head
	if s.ForkAt != nil {
		at = *s.ForkAt
	}
	switch {
	case gone:
		err = Errorf(Conflict, "session %q was deleted and cannot be forked", s.Parent)
	case parent.Kind != s.Kind:
		err = Errorf(Invalid, "%q is a %s and cannot be forked as a %s", s.Parent, parent.Kind, s.Kind)
	case s.ContentType != "" && MediaType(s.ContentType) != MediaType(parent.ContentType):
		err = Errorf(Conflict, "%q holds %s, not %s", s.Parent, parent.ContentType, s.ContentType)
	case at > parent.Head:
		err = Errorf(Invalid, "session %q is at offset %d and cannot be forked at %d", s.Parent, parent.Head, at)
	}
	return at, err
}

// MediaType returns what of a content type tells two streams apart: without
// parameters, in lower case.
func MediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}
