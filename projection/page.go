package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// maxPage is the most messages that are gathered for one answer.
const maxPage = 10_000

// page cuts a snapshot of c to what a query asks for.
func (p *Projections) page(ctx context.Context, f *folded, s *tapedeck.Session, c *view.Conversation, snapshot *view.Snapshot, q view.Query) error {
	hand := view.Items{Messages: snapshot.Messages, Calls: snapshot.Calls, Runs: snapshot.Runs}
	complete := c.Complete(q.Thread)
	if q.Limit <= 0 && q.Before <= 0 {
		cut(snapshot, hand, hand.Since(complete), snapshot.Earlier)
		return nil
	}
	limit, before := q.Limit, q.Before
	if limit <= 0 {
		limit = view.Window
	}
	limit = min(limit, maxPage)
	if before <= 0 || before > snapshot.At {
		before = snapshot.At
	}
	items, settled := hand.Before(before), snapshot.Earlier
	if complete > 0 && since(items.Messages, complete) < limit {
		g := gathering{p: p, s: s, timeline: f.timeline, head: c, query: q, before: before, limit: limit}
		if err := g.gather(ctx, items); err != nil {
			return err
		}
		items, settled = g.items, g.left
	}
	cut(snapshot, items, items.Newest(limit), settled)
	return nil
}

// cut leaves in a snapshot what is kept of items, before which there are others.
func cut(s *view.Snapshot, items, kept view.Items, before int) {
	s.Earlier = before + len(items.Messages) - len(kept.Messages)
	s.Messages, s.Calls, s.Runs = kept.Messages, kept.Calls, kept.Runs
}

// A gathering folds again what a conversation has not at hand any more: one
// stretch between checkpoints after the other, backwards, until there is enough.
type gathering struct {
	p        *Projections
	s        *tapedeck.Session
	timeline *view.Timeline
	head     *view.Conversation
	query    view.Query
	before   int64
	limit    int

	items view.Items // found so far
	left  int        // messages that are before them
}

func (g *gathering) gather(ctx context.Context, hand view.Items) error {
	g.items = hand
	at := g.head.Through() + 1
	for from, to := g.before, at; ; {
		c, err := g.p.nearest(ctx, g.s, g.timeline, from, at)
		if err != nil {
			return err
		}
		from = c.next()
		g.left = c.Conversation.SettledBefore(g.query.Thread, g.head)
		c.Conversation.Keep()
		last := to < at // the end of this stretch is the beginning of the one before
		err = g.p.walkTo(ctx, g.s, g.timeline, c, at, to, func(int64) bool { return last || c.Conversation.Settles(g.before, g.head) })
		if err != nil {
			return err
		}
		g.items = c.Conversation.Settled(g.query.Thread, g.head).Before(g.before).With(g.items)
		if from == 0 || since(g.items.Messages, from) >= g.limit {
			return nil // of those that began at or after from, none is missing
		}
		to, from = from, from-1
	}
}

// since returns how many messages began at or after an offset.
func since(messages []view.Message, offset int64) int {
	n := 0
	for i := range messages {
		if messages[i].Offset >= offset {
			n++
		}
	}
	return n
}
