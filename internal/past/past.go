// Package past has what a session was at an offset.
package past

import (
	"context"
	"time"

	"github.com/tapedeck/tapedeck"
)

// Entry returns the entry of a session as it was at an offset, from its entry now: a fold of its
// events before the offset. If the own events of a fork begin later, it has the title and the
// labels of its parent there. Open runs are left out, because they go on after the offset.
func Entry(ctx context.Context, l tapedeck.Log, s *tapedeck.Session, at int64) (tapedeck.Session, error) {
	then := tapedeck.Session{
		ID: s.ID, Kind: s.Kind, Gen: s.Gen, Created: s.Created, Updated: s.Created,
		Status: tapedeck.StatusIdle, Head: min(at, s.Head),
		Parent: s.Parent, ForkedAt: s.ForkedAt, Copy: s.Copy, ContentType: s.ContentType,
	}
	from := s.ForkedAt
	if at <= from {
		from = 0
	}
	for e, err := range tapedeck.Events(ctx, l, s.ID, from) {
		if err != nil {
			return tapedeck.Session{}, err
		}
		if e.Offset >= at {
			break
		}
		then.Apply(&e)
	}
	then.Runs, then.Inputs, then.Waiting = nil, nil, nil
	if then.Spent != nil {
		spent := *then.Spent
		then.Spent, spent.Since = &spent, time.Time{}
	}
	if at <= s.ForkedAt {
		then.Spent, then.Budget = nil, nil // those are of the parent
	}
	return then, nil
}
