package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// Limits of what waits: the entry of a session lists its inputs, and views have their
// texts.
const (
	maxInputs    = 100
	maxInputText = 64 << 10 // bytes
)

// inputProducer begins the id of the producer of an input whose message has an id.
const inputProducer = "input "

var (
	errNotWaiting = tapedeck.Errorf(tapedeck.Conflict, "the input does not wait any more")
	errFree       = errors.New("the thread has changed") // so perhaps there is nothing to wait for
)

// checkWhen checks what a task says about a busy thread.
func checkWhen(t *api.Task) error {
	switch t.When {
	case "", api.WhenNow:
		return nil
	case api.WhenQueue, api.WhenSteer, api.WhenInterrupt:
	default:
		return tapedeck.Errorf(tapedeck.Invalid, "the member \"when\" cannot be %.100q", t.When).
			WithHint("it is one of %s", strings.Join(api.Whens, ", "))
	}
	if len(t.Messages) > 0 || t.State != nil || t.Input != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "a task that may wait has only a text")
	}
	return nil
}

// startOrQueue starts a task, or queues it if its thread is busy.
func (e *Engine) startOrQueue(ctx context.Context, t api.Task) (api.Started, error) {
	if t.Thread == "" {
		t.Thread = tapedeck.MainThread
	}
	for range maxTries {
		s, err := e.session(ctx, t.Session)
		if err != nil {
			return api.Started{}, err
		}
		var started api.Started
		away, err := e.isAway(ctx, &s, t.Thread, t.Agent)
		if err != nil {
			return api.Started{}, err
		}
		if away || isBusy(&s, t.Thread, t.Agent) {
			started, err = e.enqueue(ctx, t, &s)
		} else if started, err = e.start(ctx, t, false); tapedeck.KindOf(err) == tapedeck.Conflict {
			if now, headErr := e.session(ctx, t.Session); headErr == nil && isBusy(&now, t.Thread, t.Agent) {
				continue // another task was faster
			}
		}
		if !errors.Is(err, errFree) {
			return started, err
		}
	}
	return api.Started{}, tapedeck.Errorf(tapedeck.Unavailable, "thread %s is constantly used by others", t.Thread).WithHint("try again")
}

// isBusy reports whether a task for an agent has to wait in a thread. What is for an agent of
// the server does not wait behind what waits for a program.
func isBusy(s *tapedeck.Session, thread, agent string) bool {
	_, busy := s.Run(thread)
	return busy || slices.ContainsFunc(inputsIn(s, thread), func(in tapedeck.WaitingInput) bool { return agent == "" || !in.Outside })
}

// inputsIn returns the inputs that wait in a thread, or in all if thread is "".
func inputsIn(s *tapedeck.Session, thread string) []tapedeck.WaitingInput {
	return slices.DeleteFunc(slices.Clone(s.Inputs), func(in tapedeck.WaitingInput) bool { return thread != "" && in.Thread != thread })
}

func waits(s *tapedeck.Session, input string) bool {
	return slices.ContainsFunc(s.Inputs, func(in tapedeck.WaitingInput) bool { return in.ID == input })
}

func checkWaits(s *tapedeck.Session, input string) error {
	if !waits(s, input) {
		return errNotWaiting
	}
	return nil
}

// enqueue queues a task in a busy thread, or for a program that has no open run now.
func (e *Engine) enqueue(ctx context.Context, t api.Task, s *tapedeck.Session) (api.Started, error) {
	open, busy := s.Run(t.Thread)
	outside, err := e.address(ctx, s, &t, &open)
	if err == nil {
		err = e.mayQueue(ctx, &t, s, outside)
	}
	if err != nil {
		return api.Started{}, err
	}
	if t.MessageID != "" {
		if before, err := e.repeated(ctx, s, &t, errFree); !errors.Is(err, errFree) {
			return before, err
		}
	}
	out := api.Started{Session: s.ID, Status: view.InputWaiting, Input: tapedeck.NewID("inp_"), When: t.When}
	if t.Invocation == "" {
		t.Invocation = tapedeck.NewID("inv_")
	}
	out.Invocation = t.Invocation
	switch {
	case outside:
		out.Note = awaitsProgram(t.Agent)
	case t.When == api.WhenSteer:
		if out.Note = e.whyNotSteered(s, &t, &open, busy); out.Note != "" {
			out.When = api.WhenQueue
		}
	}
	a := queueing(&t, s, &out, outside)
	done, err := e.write(ctx, a, func(now *tapedeck.Session, _ []tapedeck.Event) error {
		if other, _ := now.Run(t.Thread); now.Gen != s.Gen || other.Invocation != open.Invocation || !outside && !isBusy(now, t.Thread, t.Agent) {
			return errFree // the input could be for another agent now
		}
		return checkRoom(now)
	})
	switch {
	case err != nil:
		return api.Started{}, err
	case done.Duplicate:
		return e.queuedBefore(ctx, &t, done.First)
	}
	out.Offset = done.First
	switch out.When {
	case api.WhenInterrupt:
		e.interrupt(ctx, s.ID, &out, t.Thread)
	case api.WhenSteer:
		e.tellSteered(open.Invocation)
	}
	return out, nil
}

