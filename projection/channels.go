package projection

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// ChannelPlace returns the offset in the log of the event with the number n in the form of the
// six channels, and n. If there are n such events or fewer, it returns the head, and how many
// there are. It reads a thousand events or fewer.
func (p *Projections) ChannelPlace(ctx context.Context, session string, n int64) (offset, number int64, err error) {
	return p.channelPlace(ctx, session, func(counts view.ChannelCounts, _ int64) (int64, int64) { return counts.Find(n) },
		func(e *tapedeck.Event, number int64) bool { return number == n && view.InChannels(e) })
}

// ChannelNumber returns how many events of the form of the six channels are before an offset
// of the log, at most its head.
func (p *Projections) ChannelNumber(ctx context.Context, session string, at int64) (number int64, err error) {
	_, number, err = p.channelPlace(ctx, session, func(counts view.ChannelCounts, head int64) (int64, int64) { return counts.Before(min(at, head)) },
		func(e *tapedeck.Event, _ int64) bool { return e.Offset >= at })
	return number, err
}

// channelPlace counts from a place near what is searched until it is found, or to the head.
func (p *Projections) channelPlace(ctx context.Context, session string, near func(view.ChannelCounts, int64) (int64, int64), found func(e *tapedeck.Event, number int64) bool) (offset, number int64, err error) {
	s, head, err := p.session(ctx, session, -1)
	if err != nil {
		return 0, 0, err
	}
	f, err := p.acquire(ctx, &s)
	if err != nil {
		return 0, 0, err
	}
	defer p.release(f)
	x, err := p.foldIndex(ctx, f, &s, head)
	if err != nil {
		return 0, 0, err
	}
	offset, number = near(x.counts(), head)
	for e, err := range p.raw(ctx, &s, offset, head) {
		if err != nil {
			return 0, 0, err
		}
		if offset = e.Offset; found(&e, number) {
			return offset, number, p.same(ctx, &s)
		}
		if view.InChannels(&e) {
			number++
		}
	}
	return head, number, p.same(ctx, &s)
}
