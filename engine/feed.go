package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
)

// A feeder knows the sessions in which an input may be able to run. The observer of the
// store adds them, because a thread becomes free in many ways: its run ends, is
// cancelled, loses its lease, or its program ends it.
type feeder struct {
	wake chan struct{} // has an element when there is work

	mu      sync.Mutex
	changed sync.Cond
	pending map[string]bool // sessions to look at
	active  map[string]bool // sessions that a goroutine looks at
	held    map[string]int  // sessions in which no input may begin now, by the number of verbs that hold them
	closed  bool
}

func newFeeder() *feeder {
	f := &feeder{wake: make(chan struct{}, 1), pending: map[string]bool{}, active: map[string]bool{}, held: map[string]int{}}
	f.changed.L = &f.mu
	return f
}

// observe is the observer of commits.
func (f *feeder) observe(commits []tapedeck.Commit) {
	for i := range commits {
		c := &commits[i]
		if _, ok := nextInput(&c.Session); ok && !c.Gone {
			f.note(c.Session.ID)
		}
	}
}

// nextInput returns the first input for an agent of this server that waits in a free thread.
func nextInput(s *tapedeck.Session) (tapedeck.WaitingInput, bool) {
	for _, in := range s.Inputs {
		if _, busy := s.Run(in.Thread); !busy && !s.Closed && !in.Outside {
			return in, true
		}
	}
	return tapedeck.WaitingInput{}, false
}

func (f *feeder) note(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.pending[session] = true
		f.notify()
	}
}

func (f *feeder) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// hold keeps inputs of a session from beginning until release is called. It waits while
// one is beginning.
func (f *feeder) hold(session string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[session]++
	for f.active[session] {
		f.changed.Wait()
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.held[session]--; f.held[session] == 0 {
			delete(f.held, session)
			f.notify()
		}
	}
}

func (f *feeder) isHeld(session string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed || f.held[session] > 0
}

// settle waits until every input of a session that could begin has begun.
func (f *feeder) settle(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.closed && f.held[session] == 0 && (f.pending[session] || f.active[session]) {
		f.changed.Wait()
	}
}

// settleAll waits until every input that could begin has begun, or until ctx is done.
func (f *feeder) settleAll(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		f.mu.Lock() // otherwise it may come between the check below and the wait
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})()
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.closed && ctx.Err() == nil && f.work() > 0 {
		f.changed.Wait()
	}
	return ctx.Err()
}

// working returns the number of sessions in which an input may begin now.
func (f *feeder) working() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.work()
}

func (f *feeder) work() int {
	n := len(f.active)
	for id := range f.pending {
		if f.held[id] == 0 && !f.active[id] && !f.closed {
			n++
		}
	}
	return n
}

// take returns the sessions to look at now, and marks them active.
func (f *feeder) take() (sessions []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.pending {
		if f.held[id] == 0 && !f.active[id] && !f.closed {
			delete(f.pending, id)
			f.active[id] = true
			sessions = append(sessions, id)
		}
	}
	return sessions
}

func (f *feeder) done(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.active, session)
	f.changed.Broadcast()
	f.notify()
}

// HoldInputs keeps the inputs that wait from beginning as long as this engine exists.
func (e *Engine) HoldInputs() { e.feeder.close() }

// close makes the feeder begin no more inputs.
func (f *feeder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.changed.Broadcast()
}

// feed begins inputs until the engine is shut down.
func (e *Engine) feed() {
	defer e.feeder.close()
	for {
		select {
		case <-e.life.Done():
			return
		case <-e.feeder.wake:
		}
		for _, id := range e.feeder.take() {
			e.wg.Go(func() {
				defer e.feeder.done(id)
				e.feedSession(e.life, id)
			})
		}
	}
}

// feedSession begins each input of a session whose thread is free.
func (e *Engine) feedSession(ctx context.Context, session string) {
	var failing time.Time // since when the first input cannot begin; zero if it can
	for pause := firstRetry; ctx.Err() == nil && !e.feeder.isHeld(session); {
		s, err := e.session(ctx, session)
		in, ok := nextInput(&s)
		if err == nil && !ok || absent(err) {
			return
		}
		if err == nil {
			err = e.startInput(ctx, &s, in)
		}
		switch {
		case err == nil:
			pause, failing = firstRetry, time.Time{}
			continue
		case ctx.Err() != nil:
			return
		case failing.IsZero():
			failing = time.Now()
		}
		if ok && (tapedeck.KindOf(err) != tapedeck.Unavailable || time.Since(failing) > giveUp) {
			if err = e.withdrawFailed(ctx, session, in, err); err == nil {
				continue
			}
		}
		if !e.sleep(pause) {
			return
		}
		pause = min(2*pause, lastRetry)
	}
}

// startInput begins an input. It is no error if that is not possible any more.
func (e *Engine) startInput(ctx context.Context, s *tapedeck.Session, in tapedeck.WaitingInput) error {
	ev, q, err := e.queuedEvent(ctx, s.ID, in)
	if err != nil {
		return err
	}
	var budget *tapedeck.Amount
	if q.Budget != nil && json.Unmarshal(q.Budget, &budget) != nil { // a budget that is not understood must not be left out
		return tapedeck.Errorf(tapedeck.Invalid, "the budget of the input cannot be read")
	}
	_, err = e.start(context.WithoutCancel(ctx), api.Task{
		Session: s.ID, Thread: in.Thread, Text: q.Text, Agent: q.Agent, Config: q.Config, Budget: budget, MessageID: q.MessageID,
		Actor: ev.Actor, Invocation: q.Invocation, Queued: in.ID,
	}, false)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if now, headErr := e.session(ctx, s.ID); headErr == nil {
		if _, busy := now.Run(in.Thread); busy || !waits(&now, in.ID) {
			return nil
		}
	}
	return err
}

// queuedEvent returns the event that queued an input.
func (e *Engine) queuedEvent(ctx context.Context, session string, in tapedeck.WaitingInput) (tapedeck.Event, payload.InputQueued, error) {
	ev, err := eventAt(ctx, e.store, session, in.Offset)
	if err != nil {
		return ev, payload.InputQueued{}, err
	}
	q, err := payload.DecodeAs[payload.InputQueued](ev)
	return ev, q, err
}

// withdrawFailed withdraws an input that cannot begin, so that those behind it can.
func (e *Engine) withdrawFailed(ctx context.Context, session string, in tapedeck.WaitingInput, why error) error {
	reason := "it could not be started"
	var known *tapedeck.Error
	if errors.As(why, &known) && known.Kind != tapedeck.Internal {
		reason = brief(known.Message)
	} else {
		e.options.Logger.Error("an input could not be started", "session", session, "input", in.ID, "error", why)
	}
	_, err := e.write(ctx, tapedeck.Append{Session: session, Events: withdrawn([]tapedeck.WaitingInput{in}, reason, "tapedeck")},
		func(s *tapedeck.Session, _ []tapedeck.Event) error { return checkWaits(s, in.ID) })
	if err == nil || errors.Is(err, errNotWaiting) || absent(err) {
		return nil
	}
	return err
}

// feedAll looks for inputs that an earlier process has left.
func (e *Engine) feedAll(ctx context.Context) error {
	for cursor := ""; ; {
		page, err := e.store.List(ctx, tapedeck.Filter{Inputs: true, Cursor: cursor})
		if err != nil {
			return err
		}
		for i := range page.Sessions {
			e.feeder.note(page.Sessions[i].ID)
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}
