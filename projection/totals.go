package projection

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// A TotalsStore keeps the totals of sessions beside their entries. The stores implement
// it.
type TotalsStore interface {
	// SaveTotals replaces the totals of sessions, given with their id and Gen, in one commit. It leaves out those
	// that were deleted or recreated.
	SaveTotals(ctx context.Context, of []tapedeck.Session) error
}

const (
	openStep    = 1000 // events by which the totals of a session with an open run may be late
	totalsBatch = 100  // totals that one commit saves

	// totalsEvery is the least time between two rounds that save totals, so that
	// appends outside of runs do not cost a commit of totals each.
	totalsEvery = time.Second
)

// isStale reports whether the totals of a session are to be made again. While a run is
// open they change with every event, so they are made now and then.
func isStale(s *tapedeck.Session) bool {
	late := s.Head - s.Totals.At
	if s.Totals.Row != nil && !view.HasDays(s.Totals.Row) {
		return true // an older version made it
	}
	return late >= openStep || late != 0 && len(s.Runs) == 0
}

// updateTotals makes and saves the totals that are old, and reports whether there were
// some. The first failure of several is logged; after a failure the next call
// looks at all sessions.
func (p *Projections) updateTotals(ctx context.Context) bool {
	if p.options.Totals == nil {
		return false
	}
	w := &p.watch
	w.mu.Lock()
	ids, scan := slices.Sorted(maps.Keys(w.stale)), w.scanDue
	w.stale, w.scanDue = map[string]bool{}, false
	w.mu.Unlock()
	err := error(nil)
	if scan {
		ids, err = p.findStale(ctx)
	}
	for batch := range slices.Chunk(ids, totalsBatch) {
		if err == nil {
			err = p.saveTotals(ctx, batch)
		}
	}
	w.mu.Lock()
	failed := w.failing
	w.failing, w.scanDue = err != nil, w.scanDue || err != nil
	w.mu.Unlock()
	if err == nil {
		return len(ids) > 0
	}
	if ctx.Err() == nil && !failed {
		p.options.Logger.Warn("the totals of sessions could not be saved; lists are sorted by older ones", "error", err)
	}
	return true
}

// findStale returns the sessions whose totals are old: after a start, those that the last
// process did not get to.
func (p *Projections) findStale(ctx context.Context) (ids []string, err error) {
	for f := (tapedeck.Filter{Limit: 1000}); ; {
		page, err := p.store.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page.Sessions {
			if isStale(&page.Sessions[i]) {
				ids = append(ids, page.Sessions[i].ID)
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return ids, nil
		}
	}
}

// saveTotals makes and saves the totals of sessions.
func (p *Projections) saveTotals(ctx context.Context, ids []string) error {
	select {
	case p.totalling <- struct{}{}:
		defer func() { <-p.totalling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var out []tapedeck.Session
	for _, id := range ids {
		t, err := p.totals(ctx, id)
		switch kind := tapedeck.KindOf(err); {
		case err == nil:
			out = append(out, t)
		case kind == tapedeck.NotFound, kind == tapedeck.Gone, kind == tapedeck.Conflict: // it was deleted or recreated
		default:
			return err
		}
	}
	if len(out) == 0 {
		return nil
	}
	return p.options.Totals.SaveTotals(ctx, out)
}

// totals makes the totals of a session.
func (p *Projections) totals(ctx context.Context, id string) (tapedeck.Session, error) {
	entry, err := p.store.Head(ctx, id)
	if err != nil {
		return tapedeck.Session{}, err
	}
	s, err := p.Summary(ctx, id, -1)
	if err != nil {
		return tapedeck.Session{}, err
	}
	short := s.Short()
	row, err := json.Marshal(view.ListRow{SessionSummary: short, Days: s.Days})
	t := tapedeck.Totals{At: s.At, Tokens: short.Tokens, RecordingMS: short.RecordingMS, Failures: short.ToolsFailed, Row: row}
	if short.CostUSD != nil {
		t.CostMicros = micros(*short.CostUSD)
	}
	return tapedeck.Session{ID: id, Gen: entry.Gen, Totals: t}, err
}

// micros returns a cost in millionths of a dollar, within what the integers of JavaScript
// hold.
func micros(usd float64) int64 {
	const most = 1 << 53
	return int64(math.Round(min(max(usd*1e6, -most), most)))
}

// forgetTotals removes the totals of sessions, which have the words of messages, and has
// them made again. It waits for those that are being made, because these may have erased
// words.
func (p *Projections) forgetTotals(ctx context.Context, ids []string) error {
	if p.options.Totals == nil {
		return nil
	}
	select {
	case p.totalling <- struct{}{}:
		defer func() { <-p.totalling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var none []tapedeck.Session
	for _, id := range ids {
		s, err := p.store.Head(ctx, id)
		switch kind := tapedeck.KindOf(err); {
		case err == nil:
			none = append(none, tapedeck.Session{ID: id, Gen: s.Gen})
		case kind != tapedeck.NotFound && kind != tapedeck.Gone:
			return err
		}
	}
	if len(none) == 0 {
		return nil
	}
	if err := p.options.Totals.SaveTotals(ctx, none); err != nil {
		return err
	}
	w := &p.watch
	w.mu.Lock()
	for _, id := range ids {
		w.stale[id] = true
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}
