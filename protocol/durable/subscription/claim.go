package subscription

import (
	"context"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A claimed is a wake that a worker has claimed.
type claimed struct {
	Wake       string       `json:"wake_id"`
	Generation int64        `json:"generation"`
	Token      string       `json:"token"`
	Streams    []streamInfo `json:"streams"`
	Lease      int64        `json:"lease_ttl_ms"`
}

// claim gives the wake of a subscription to a worker. If something is pending and there is
// no wake yet, a new one begins.
func (d *Dispatcher) claim(ctx context.Context, id, worker string) (*claimed, error) {
	if worker == "" || !isText(worker, maxWorker) {
		return nil, invalid("the worker has no name, or one with more than %d bytes or a control character", maxWorker)
	}
	s, err := d.find(ctx, id)
	if err == nil && s.config.Type != typePullWake {
		err = invalid("a subscription of type webhook cannot be claimed")
	}
	if err == nil {
		err = d.drain(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s.claim(ctx, worker)
}

func (s *subscriber) claim(ctx context.Context, worker string) (*claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(s.d.options.Now())
	if w := s.state.Wake; w != nil && w.Holder != "" {
		f := failed(codeClaimed, "another worker has the wake")
		f.Holder, f.Generation = w.Holder, s.state.Generation
		return nil, f
	}
	streams, _, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if len(streams) == 0 {
		s.state.Wake = nil // the next event begins another one, and announces it
		return nil, failed(codeNoWork, "nothing is pending").hint("follow the wake stream")
	}
	next := s.state
	if next.Wake == nil {
		next.Generation++
		next.Wake = &wake{ID: tapedeck.NewID("w_")}
	}
	next.Wake = &wake{ID: next.Wake.ID, Sent: true, Holder: worker, Until: s.d.options.Now().Add(s.config.Lease)}
	next.Failures, next.Next, next.LastError = 0, time.Time{}, ""
	token, err := s.d.newToken(s.id, next.Wake, next.Generation)
	if err != nil {
		return nil, err
	}
	if err := s.save(ctx, &next, nil); err != nil {
		return nil, err
	}
	wakeUp(s.signal)
	return &claimed{next.Wake.ID, next.Generation, token, streams, s.config.Lease.Milliseconds()}, nil
}

// An ack says up to which offset a worker is done with a stream.
type ack struct {
	Stream string `json:"stream"`
	Path   string `json:"path"` // another name for it
	Offset string `json:"offset"`
}

// A report is what a worker says of its wake.
type report struct {
	Wake       string `json:"wake_id"`
	Generation int64  `json:"generation"`
	Acks       []ack  `json:"acks"`
	Done       bool   `json:"done"`
}

// report applies what a worker reports: it acknowledges, extends the lease, or ends the
// wake. It returns whether something is still pending after the end.
func (d *Dispatcher) report(ctx context.Context, id, kind, token string, r *report) (more bool, err error) {
	s, err := d.holding(ctx, id, kind, token, r)
	if err != nil {
		return false, err
	}
	if err := d.drain(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fence(token, r); err != nil {
		return false, err
	}
	acked := map[int64]int64{}
	for i := range r.Acks {
		if err := s.check(ctx, &r.Acks[i], acked); err != nil {
			return false, err
		}
	}
	apply, err := s.acknowledge(ctx, acked)
	if err != nil {
		return false, err
	}
	next := s.state
	next.Wake, next.Failures, next.Next, next.LastError = nil, 0, time.Time{}, ""
	if !r.Done {
		w := *s.state.Wake
		w.Until = d.options.Now().Add(s.config.Lease)
		w.Sent = true // a webhook that calls back has it
		next.Wake = &w
	}
	if err := s.save(ctx, &next, acked); err != nil {
		return false, err
	}
	apply()
	wakeUp(s.signal)
	return r.Done && len(s.pending) > 0, nil
}

// release ends the wake of a worker without acknowledging anything.
func (d *Dispatcher) release(ctx context.Context, id, token string, r *report) error {
	s, err := d.holding(ctx, id, typePullWake, token, r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fence(token, r); err != nil {
		return err
	}
	next := s.state
	next.Wake = nil
	if err := s.save(ctx, &next, nil); err != nil {
		return err
	}
	wakeUp(s.signal)
	return nil
}

// holding returns a subscription of a type whose token a worker has.
func (d *Dispatcher) holding(ctx context.Context, id, kind, token string, r *report) (*subscriber, error) {
	s, err := d.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.config.Type != kind {
		return nil, invalid("this is for subscriptions of type %s", kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.fence(token, r)
}

// fence refuses a worker whose wake has ended. Requires s.mu.
func (s *subscriber) fence(token string, r *report) error {
	c, err := s.d.checkToken(s.id, token)
	if err != nil {
		return err
	}
	if s.deleted {
		return errNoSubscription(s.id)
	}
	s.expire(s.d.options.Now())
	w := s.state.Wake
	if w == nil || c.Wake != w.ID || r.Wake != w.ID || c.Generation != s.state.Generation || r.Generation != s.state.Generation {
		return failed(codeFenced, "this wake has ended, and a later one may have begun").hint("stop working on it; what was not acknowledged is delivered again")
	}
	return nil
}

// check checks one acknowledgement and adds it to acked, by the Gen of the session.
// Requires s.mu.
func (s *subscriber) check(ctx context.Context, a *ack, acked map[int64]int64) error {
	path := a.Stream
	if path == "" {
		path = a.Path
	}
	wrong := func(why string) *failure {
		return failed(codeOffset, "the acknowledgement of %.200q at %.64q %s", path, a.Offset, why)
	}
	id, err := sessionOf(path)
	if err != nil || !s.explicit[path] && !s.matches(path) {
		return wrong("names a stream that the subscription does not watch")
	}
	gen, at, ok := parsePosition(a.Offset)
	if !ok {
		return wrong("has an offset that is not one of the stream").hint("send the tail_offset of the wake, or the Stream-Next-Offset of a read")
	}
	session, err := s.d.options.Log.Head(ctx, id)
	switch {
	case isGone(err):
		return wrong("names a stream that does not exist")
	case err != nil:
		return err
	case gen != 0 && gen != session.Gen:
		return wrong("is of another history of the stream: it was deleted and created again, or restored from a backup")
	}
	from, err := s.ackedOf(ctx, &session, acked)
	switch {
	case err != nil:
		return err
	case at < from:
		return wrong("is below what was acknowledged before")
	case at > session.Head:
		return wrong("is above the end of the stream")
	}
	acked[session.Gen] = at
	return nil
}

// ackedOf returns up to which offset a session is acknowledged.
func (s *subscriber) ackedOf(ctx context.Context, session *tapedeck.Session, acked map[int64]int64) (int64, error) {
	if at, ok := acked[session.Gen]; ok {
		return at, nil
	}
	if l := s.pending[session.Gen]; l != nil {
		return l.acked, nil
	}
	at, _, err := s.d.options.Store.Acked(ctx, s.id, session.Gen)
	return at, err
}