// queueing returns the append that queues a task, as out says.
func queueing(t *api.Task, s *tapedeck.Session, out *api.Started, outside bool) tapedeck.Append {
	q := payload.InputQueued{
		ID: out.Input, Text: t.Text, When: out.When, Invocation: out.Invocation, MessageID: t.MessageID,
		Agent: t.Agent, Outside: outside, Config: t.Config,
	}
	if t.Budget != nil {
		q.Budget = encoded(t.Budget)
	}
	if ahead := inputsIn(s, t.Thread); t.When == api.WhenInterrupt && len(ahead) > 0 {
		q.Before = ahead[0].ID
	}
	ev := event(q, t.Actor)
	ev.Thread = t.Thread
	a := tapedeck.Append{Session: s.ID, Events: []tapedeck.Event{ev}}
	if t.MessageID != "" {
		a.Producer = &tapedeck.Producer{ID: inputProducer + t.MessageID}
	}
	return a
}

// mayQueue checks a task that would wait as strictly as one that begins.
func (e *Engine) mayQueue(ctx context.Context, t *api.Task, s *tapedeck.Session, outside bool) error {
	if len(t.Text) > maxInputText {
		return tapedeck.Errorf(tapedeck.TooLarge, "the task has %d bytes; a task that waits can have at most %d", len(t.Text), maxInputText).
			WithHint("send it when the thread is free")
	}
	if s.Closed {
		return closed(s)
	}
	if outside && (t.Config != nil || t.Budget != nil) {
		return tapedeck.Errorf(tapedeck.Invalid, "%s, so a task for it has neither a config nor a budget", notServed(t.Agent)).
			WithHint("name an agent of this server, or leave them out")
	}
	if !outside {
		agent, err := e.agent(cmp.Or(t.Agent, s.Agent))
		if err == nil {
			err = checkConfig(agent, t.Config)
		}
		if err == nil && t.Budget != nil { // only the request knows what its sender may set
			_, err = budgetOf(agent, t)
		}
		if err != nil {
			return err
		}
	}
	if err := checkRoom(s); err != nil {
		return err
	}
	return e.checkUnused(ctx, t)
}

func closed(s *tapedeck.Session) error {
	return tapedeck.Errorf(tapedeck.Conflict, "session %s is closed", s.ID)
}

func checkRoom(s *tapedeck.Session) error {
	if len(s.Inputs) >= maxInputs {
		return tapedeck.Errorf(tapedeck.Limited, "%d inputs wait in session %s; more cannot wait", len(s.Inputs), s.ID).
			WithHint("withdraw some of them, or send this one later")
	}
	return nil
}

// interrupt cancels the open run of a thread for an input that is the first to run, and
// waits until it runs.
func (e *Engine) interrupt(ctx context.Context, session string, out *api.Started, thread string) {
	s, err := e.session(ctx, session)
	if err != nil {
		return // it waits, and is run when the thread is free
	}
	if open, busy := s.Run(thread); busy && open.Invocation != out.Invocation {
		if _, err := e.cancelRun(ctx, &s, open)(); err != nil && tapedeck.KindOf(err) != tapedeck.Conflict {
			out.Note = "the open run could not be cancelled, so the input waits for its end"
			return
		}
	}
	e.feeder.settle(session)
	now, err := e.session(ctx, session)
	if open, busy := now.Run(thread); err == nil && busy && open.Invocation == out.Invocation {
		out.Status = tapedeck.StatusRunning
	}
}

