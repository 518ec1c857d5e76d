package projection

import (
	"context"

	"github.com/tapedeck/tapedeck/view"
)

// ChannelPlace returns where the event with the number n of the form of the six channels is:
// the offset of the log at which to begin to read, and the number of the first event of the
// form that follows there, which is n. If there are fewer events, the place is the head, and
// the number that of the next event. It reads a thousand events or fewer.
func (p *Projections) ChannelPlace(ctx context.Context, session string, n int64) (offset, number int64, err error) {
	return p.channelPlace(ctx, session, func(counts view.ChannelCounts, _ int64) (int64, int64) { return counts.Find(n) },
		func(_, number int64) bool { return number == n })
}

// ChannelNumber returns how many events of the form of the six channels are before an offset
// of the log, at most its head.
func (p *Projections) ChannelNumber(ctx context.Context, session string, at int64) (number int64, err error) {
	_, number, err = p.channelPlace(ctx, session, func(counts view.ChannelCounts, head int64) (int64, int64) { return counts.Before(min(at, head)) },
		func(offset, _ int64) bool { return offset >= at })
	return number, err
}

// channelPlace counts from a place near what is searched until it is found, or to the head.
func (p *Projections) channelPlace(ctx context.Context, session string, near func(view.ChannelCounts, int64) (int64, int64), found func(offset, number int64) bool) (offset, number int64, err error) {
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
		if offset = e.Offset; found(offset, number) {
			return offset, number, p.same(ctx, &s)
		}
		if view.InChannels(&e) {
			number++
		}
	}
	return head, number, p.same(ctx, &s)
}
