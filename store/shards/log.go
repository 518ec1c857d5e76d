package shards

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// Append implements [tapedeck.Log].
func (s *Store) Append(ctx context.Context, a tapedeck.Append) (tapedeck.Appended, error) {
	return on(ctx, s, a.Session, func(sh *Shard) (tapedeck.Appended, error) { return sh.Store.Append(ctx, a) })
}

// Read implements [tapedeck.Log].
func (s *Store) Read(ctx context.Context, session string, r tapedeck.Range) (tapedeck.Page, error) {
	return on(ctx, s, session, func(sh *Shard) (tapedeck.Page, error) { return sh.Store.Read(ctx, session, r) })
}

// Head implements [tapedeck.Log].
func (s *Store) Head(ctx context.Context, session string) (tapedeck.Session, error) {
	return on(ctx, s, session, func(sh *Shard) (tapedeck.Session, error) { return sh.Store.Head(ctx, session) })
}

// Erase implements [tapedeck.Log].
func (s *Store) Erase(ctx context.Context, e tapedeck.Erasure) (tapedeck.Erased, error) {
	return on(ctx, s, e.Session, func(sh *Shard) (tapedeck.Erased, error) { return sh.Store.Erase(ctx, e) })
}

// Delete implements [tapedeck.Catalogue]. The pointer of a fork is removed later.
func (s *Store) Delete(ctx context.Context, session string) error {
	return s.do(ctx, session, func(sh *Shard) error { return sh.Store.Delete(ctx, session) })
}

// Touch implements [tapedeck.Catalogue].
func (s *Store) Touch(ctx context.Context, session string) error {
	return s.do(ctx, session, func(sh *Shard) error { return sh.Store.Touch(ctx, session) })
}

// do is on for a call without a result.
func (s *Store) do(ctx context.Context, id string, call func(sh *Shard) error) error {
	_, err := on(ctx, s, id, func(sh *Shard) (struct{}, error) { return struct{}{}, call(sh) })
	return err
}

// SaveTotals replaces the totals of sessions, given with their id and Gen. It leaves out
// sessions that were deleted meanwhile.
func (s *Store) SaveTotals(ctx context.Context, of []tapedeck.Session) error {
	parts := make([][]tapedeck.Session, len(s.shards))
	for i := range of {
		if s.holds(of[i].Gen) {
			at := shardOf(of[i].Gen)
			parts[at] = append(parts[at], of[i])
		}
	}
	return s.every(ctx, "", func(i int) error {
		if len(parts[i]) == 0 {
			return nil
		}
		return s.shards[i].Store.SaveTotals(ctx, parts[i])
	})
}