// queuedBefore returns the input that an earlier task with the same message id made.
func (e *Engine) queuedBefore(ctx context.Context, t *api.Task, offset int64) (api.Started, error) {
	ev, q, err := e.queuedEvent(ctx, t.Session, tapedeck.WaitingInput{Offset: offset})
	if err != nil {
		return api.Started{}, err
	}
	if q.Text != t.Text {
		return api.Started{}, tapedeck.Errorf(tapedeck.Conflict, "session %s has another message with the id %q", t.Session, t.MessageID).
			WithHint("give each message an id of its own")
	}
	out := api.Started{Session: t.Session, Invocation: q.Invocation, Status: view.InputWaiting, Offset: ev.Offset, Repeated: true, Input: q.ID, When: q.When}
	list, err := e.Inputs(ctx, t.Session, "")
	for _, in := range list {
		if in.ID == q.ID {
			out.Status = in.Status
		}
	}
	if q.Outside && out.Status == view.InputWaiting {
		out.Note = awaitsProgram(q.Agent)
	}
	return out, err
}

// Inputs returns the inputs of a thread, or of all threads if thread is "": those that
// wait, in the order in which they will run, and the newest of those that have ended.
func (e *Engine) Inputs(ctx context.Context, session, thread string) ([]view.Input, error) {
	s, err := e.session(ctx, session)
	if err != nil {
		return nil, err
	}
	now, err := e.views.Snapshot(ctx, session, view.Query{At: new(s.Head), Thread: thread, Limit: 1})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(now.Inputs, func(in view.Input) bool { return thread != "" && in.Thread != thread }), nil
}

// Withdraw withdraws an input that waits. It is a [tapedeck.Conflict] if the input does
// not wait any more, and [tapedeck.NotFound] if there is no such input.
func (e *Engine) Withdraw(ctx context.Context, w api.Withdraw) (view.Input, error) {
	return e.changeInput(ctx, w.Session, w.Input, w.Actor, func(s *tapedeck.Session, in *tapedeck.WaitingInput) ([]tapedeck.Event, error) {
		return withdrawn([]tapedeck.WaitingInput{*in}, "", w.Actor), nil
	})
}

// Move puts an input that waits before another one, or at the end of the queue. Errors
// are those of [Engine.Withdraw]. It is [tapedeck.Invalid] if the other input does not
// wait in the same thread.
func (e *Engine) Move(ctx context.Context, m api.Move) (view.Input, error) {
	return e.changeInput(ctx, m.Session, m.Input, m.Actor, func(s *tapedeck.Session, in *tapedeck.WaitingInput) ([]tapedeck.Event, error) {
		there := inputsIn(s, in.Thread)
		if m.Before != "" && (m.Before == in.ID || !slices.ContainsFunc(there, func(o tapedeck.WaitingInput) bool { return o.ID == m.Before })) {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "%.128q is no other input that waits in thread %s", m.Before, in.Thread).
				WithHint("%s", waitingHint(s))
		}
		ev := event(payload.InputMoved{ID: in.ID, Before: m.Before}, m.Actor)
		ev.Thread = in.Thread
		return []tapedeck.Event{ev}, nil
	})
}

// changeInput appends what change returns for an input that waits, and returns the
// input as it is then.
func (e *Engine) changeInput(ctx context.Context, session, input, actor string, change func(*tapedeck.Session, *tapedeck.WaitingInput) ([]tapedeck.Event, error)) (view.Input, error) {
	if err := tapedeck.CheckName("the actor", actor); err != nil {
		return view.Input{}, err
	}
	for range maxTries {
		s, err := e.session(ctx, session)
		if err != nil {
			return view.Input{}, err
		}
		i := slices.IndexFunc(s.Inputs, func(in tapedeck.WaitingInput) bool { return in.ID == input })
		if i < 0 {
			return view.Input{}, e.explainNotWaiting(ctx, &s, input)
		}
		events, err := change(&s, &s.Inputs[i])
		if err != nil {
			return view.Input{}, err
		}
		_, err = e.write(ctx, tapedeck.Append{Session: session, Events: events}, sameInputs(&s, ""))
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return view.Input{}, err
		}
		return e.input(ctx, session, input)
	}
	return view.Input{}, tapedeck.Errorf(tapedeck.Unavailable, "the queue of session %s is constantly changed by others", session).WithHint("try again")
}

// sameInputs is a guard that refuses a session whose inputs in a thread, or in all if
// thread is "", are not those of s.
func sameInputs(s *tapedeck.Session, thread string) guard {
	return func(now *tapedeck.Session, _ []tapedeck.Event) error {
		if now.Gen != s.Gen || !slices.Equal(inputsIn(now, thread), inputsIn(s, thread)) {
			return errMoved
		}
		return nil
	}
}

