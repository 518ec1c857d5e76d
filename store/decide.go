// Package store has the parts that all implementations of [tapedeck.Store] share. It
// decides whether an append, a new session or an erasure is valid, and computes its
// result. It also has the list of observers. The implementations are in the folders
// below, and storetest is the test suite that all of them pass.
package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// The Decide functions are pure functions of the state that a store has read. A
// store calls them in the transaction that writes.

// ProducerState is the newest append of a producer that a session has accepted.
type ProducerState struct {
	Epoch, Seq  int64
	First, Next int64 // its offsets, as in [tapedeck.Appended]
}

// CheckAppend returns an error, [tapedeck.Invalid], if an append is invalid for every
// session.
func CheckAppend(a *tapedeck.Append) error {
	if len(a.Events)+len(a.Chunks) == 0 && !a.Close {
		return tapedeck.Errorf(tapedeck.Invalid, "there is nothing to append")
	}
	if p := a.Producer; p != nil {
		switch {
		case p.ID == "":
			return tapedeck.Errorf(tapedeck.Invalid, "the producer has no id")
		case p.Epoch < 0 || p.Seq < 0:
			return tapedeck.Errorf(tapedeck.Invalid, "producer %q has a negative epoch or sequence", p.ID)
		}
	}
	return checkParts(a)
}

func checkParts(a *tapedeck.Append) error {
	if len(a.Parts) == 0 {
		return nil
	}
	left := len(a.Events)
	for _, n := range a.Parts {
		if n < 1 || n > left {
			left = -1
			break
		}
		left -= n
	}
	if left != 0 || len(a.Chunks) > 0 || a.Close {
		return tapedeck.Errorf(tapedeck.Invalid, "the parts of the append do not fit its %d events", len(a.Events))
	}
	return nil
}

// Accepted returns the state of the producer of an append that was written at the offsets
// from first up to, but without, next. The newest append is the last part.
func Accepted(a *tapedeck.Append, first, next int64) ProducerState {
	s := ProducerState{Epoch: a.Producer.Epoch, Seq: a.Producer.Seq, First: first, Next: next}
	if n := len(a.Parts); n > 0 {
		s.Seq += int64(n - 1)
		s.First = next - int64(a.Parts[n-1])
	}
	return s
}

// DecideAppend decides a valid append to session s: the store writes it (no error,
// not a duplicate), it is a duplicate, or it is refused. streamSeq is the newest
// [tapedeck.Append.StreamSeq] of the session; last is the newest append of the
// producer, nil if there is none. The store calls Check of the append afterwards.
func DecideAppend(a *tapedeck.Append, s *tapedeck.Session, streamSeq string, last *ProducerState) (tapedeck.Appended, error) {
	if err := takes(s.Kind, a.Events, a.Chunks); err != nil {
		return tapedeck.Appended{}, err
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
		return tapedeck.Appended{}, refuse(s, tapedeck.RefusedSeq, tapedeck.Conflict,
			"the sequence %q is not above %q, the last sequence of session %q", a.StreamSeq, streamSeq, s.ID)
	}
	return tapedeck.Appended{}, CheckExpected(s, a.Expect)
}

// CheckExpected returns the refusal of an append that expects another head than that of the
// session; nil expects none.
func CheckExpected(s *tapedeck.Session, expect *int64) error {
	if expect == nil || *expect == s.Head {
		return nil
	}
	e := refuse(s, tapedeck.RefusedOffset, tapedeck.Conflict, "session %s is at offset %d, you expected %d", s.ID, s.Head, *expect)
	e.Err.Hint = fmt.Sprintf("read from %d and try again", max(0, min(*expect, s.Head)))
	return e
}

func decideClosed(a *tapedeck.Append, s *tapedeck.Session, last *ProducerState) (tapedeck.Appended, error) {
	p := a.Producer
	switch {
	case p == nil && len(a.Events)+len(a.Chunks) == 0:
		return tapedeck.Appended{First: -1, Next: -1, Head: s.Head, Closed: true, Duplicate: true}, nil
	case p != nil && s.ClosedBy != nil && *p == *s.ClosedBy && last != nil:
		return duplicate(s, p, last), nil
	case p != nil && last != nil && p.Epoch < last.Epoch:
		return tapedeck.Appended{}, staleEpoch(s, p, last)
	}
	return tapedeck.Appended{}, refuse(s, tapedeck.RefusedClosed, tapedeck.Conflict, "session %q is closed", s.ID)
}

func decideProducer(a *tapedeck.Append, s *tapedeck.Session, last *ProducerState) (tapedeck.Appended, error) {
	p := a.Producer
	if last == nil {
		last = &ProducerState{Epoch: p.Epoch, Seq: -1}
	}
	switch {
	case p.Epoch < last.Epoch:
		return tapedeck.Appended{}, staleEpoch(s, p, last)
	case p.Epoch > last.Epoch && p.Seq != 0:
		return tapedeck.Appended{}, refuse(s, tapedeck.RefusedReset, tapedeck.Invalid,
			"producer %q begins epoch %d with sequence %d; a new epoch begins with 0", p.ID, p.Epoch, p.Seq)
	case p.Epoch > last.Epoch:
		return tapedeck.Appended{}, nil
	case p.Seq <= last.Seq:
		return duplicate(s, p, last), nil
	case p.Seq > last.Seq+1:
		e := refuse(s, tapedeck.RefusedGap, tapedeck.Conflict, "producer %q sent sequence %d, but %d comes next", p.ID, p.Seq, last.Seq+1)
		e.Seq = last.Seq + 1
		return tapedeck.Appended{}, e
	}
	return tapedeck.Appended{}, nil
}

