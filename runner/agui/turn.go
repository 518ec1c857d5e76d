package agui

import (
	"context"
	"errors"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/narrate"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// maxRounds is how often an agent may ask in one run.
const maxRounds = 100

// A turn is one invocation of the agent. It is one run of the agent, or several: in
// AG-UI a run ends when it asks people, and another run has the answers.
type turn struct {
	runner *Runner
	in     *tapedeck.Invocation
	yield  func(tapedeck.Event, error) bool
	over   bool // yield has returned false
	mem    *memory
	order  *order.Verifier // of the events of this invocation

	thread  string // the agent's own id of the thread
	linked  bool   // the log has it
	runID   string // of the run of the agent
	rounds  int    // runs of the agent before this one
	replies bool   // the task is the answer to what the newest run of the thread waits for

	begun     bool            // this stream has RUN_STARTED
	open      bool            // the agent works, or waits for answers
	ours      bool            // the agent is behind another Tapedeck
	suspended map[string]bool // sub-agents that wait for the answers
	calling   map[string]*calling
}

func newTurn(r *Runner, in *tapedeck.Invocation, yield func(tapedeck.Event, error) bool) *turn {
	return &turn{runner: r, in: in, yield: yield, mem: newMemory(in), order: order.NewVerifier(), suspended: map[string]bool{}, calling: map[string]*calling{}}
}

// errOver means that nobody wants more events.
var errOver = errors.New("the run has ended")

// run runs the agent until it has finished. The error says why it has not.
func (t *turn) run(ctx context.Context) error {
	if err := t.mem.recall(ctx); err != nil {
		return err
	}
	if err := t.begin(); err != nil {
		return err
	}
	var answers []entry
	if t.mem.waits != nil && t.linked {
		answers, t.replies = t.mem.waits.answered(t.mem.message()), true
	}
	for ; t.rounds < maxRounds; t.rounds++ {
		if t.rounds > 0 {
			t.runID, t.replies = tapedeck.NewID("run_"), false
		}
		end, err := t.converse(ctx, answers)
		if err != nil {
			return err
		}
		if len(end.interrupts) == 0 {
			return t.close()
		}
		var w *waits
		if answers, w, err = t.ask(ctx, end.interrupts); err != nil {
			return err
		}
		if w != nil {
			if err := t.leave(w); err != nil {
				return err
			}
			return t.close()
		}
	}
	return tapedeck.Errorf(tapedeck.Unavailable, "the agent has asked more than %d times in one run", maxRounds)
}

// begin chooses the thread of the agent. A new one begins if the agent's own thread may
// differ from the log: after a rewind, in a fork, after a run that was stopped.
func (t *turn) begin() error {
	t.runID, t.thread = t.in.ID, newThread()
	if l := t.in.Link; l != nil && l.Runner == t.runner.link() && t.mem.ended {
		t.thread, t.linked = l.NativeID, true
	}
	begin := payload.NewEvent(payload.RunStarted{ThreadID: t.thread, RunID: t.in.ID})
	begin.Thread, begin.Invocation = t.in.Thread, t.in.ID
	return t.order.Add(&begin)
}

// converse sends one request, and passes on what the agent says until its run ends.
func (t *turn) converse(ctx context.Context, answers []entry) (ending, error) {
	in := t.input(answers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := t.request(ctx, &in)
	if err != nil {
		return ending{}, err
	}
	defer resp.Body.Close()
	if err := t.checkStream(resp); err != nil {
		return ending{}, err
	}
	heard := false
	t.begun = false
	for raw, err := range aguiwire.Frames(resp.Body, t.runner.options.MaxEvent) {
		switch {
		case ctx.Err() != nil:
			return ending{}, ctx.Err()
		case err != nil:
			return ending{}, tapedeck.Errorf(tapedeck.Unavailable, "the connection to the agent broke before its run had ended: %s", narrate.Brief(err.Error(), t.runner.secrets)).Because(err)
		}
		heard = true
		end, err := t.hear(raw)
		if err != nil || end != nil {
			return deref(end), err
		}
	}
	if !heard {
		return ending{}, tapedeck.Errorf(tapedeck.Unavailable, "the agent answers without any event")
	}
	return ending{}, tapedeck.Errorf(tapedeck.Unavailable, "the stream of the agent ended before its run did")
}

func deref(e *ending) ending {
	if e == nil {
		return ending{}
	}
	return *e
}

// say yields an event in the form of the log, without the marks of Tapedeck: those of
// another one are about its own log, and those of chunks would make the engine expect
// more of them. An error says why the event does not fit.
func (t *turn) say(e tapedeck.Event) error {
	e.Thread, e.Invocation = t.in.Thread, t.in.ID
	events, err := t.order.Accept([]tapedeck.Event{e})
	if err != nil {
		return tapedeck.Errorf(tapedeck.Unavailable, "the agent sent an event that does not fit: %s", narrate.Brief(err.Error(), t.runner.secrets)).Because(err)
	}
	for i := range events {
		events[i].Data = withoutOurs(events[i].Data)
	}
	return t.pass(events)
}

// pass yields events that the order accepts.
func (t *turn) pass(events []tapedeck.Event) error {
	for _, e := range events {
		t.mem.add(e)
		if !t.yield(tapedeck.Event{Type: e.Type, Data: e.Data}, nil) {
			t.over = true
			return errOver
		}
		if plan, ok := t.plan(&e); ok {
			if err := t.pass([]tapedeck.Event{payload.NewEvent(plan)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// close ends what the agent has left open.
func (t *turn) close() error {
	for _, e := range t.order.Closing(t.in.ID) {
		if err := t.say(e); err != nil {
			return err
		}
	}
	return nil
}