func (e *Engine) input(ctx context.Context, session, id string) (view.Input, error) {
	list, err := e.Inputs(ctx, session, "")
	i := slices.IndexFunc(list, func(in view.Input) bool { return in.ID == id })
	if err != nil || i < 0 {
		return view.Input{}, err
	}
	return list[i], nil
}

// explainNotWaiting returns the error for an input that does not wait.
func (e *Engine) explainNotWaiting(ctx context.Context, s *tapedeck.Session, id string) error {
	in, err := e.input(ctx, s.ID, id)
	switch {
	case err != nil:
		return err
	case in.ID == "":
		return tapedeck.Errorf(tapedeck.NotFound, "session %s has no input %.128q", s.ID, id).WithHint("%s", waitingHint(s))
	case in.Invocation != "":
		return tapedeck.Errorf(tapedeck.Conflict, "the input %s was %s already, in %s", id, in.Status, in.Invocation).WithHint("%s", waitingHint(s))
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the input %s was %s already", id, in.Status).WithHint("%s", waitingHint(s))
}

// waitingHint lists the inputs that wait.
func waitingHint(s *tapedeck.Session) string {
	if len(s.Inputs) == 0 {
		return "no input waits in session " + s.ID
	}
	var ids []string
	for _, in := range s.Inputs {
		ids = append(ids, in.ID)
	}
	return "these wait: " + strings.Join(ids, ", ")
}

// withdrawn returns the events that withdraw inputs.
func withdrawn(list []tapedeck.WaitingInput, reason, actor string) (events []tapedeck.Event) {
	for _, in := range list {
		ev := event(payload.InputWithdrawn{ID: in.ID, Reason: reason}, actor)
		ev.Thread = in.Thread
		events = append(events, ev)
	}
	return events
}

// withdrawAll withdraws the inputs that wait in a thread, or in all if thread is "". It
// returns how many there were.
func (e *Engine) withdrawAll(ctx context.Context, session, thread, reason, actor string) (int, error) {
	for range maxTries {
		s, err := e.session(ctx, session)
		if err != nil {
			return 0, err
		}
		list := inputsIn(&s, thread)
		if len(list) == 0 {
			return 0, nil
		}
		_, err = e.write(ctx, tapedeck.Append{Session: session, Events: withdrawn(list, reason, actor)}, sameInputs(&s, thread))
		if errors.Is(err, errMoved) {
			continue
		}
		return len(list), err
	}
	return 0, tapedeck.Errorf(tapedeck.Unavailable, "the queue of session %s is constantly changed by others", session).WithHint("try again")
}

// CancelAll cancels a run as [Engine.Cancel] does, and withdraws the inputs that wait in
// its thread. If it names no run and none is open, it withdraws all inputs that wait in the
// session; if none waits, it is a [tapedeck.Conflict].
func (e *Engine) CancelAll(ctx context.Context, session, invocation string) (api.Cancelled, error) {
	defer e.feeder.hold(session)()
	s, err := e.session(ctx, session)
	if err != nil {
		return api.Cancelled{}, err
	}
	if invocation == "" && len(s.Runs) == 0 {
		return e.withdrawIdle(ctx, &s)
	}
	open, err := openRun(&s, invocation)
	if err != nil {
		return api.Cancelled{}, err
	}
	n, err := e.withdrawAll(ctx, session, open.Thread, withdrawnByCancel, "")
	if err != nil {
		return api.Cancelled{}, err
	}
	done, err := e.Cancel(ctx, session, open.Invocation)
	done.Withdrawn = n
	return done, err
}

// withdrawIdle withdraws the inputs that wait in a session without an open run.
func (e *Engine) withdrawIdle(ctx context.Context, s *tapedeck.Session) (api.Cancelled, error) {
	n, err := e.withdrawAll(ctx, s.ID, "", withdrawnByCancel, "")
	if err == nil && n == 0 {
		err = tapedeck.Errorf(tapedeck.Conflict, "nothing is running in session %s, and no input waits", s.ID)
	}
	return api.Cancelled{Session: s.ID, Status: s.Status, Offset: -1, Withdrawn: n}, err
}

// withdrawnByCancel is the reason of inputs that a cancel withdraws.
const withdrawnByCancel = "its thread was cancelled"
