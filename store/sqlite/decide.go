package sqlite

import (
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// checkAppend reports what is wrong with an append whatever the session.
func checkAppend(a *tapedeck.Append) error {
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
	return nil
}

// checkKind reports whether a session of kind k takes these records.
func checkKind(k tapedeck.SessionKind, events []tapedeck.Event, chunks [][]byte) error {
	switch {
	case k == tapedeck.KindStream && len(events) > 0:
		return tapedeck.Errorf(tapedeck.Invalid, "a stream takes bytes, not events")
	case k == tapedeck.KindSession && len(chunks) > 0:
		return tapedeck.Errorf(tapedeck.Invalid, "a session takes events, not bytes")
	}
	return nil
}

// decide returns why a is refused, or the answer to a duplicate. The order of
// the questions is that of the refusals. What is known of the append's producer
// must have been recalled.
func (st *state) decide(a *tapedeck.Append) (tapedeck.Appended, error) {
	if st.Closed {
		return st.decideClosed(a)
	}
	if a.Producer != nil {
		if done, err := st.decideProducer(*a.Producer); done.Duplicate || err != nil {
			return done, err
		}
	}
	if a.StreamSeq != "" && a.StreamSeq <= st.streamSeq {
		return tapedeck.Appended{}, st.refuse(tapedeck.RefusedSeq, tapedeck.Conflict,
			"the sequence %q is not above %q, the last one of session %q", a.StreamSeq, st.streamSeq, st.ID)
	}
	if a.Expect != nil && *a.Expect != st.Head {
		e := st.refuse(tapedeck.RefusedOffset, tapedeck.Conflict,
			"session %s is at offset %d, you expected %d", st.ID, st.Head, *a.Expect)
		e.Err.Hint = fmt.Sprintf("read from %d and try again", max(0, min(*a.Expect, st.Head)))
		return tapedeck.Appended{}, e
	}
	return tapedeck.Appended{}, nil
}

func (st *state) decideClosed(a *tapedeck.Append) (tapedeck.Appended, error) {
	p := a.Producer
	switch {
	case p == nil && len(a.Events)+len(a.Chunks) == 0:
		return tapedeck.Appended{First: -1, Next: -1, Head: st.Head, Closed: true, Duplicate: true}, nil
	case p != nil && st.ClosedBy != nil && *p == *st.ClosedBy:
		return st.duplicate(*p), nil
	case p != nil && p.Epoch < st.producers[p.ID].epoch:
		return tapedeck.Appended{}, st.staleEpoch(*p)
	}
	return tapedeck.Appended{}, st.refuse(tapedeck.RefusedClosed, tapedeck.Conflict, "session %q is closed", st.ID)
}

func (st *state) decideProducer(p tapedeck.Producer) (tapedeck.Appended, error) {
	last, known := st.producers[p.ID]
	if !known {
		last = accepted{epoch: p.Epoch, seq: -1}
	}
	switch {
	case p.Epoch < last.epoch:
		return tapedeck.Appended{}, st.staleEpoch(p)
	case p.Epoch > last.epoch && p.Seq != 0:
		return tapedeck.Appended{}, st.refuse(tapedeck.RefusedReset, tapedeck.Invalid,
			"producer %q begins epoch %d with sequence %d; a new epoch begins with 0", p.ID, p.Epoch, p.Seq)
	case p.Epoch > last.epoch:
		return tapedeck.Appended{}, nil
	case p.Seq <= last.seq:
		return st.duplicate(p), nil
	case p.Seq > last.seq+1:
		e := st.refuse(tapedeck.RefusedGap, tapedeck.Conflict,
			"producer %q sent sequence %d, but %d comes next", p.ID, p.Seq, last.seq+1)
		e.Seq = last.seq + 1
		return tapedeck.Appended{}, e
	}
	return tapedeck.Appended{}, nil
}

// duplicate answers a repetition by a known producer.
func (st *state) duplicate(p tapedeck.Producer) tapedeck.Appended {
	last := st.producers[p.ID]
	done := tapedeck.Appended{
		First: last.first, Next: last.next, Head: st.Head, Closed: st.Closed, Duplicate: true, Seq: last.seq,
	}
	if p.Seq != last.seq {
		done.First, done.Next = -1, -1
	}
	return done
}

func (st *state) staleEpoch(p tapedeck.Producer) error {
	e := st.refuse(tapedeck.RefusedEpoch, tapedeck.Forbidden,
		"producer %q has gone on to epoch %d; epoch %d may not write any more", p.ID, st.producers[p.ID].epoch, p.Epoch)
	e.Epoch = st.producers[p.ID].epoch
	return e
}

func (st *state) refuse(r tapedeck.Refusal, k tapedeck.Kind, format string, args ...any) *tapedeck.AppendError {
	return tapedeck.Refuse(r, st.Head, k, format, args...)
}

// checkSpec reports what is wrong with s whatever sessions there are.
func checkSpec(s *tapedeck.Spec) error {
	var err error
	switch s.Kind {
	case tapedeck.KindSession:
		err = tapedeck.CheckID("the session's id", s.ID)
	case tapedeck.KindStream:
		path, ok := strings.CutPrefix(s.ID, tapedeck.StreamPrefix)
		if !ok {
			return tapedeck.Errorf(tapedeck.Invalid, "the id of stream %q does not begin with %q", s.ID, tapedeck.StreamPrefix)
		}
		err = tapedeck.CheckPath(path)
	default:
		err = tapedeck.Errorf(tapedeck.Invalid, "there are no sessions of kind %q", s.Kind)
	}
	switch {
	case err != nil:
		return err
	case s.TTL < 0:
		return tapedeck.Errorf(tapedeck.Invalid, "the time to live is negative")
	case s.ForkAt != nil && (s.Parent == "" || *s.ForkAt < 0):
		return tapedeck.Errorf(tapedeck.Invalid, "a fork needs a parent and an offset from 0")
	}
	return checkKind(s.Kind, s.Events, s.Chunks)
}

// mediaType returns what of a content type two streams must have in common.
func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}
