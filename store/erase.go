package store

import (
	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// CheckErasure returns an error, [tapedeck.Invalid], if an erasure is invalid for
// every session.
func CheckErasure(e *tapedeck.Erasure) error {
	end := int64(0)
	for _, r := range e.Ranges {
		switch {
		case r.From < 0 || r.To <= r.From:
			return tapedeck.Errorf(tapedeck.Invalid, "the range from %d to %d has no events in it", r.From, r.To).
				WithHint("the event at from is in the range and the one at to is not, so to must be higher")
		case r.From < end:
			return tapedeck.Errorf(tapedeck.Invalid, "the range from %d to %d overlaps or precedes the range before it", r.From, r.To)
		}
		end = r.To
	}
	if len(e.Ranges) == 0 || len(e.Events) == 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "there is nothing to erase")
	}
	return nil
}

// DecideErasure returns an error if session s refuses a valid erasure. The store calls
// Check of the erasure afterwards.
func DecideErasure(e *tapedeck.Erasure, s *tapedeck.Session) error {
	first, last := e.Ranges[0].From, e.Ranges[len(e.Ranges)-1].To
	switch {
	case s.Kind != tapedeck.KindSession:
		return tapedeck.Errorf(tapedeck.NotFound, "there is no session %q", s.ID)
	case last > s.Head:
		return tapedeck.Errorf(tapedeck.Invalid, "session %q has %d events; it has none at offset %d", s.ID, s.Head, last-1)
	case first < s.ForkedAt:
		return tapedeck.Errorf(tapedeck.Invalid, "session %q shares the events below offset %d with session %q, which stores them", s.ID, s.ForkedAt, s.Parent).
			WithHint("erase them in session %s; if that was deleted, they are removed with the last of its forks", s.Parent)
	}
	return nil
}

// ErasesAll reports whether an erasure that session s does not refuse erases all that the
// session has of its own. Then the session also loses its push notification configs: they
// have secrets of clients.
func ErasesAll(e *tapedeck.Erasure, s *tapedeck.Session) bool {
	return len(e.Ranges) == 1 && e.Ranges[0].From <= s.ForkedAt && e.Ranges[0].To >= s.Head
}

// EraseRecord returns the record of a session without its payload. Its data becomes
// {"erased":true} with the members that keep the log consistent: well-formed ids
// (of messages, calls, runs and others), roles, how a run ended, the target of a
// jump, and the owner and agent of the session. Other required members are empty. A
// name that is not a well-formed id is replaced by an id computed from its digest.
// Receipts and erased records do not change.
func EraseRecord(r tapedeck.Record) (tapedeck.Record, error) {
	e, err := r.Event()
	if err != nil || e.Type == tapedeck.SessionRedacted {
		return r, err
	}
	e.Data = payload.Blank(&e)
	b, err := e.MarshalJSON()
	return tapedeck.Record{Offset: r.Offset, Data: b}, err
}
