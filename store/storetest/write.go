package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

// A writing is an append and its expected result.
type writing struct {
	tapedeck.Append
	texts []string
	want  *tapedeck.Appended    // the answer; nil for that of an accepted append
	kind  tapedeck.Kind         // if not "", it fails with this kind
	ref   *tapedeck.AppendError // if not nil, it is refused with this error
	err   error                 // if not nil, it fails with exactly this error
}

// An option changes a writing.
type option struct {
	name string
	set  func(w *world, a *writing)
}

// write appends n records, which must be accepted at the head unless an option says
// otherwise.
func write(session string, n int, opts ...option) step {
	say := []string{fmt.Sprintf("append %d to %s", n, session)}
	for _, o := range opts {
		if o.name != "" {
			say = append(say, o.name)
		}
	}
	return step{strings.Join(say, ", "), func(w *world) error {
		a := &writing{Append: tapedeck.Append{Session: session}, texts: w.texts(n)}
		a.Events, a.Chunks = contents(session, a.texts)
		for _, o := range opts {
			o.set(w, a)
		}
		before := slices.Clone(a.Events)
		got, err := w.Append(w.ctx, a.Append)
		if d := cmp.Diff(before, a.Events); d != "" {
			return fmt.Errorf("it has changed the caller's events: (-before +after)\n%s", d)
		}
		return a.judge(w.session(session), got, err)
	}}
}

// judge compares the result of an append with the expected one, and notes the change.
func (a *writing) judge(s *expected, got tapedeck.Appended, err error) error {
	head := int64(len(s.texts))
	switch {
	case a.err != nil:
		if err != a.err {
			return fmt.Errorf("got %v, want %v as it is", err, a.err)
		}
		return nil
	case a.ref != nil:
		return a.judgeRefusal(head, err)
	case a.kind != "":
		return isKind(err, a.kind)
	case err != nil:
		return fmt.Errorf("it failed: %w", err)
	}
	want := a.want
	if want == nil {
		s.texts = append(s.texts, a.texts...)
		s.closed = s.closed || a.Close
		want = &tapedeck.Appended{First: head, Next: int64(len(s.texts))}
		if a.Producer != nil {
			want.Seq = a.Producer.Seq
		}
	}
	want.Head, want.Closed = int64(len(s.texts)), s.closed
	if d := cmp.Diff(*want, got); d != "" {
		return fmt.Errorf("(-want +got)\n%s", d)
	}
	return nil
}

func (a *writing) judgeRefusal(head int64, err error) error {
	var got *tapedeck.AppendError
	if !errors.As(err, &got) {
		return fmt.Errorf("got %v, want a refusal (%s)", err, a.ref.Refusal)
	}
	a.ref.Head = head
	a.ref.Err = got.Err
	if d := cmp.Diff(a.ref, got); d != "" {
		return fmt.Errorf("refused with %v (-want +got)\n%s", err, d)
	}
	return isKind(err, a.kind)
}

// by sets the producer.
func by(id string, epoch, seq int64) option {
	return option{fmt.Sprintf("as %s %d/%d", id, epoch, seq), func(_ *world, a *writing) {
		a.Producer = &tapedeck.Producer{ID: id, Epoch: epoch, Seq: seq}
	}}
}

// closing makes the append close the session.
func closing() option {
	return option{"closing it", func(_ *world, a *writing) { a.Close = true }}
}

// expecting sets the offset at which the head must be.
func expecting(head int64) option {
	return option{fmt.Sprintf("expecting %d", head), func(_ *world, a *writing) { a.Expect = &head }}
}

// sequence sets the stream sequence.
func sequence(s string) option {
	return option{fmt.Sprintf("with sequence %q", s), func(_ *world, a *writing) { a.StreamSeq = s }}
}

// checking sets the check.
func checking(say string, check func(*tapedeck.Session) error) option {
	return option{say, func(_ *world, a *writing) { a.Check = check }}
}

// duplicate expects the answer to a duplicate.
func duplicate(first, next, seq int64) option {
	return option{fmt.Sprintf("which is a duplicate of [%d,%d)", first, next), func(_ *world, a *writing) {
		a.want = &tapedeck.Appended{First: first, Next: next, Seq: seq, Duplicate: true}
	}}
}

// refused expects a refusal.
func refused(r tapedeck.Refusal, k tapedeck.Kind) option {
	return option{"which is refused: " + string(r), func(_ *world, a *writing) {
		a.ref, a.kind = &tapedeck.AppendError{Refusal: r}, k
	}}
}

// staleEpoch expects the refusal of an old epoch, which names the current one.
func staleEpoch(now int64) option {
	return option{"which is refused: stale epoch", func(_ *world, a *writing) {
		a.ref, a.kind = &tapedeck.AppendError{Refusal: tapedeck.RefusedEpoch, Epoch: now}, tapedeck.Forbidden
	}}
}

// gap expects the refusal of a sequence number that is too high, which names the next
// one.
func gap(due int64) option {
	return option{"which is refused: gap", func(_ *world, a *writing) {
		a.ref, a.kind = &tapedeck.AppendError{Refusal: tapedeck.RefusedGap, Seq: due}, tapedeck.Conflict
	}}
}

// fails expects an error that is not a refusal.
func fails(k tapedeck.Kind) option {
	return option{"which fails: " + string(k), func(_ *world, a *writing) { a.kind = k }}
}
