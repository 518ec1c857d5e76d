package subscription

import (
	"context"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/webhook"
)

// maxInWake is how many streams one wake tells of. The others are in the next one.
const maxInWake = 1000

// A streamInfo is a stream or session as a worker sees it.
type streamInfo struct {
	Path    string    `json:"path"`
	Type    string    `json:"link_type"`
	Acked   string    `json:"acked_offset"`
	Tail    string    `json:"tail_offset"`
	Pending bool      `json:"has_pending"`
	Events  []trigger `json:"events,omitempty"` // with a filter: the events that it has selected
}

// run delivers wakes until ctx ends.
func (s *subscriber) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.signal:
		case <-timer.C:
		}
		timer.Stop()
		again := s.step(ctx)
		for again == atOnce && ctx.Err() == nil {
			again = s.step(ctx)
		}
		if again > 0 {
			timer.Reset(again)
		}
	}
}

// atOnce is the result of step if there may be more to do now.
const atOnce time.Duration = -1

// step does what is due. It returns after which time there is more to do, 0 if only after
// a signal.
func (s *subscriber) step(ctx context.Context) (again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.d.options.Now()
	s.expire(now)
	w := s.state.Wake
	switch {
	case s.deleted:
		return 0
	case w != nil && w.Sent && w.Until.IsZero(): // it waits for a worker
		return 0
	case w != nil && w.Sent:
		return w.Until.Sub(now) // above 0, or expire would have ended the wake
	case len(s.pending) == 0:
		s.state.Wake = nil // what it was about was deleted
		return 0
	case now.Before(s.state.Next):
		return s.state.Next.Sub(now)
	}
	streams, tails, err := s.snapshot(ctx)
	if err == nil && len(streams) == 0 {
		return 0
	}
	if err == nil {
		err = s.beginWake(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			s.d.options.Logger.Warn("a wake could not begin; trying again", "subscription", s.id, "error", err)
		}
		return retryPause
	}
	if s.config.Type == typeWebhook {
		s.deliver(ctx, streams, tails)
	} else {
		s.announce(ctx, streams[0].Path)
	}
	return atOnce
}

// beginWake begins a wake, or another attempt to deliver the one there is. Requires s.mu.
func (s *subscriber) beginWake(ctx context.Context) error {
	if s.state.Wake != nil {
		w := *s.state.Wake
		s.state.Wake = &w
		s.lease(&w)
		return nil
	}
	next := s.state
	next.Generation++
	next.Wake = &wake{ID: tapedeck.NewID("w_")}
	s.lease(next.Wake)
	return s.save(ctx, &next, nil)
}

// lease starts the lease of a webhook. That of a worker begins when it claims.
func (s *subscriber) lease(w *wake) {
	if s.config.Type == typeWebhook {
		w.Until = s.d.options.Now().Add(s.config.Lease)
	}
}

// snapshot returns the streams with something pending, and by their Gen the offsets to
// which they are acknowledged when the wake is done. Without streams nothing is pending.
// Requires s.mu.
func (s *subscriber) snapshot(ctx context.Context) (streams []streamInfo, tails map[int64]int64, err error) {
	for err == nil && len(streams) == 0 && len(s.pending) > 0 {
		streams, tails, err = s.collect(ctx) // if it finds nothing, it has removed or moved links
	}
	return streams, tails, err
}

func (s *subscriber) collect(ctx context.Context) ([]streamInfo, map[int64]int64, error) {
	links := s.links()
	streams := make([]streamInfo, 0, min(len(links), maxInWake))
	tails := map[int64]int64{}
	for _, l := range links[:min(len(links), maxInWake)] {
		if exists, err := s.exists(ctx, l); err != nil {
			return nil, nil, err
		} else if !exists {
			delete(s.pending, l.gen)
			continue
		}
		info := streamInfo{Path: l.path, Type: s.linkType(l.path), Acked: positionOf(l.gen, l.acked), Pending: true}
		tail := l.head
		if s.filter != nil {
			found, end, err := s.triggers(ctx, l)
			if err != nil {
				return nil, nil, err
			}
			if len(found) == 0 {
				continue
			}
			info.Events, tail = found, end
		}
		info.Tail, tails[l.gen] = positionOf(l.gen, tail), tail
		streams = append(streams, info)
	}
	return streams, tails, nil
}

// exists reports whether the session of a link exists. It may have expired, and the
// notice of that comes later.
func (s *subscriber) exists(ctx context.Context, l *link) (bool, error) {
	session, err := s.d.options.Log.Head(ctx, l.session)
	if isGone(err) {
		return false, nil
	}
	return session.Gen == l.gen, err
}

// triggers returns the triggers of a link for the next wake, and the offset up to which
// it tells of them. It removes a link without triggers.
func (s *subscriber) triggers(ctx context.Context, l *link) ([]trigger, int64, error) {
	end := min(l.head, l.hit+maxScanned)
	found, end, err := s.filter.find(ctx, s.d.options.Log, l.session, l.gen, l.hit, end, maxTriggers)
	if isGone(err) {
		delete(s.pending, l.gen)
		return nil, end, nil
	}
	if err == nil && len(found) == 0 { // erased since
		err = s.search(ctx, l, end)
	}
	return found, end, err
}

func (s *subscriber) linkType(path string) string {
	if s.explicit[path] {
		return "explicit"
	}
	return "glob"
}

// announce writes the message of a wake to the wake stream. Requires s.mu, which it
// releases meanwhile.
func (s *subscriber) announce(ctx context.Context, path string) {
	wake := *s.state.Wake
	message := encodeAnnouncement(s.id, path, s.state.Generation, s.d.options.Now())
	s.mu.Unlock()
	_, err := s.d.options.Log.Append(ctx, tapedeck.Append{
		Session: tapedeck.StreamPrefix + s.config.WakeStream, Chunks: [][]byte{message}, Check: checkWakeStream,
	})
	s.mu.Lock()
	if s.overtaken(ctx, wake.ID) {
		return
	}
	if err != nil {
		s.failed(ctx, "the wake stream cannot be written: "+webhook.Reason(err))
		return
	}
	s.succeeded(ctx)
}

func checkWakeStream(s *tapedeck.Session) error {
	if !isJSON(s.ContentType) {
		return tapedeck.Errorf(tapedeck.Invalid, "it has the content type %s, not application/json", s.ContentType)
	}
	return nil
}

// overtaken reports whether a wake ended while it was delivered.
func (s *subscriber) overtaken(ctx context.Context, wake string) bool {
	return ctx.Err() != nil || s.deleted || s.state.Wake == nil || s.state.Wake.ID != wake
}

// succeeded notes that a wake was delivered.
func (s *subscriber) succeeded(ctx context.Context) {
	next := s.state
	w := *next.Wake
	w.Sent = true
	next.Wake, next.Failures, next.Next, next.LastError = &w, 0, time.Time{}, ""
	if err := s.save(ctx, &next, nil); err != nil {
		s.state = next // the store has the wake; after a crash it is delivered again
	}
}

// failed notes that a wake could not be delivered, and when to try again.
func (s *subscriber) failed(ctx context.Context, why string) {
	next := s.state
	w := *next.Wake
	if w.Holder != "" { // a worker has claimed it without being told
		return
	}
	w.Until = time.Time{}
	next.Wake = &w
	next.Failures++
	next.LastError = why
	next.Next = s.d.options.Now().Add(webhook.Backoff(next.Failures))
	s.d.options.Logger.Debug("a wake could not be delivered", "subscription", s.id, "attempt", next.Failures, "reason", why)
	if err := s.save(ctx, &next, nil); err != nil {
		s.state = next
	}
}