// duplicate returns the answer to a repeated append.
func duplicate(s *tapedeck.Session, p *tapedeck.Producer, last *ProducerState) tapedeck.Appended {
	done := tapedeck.Appended{First: last.First, Next: last.Next, Head: s.Head, Closed: s.Closed, Duplicate: true, Seq: last.Seq}
	if p.Seq != last.Seq {
		done.First, done.Next = -1, -1
	}
	return done
}

func staleEpoch(s *tapedeck.Session, p *tapedeck.Producer, last *ProducerState) error {
	e := refuse(s, tapedeck.RefusedEpoch, tapedeck.Forbidden,
		"producer %q is in epoch %d; epoch %d may not write any more", p.ID, last.Epoch, p.Epoch)
	e.Epoch = last.Epoch
	return e
}

func refuse(s *tapedeck.Session, r tapedeck.Refusal, k tapedeck.Kind, format string, args ...any) *tapedeck.AppendError {
	return Refuse(r, s.Head, k, format, args...)
}

// takes returns an error if a session of kind k cannot have these records.
func takes(k tapedeck.SessionKind, events []tapedeck.Event, chunks [][]byte) error {
	switch {
	case k != tapedeck.KindSession && len(events) > 0:
		return tapedeck.Errorf(tapedeck.Invalid, "a stream takes bytes, not events")
	case k == tapedeck.KindSession && len(chunks) > 0:
		return tapedeck.Errorf(tapedeck.Invalid, "a session takes events, not bytes")
	}
	return nil
}

// CheckSpec returns an error, [tapedeck.Invalid], if s is invalid whatever sessions
// exist. It replaces an empty kind by [tapedeck.KindSession].
func CheckSpec(s *tapedeck.Spec) error {
	if s.Kind == "" {
		s.Kind = tapedeck.KindSession
	}
	if err := checkSpecID(s); err != nil {
		return err
	}
	switch {
	case s.TTL < 0:
		return tapedeck.Errorf(tapedeck.Invalid, "the time to live is negative")
	case s.ForkAt != nil && (s.Parent == "" || *s.ForkAt < 0):
		return tapedeck.Errorf(tapedeck.Invalid, "a fork needs a parent and an offset from 0")
	}
	return takes(s.Kind, s.Events, s.Chunks)
}

// CreatedAt returns the time of creation of the session of a spec: the time of its
// first event, which may be long ago in another store, or now without one.
func CreatedAt(s *tapedeck.Spec, now time.Time) time.Time {
	if len(s.Events) > 0 && !s.Events[0].Time.IsZero() {
		now = s.Events[0].Time
	}
	return now.UTC().Truncate(time.Millisecond)
}

func checkSpecID(s *tapedeck.Spec) error {
	switch s.Kind {
	case tapedeck.KindSession:
		return tapedeck.CheckID("the session's id", s.ID)
	case tapedeck.KindStream:
		return checkPrefixed(s.Kind, s.ID, tapedeck.StreamPrefix)
	case tapedeck.KindView:
		return checkPrefixed(s.Kind, s.ID, tapedeck.ViewPrefix)
	case KindPointer:
		if id, ok := strings.CutPrefix(s.ID, PointerPrefix); !ok || id == "" { // the id was checked with its session
			return tapedeck.Errorf(tapedeck.Invalid, "the id %.100q points to no session", s.ID)
		}
		return nil
	}
	return tapedeck.Errorf(tapedeck.Invalid, "there are no sessions of kind %q", s.Kind)
}

func checkPrefixed(kind tapedeck.SessionKind, id, prefix string) error {
	path, ok := strings.CutPrefix(id, prefix)
	if !ok {
		return tapedeck.Errorf(tapedeck.Invalid, "the id of %s %q does not begin with %q", kind, id, prefix)
	}
	return tapedeck.CheckPath(path)
}

// ForkPoint returns the offset at which s forks its parent, or an error if it cannot.
// deleted says that the parent was deleted.
func ForkPoint(s *tapedeck.Spec, parent *tapedeck.Session, deleted bool) (at int64, err error) {
	at = parent.Head
	if s.ForkAt != nil {
		at = *s.ForkAt
	}
	switch {
	case deleted:
		err = tapedeck.Errorf(tapedeck.Conflict, "session %q was deleted and cannot be forked", s.Parent)
	case parent.Kind != s.Kind:
		err = tapedeck.Errorf(tapedeck.Invalid, "%q is a %s and cannot be forked as a %s", s.Parent, parent.Kind, s.Kind)
	case s.ContentType != "" && MediaType(s.ContentType) != MediaType(parent.ContentType):
		err = tapedeck.Errorf(tapedeck.Conflict, "%q holds %s, not %s", s.Parent, parent.ContentType, s.ContentType)
	case at > parent.Head:
		err = tapedeck.Errorf(tapedeck.Invalid, "session %q is at offset %d and cannot be forked at %d", s.Parent, parent.Head, at)
	}
	return at, err
}

// HasLabels reports whether a session has the labels that a filter asks for, and none of
// those that it excludes.
func HasLabels(s *tapedeck.Session, f *tapedeck.Filter) bool {
	for name, value := range f.Labels {
		if v, ok := s.Labels[name]; !ok || v != value {
			return false
		}
	}
	for _, name := range f.Without {
		if _, ok := s.Labels[name]; ok {
			return false
		}
	}
	return true
}

// MediaType returns a content type without its parameters and in lower case. Streams
// whose content types differ only in those are compatible.
func MediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// Refuse returns the error of an append that a session with the given head refuses
// for reason r.
func Refuse(r tapedeck.Refusal, head int64, k tapedeck.Kind, format string, args ...any) *tapedeck.AppendError {
	return &tapedeck.AppendError{Refusal: r, Head: head, Err: &tapedeck.Error{Kind: k, Message: fmt.Sprintf(format, args...)}}
}
