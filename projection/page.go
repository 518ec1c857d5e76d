package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// maxPage is the largest number of messages in one answer.
const maxPage = 10_000

// page cuts a snapshot of c to what a query asks for.
func (p *Projections) page(ctx context.Context, f *folded, s *tapedeck.Session, c *view.Conversation, snapshot *view.Snapshot, q view.Query) error {
	loaded := view.Items{Messages: snapshot.Messages, Calls: snapshot.Calls, Runs: snapshot.Runs}
	g := collector{p: p, s: s, timeline: f.timeline, head: c, query: q, before: q.Before, limit: min(q.Limit, maxPage), left: snapshot.Earlier}
	if q.Limit <= 0 && q.Before <= 0 && !q.Runs {
		cut(snapshot, loaded, g.fit(loaded.Since(c.Complete(q.Thread))), snapshot.Earlier)
		return nil
	}
	if g.limit <= 0 {
		g.limit = view.Window
	}
	if g.before <= 0 || g.before > snapshot.At {
		g.before = snapshot.At
	}
	complete := c.Complete(q.Thread)
	if q.Runs {
		complete, g.left, loaded = c.RunsComplete(q.Thread), c.RunsSettledBefore(q.Thread), loaded.RunsOf(q.Thread)
	}
	g.items = loaded.Before(g.before)
	if complete > 0 && !g.full(complete) {
		if err := g.gather(ctx); err != nil {
			return err
		}
	}
	if q.Runs {
		kept := g.fit(g.items.NewestRuns(g.limit))
		cut(snapshot, view.Items{}, kept, g.left+len(g.items.Runs)-len(kept.Runs))
		return nil
	}
	cut(snapshot, g.items, g.fit(g.items.Newest(g.limit)), g.left)
	return nil
}

// cut sets the items of a snapshot to kept. Earlier is before, plus the messages of
// items that are not in kept.
func cut(s *view.Snapshot, items, kept view.Items, before int) {
	s.Earlier = before + max(0, len(items.Messages)-len(kept.Messages))
	s.Messages, s.Calls, s.Runs = kept.Messages, kept.Calls, kept.Runs
}

// A collector finds settled items, which a conversation does not have in memory. It
// folds the log again from one checkpoint to the next, backwards, until it has
// enough.
type collector struct {
	p        *Projections
	s        *tapedeck.Session
	timeline *view.Timeline
	head     *view.Conversation
	query    view.Query
	before   int64
	limit    int

	items view.Items // found so far
	from  int64      // those that began before this offset have no contents
	left  int        // messages, or runs, before them
}

func (g *collector) gather(ctx context.Context) error {
	at := g.head.Through() + 1
	for from, to := g.before, at; ; {
		c, err := g.p.nearest(ctx, g.s, g.timeline, from, at)
		if err != nil {
			return err
		}
		from = c.next()
		g.left = g.settledIn(c.Conversation)
		q := g.query
		q.Before = g.before
		c.Conversation.KeepFor(q, g.head)
		older := to < at // an older stretch is folded up to where the newer one begins
		err = g.p.walkTo(ctx, g.s, g.timeline, c, at, to, func(int64) bool { return older || c.Conversation.Settles(g.before, g.head) })
		if err != nil {
			return err
		}
		found, whole := c.Conversation.Settled()
		g.items, g.from = found.With(g.items), whole
		if from == 0 || g.full(from) {
			return nil // no item that began at or after from is missing
		}
		to, from = from, from-1
	}
}

// settledIn returns how many messages, or runs, have settled in c.
func (g *collector) settledIn(c *view.Conversation) int {
	if g.query.Runs {
		return c.RunsSettledBefore(g.query.Thread)
	}
	return c.SettledBefore(g.query.Thread, g.head)
}

// fit returns the newest items that the query has place for.
func (g *collector) fit(items view.Items) view.Items {
	switch {
	case g.query.Bytes <= 0:
		return items
	case g.query.Runs:
		return items.FitRuns(g.query.Bytes, g.from)
	}
	return items.Fit(g.query.Bytes, g.from)
}

// full reports whether the items that began at or after an offset are all that the query has
// place for.
func (g *collector) full(offset int64) bool {
	return g.from > 0 || g.since(offset) >= g.limit || g.query.Bytes > 0 && g.items.Since(offset).Size() >= g.query.Bytes
}

// since returns how many of the found messages, or runs, began at or after an
// offset.
func (g *collector) since(offset int64) int {
	n := 0
	for i := range g.items.Messages {
		if g.items.Messages[i].Offset >= offset && !g.query.Runs {
			n++
		}
	}
	for i := range g.items.Runs {
		if g.items.Runs[i].Offset >= offset && g.query.Runs {
			n++
		}
	}
	return n
}
