package workflow

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/wallclock"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

// A walker walks one process. Only the goroutine of the run uses it.
type walker struct {
	r    *Runner
	ctx  context.Context
	in   *tapedeck.Invocation
	say  func(tapedeck.Event, error) bool
	left bool // the consumer takes no more events

	fold *view.WorkflowFold
	d    *diagram
	next int64 // the number that the next activation gets

	todo   []string // activations to look at
	tasks  *tasks
	list   []any           // the items of the activation listOf
	listOf string          // "" for none
	seen   int64           // events before this offset were folded from the log
	asked  map[string]bool // questions that are in the log and pending
	size   int             // of the state, or more; see fits

	compensators map[string]string   // by scope: the event that compensates in it
	blocked      map[string][]string // by scope: the events that wait for that one
}

func newWalker(r *Runner, ctx context.Context, in *tapedeck.Invocation, say func(tapedeck.Event, error) bool) *walker {
	w := &walker{r: r, ctx: ctx, in: in, say: say, fold: view.NewWorkflowFold(threadOf(in)), asked: map[string]bool{}}
	w.fold.ForgetEnded()
	w.tasks = newTasks(w)
	return w
}

// threadOf returns the thread of an invocation. A host without a log may give none.
func threadOf(in *tapedeck.Invocation) string {
	if in.Thread == "" {
		return tapedeck.MainThread
	}
	return in.Thread
}

// restore folds what is in the log. In a host without a log it begins a process.
func (w *walker) restore() error {
	if w.in.Begun == nil {
		opening, err := w.r.Opening(w.ctx, *w.in)
		if err != nil {
			return err
		}
		w.yield(opening[0])
	} else if err := w.replay(); err != nil {
		return err
	}
	if !w.fold.Known() {
		return tapedeck.Errorf(tapedeck.Conflict, "the log has no workflow on thread %s", w.fold.Thread()).WithHint("run the workflow again")
	}
	head := w.fold.Head()
	if w.d = w.r.definitions.find(head.Digest, head.Process); w.d == nil {
		d, err := w.r.definitions.read(head.XML, head.Process)
		if err != nil {
			return err
		}
		w.d = d
	}
	w.fold.DropXML()
	w.next, w.size = w.fold.LastID()+1, stateSize(w.fold)
	for _, a := range w.fold.AllOpen() {
		w.todo = append(w.todo, a.ID)
		if n := w.node(a); n != nil && n.ThrowsCompensation() && a.Inside > 0 {
			w.lock(w.compensated(n, a), a.ID)
		}
	}
	return nil
}

// replay folds the log: all of it for a process that continues in a new invocation.
func (w *walker) replay() error {
	if w.in.Resumes != "" && w.in.History != nil {
		for ev, err := range w.in.History(w.ctx) {
			if err != nil {
				return err
			}
			w.fold.Apply(&ev)
		}
	}
	for ev, err := range w.in.Begun(w.ctx) {
		if err != nil {
			return err
		}
		w.fold.Apply(&ev)
		w.seen = ev.Offset + 1
		switch ev.Type {
		case tapedeck.PermissionRequested:
			if d, err := payload.DecodeAs[payload.PermissionRequested](ev); err == nil && d.Metadata == nil { // with metadata, an agent of a task asks
				w.asked[d.ID] = true
			}
		case tapedeck.PermissionAnswered:
			if d, err := payload.DecodeAs[payload.PermissionAnswered](ev); err == nil {
				delete(w.asked, d.ID)
			}
		}
	}
	return nil
}

// emit yields a decision and folds it.
func (w *walker) emit(p payload.Payload) { w.yield(payload.NewEvent(p)) }

func (w *walker) yield(ev tapedeck.Event) {
	if w.left || w.ctx.Err() != nil {
		w.left = true
		return
	}
	if !w.say(ev, nil) {
		w.left = true
		return
	}
	ev.Thread, ev.Invocation, ev.Time = w.fold.Thread(), w.in.ID, w.r.options.Now()
	w.fold.Apply(&ev)
}

// end stops the tasks of agents, and yields why the walk failed. Like the other functions
// around wait, Run has few variables: a process that waits keeps their stack.
//
//go:noinline
func (w *walker) end(err error) {
	w.tasks.end()
	if err != nil && !w.left {
		w.say(tapedeck.Event{}, err)
	}
}

// walk moves the tokens until the process ends or the run is stopped.
func (w *walker) walk() error {
	for {
		w.advance()
		switch head := w.fold.Head(); {
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		case w.left:
			return nil
		case head.Outcome == view.WorkflowFailed:
			return tapedeck.Errorf(tapedeck.Conflict, "%s", head.Message)
		case head.Outcome != "":
			return nil
		}
		if err := w.wait(); err != nil {
			return err
		}
	}
}

// wait waits for what moves the process: a task, a message, an answer, a timer.
func (w *walker) wait() error {
	var ready <-chan struct{}
	if w.in.Inbox != nil {
		ready = w.in.Inbox.Ready
		if w.in.Inbox.Rests != nil && len(w.tasks.running) == 0 {
			w.in.Inbox.Rests()
		}
	}
	due, stop := w.timer()
	defer stop()
	select {
	case <-w.ctx.Done():
		return w.ctx.Err()
	case d := <-w.tasks.done:
		w.taskEnded(d)
	case <-ready:
		w.receiveAll()
	case <-due:
	}
	return nil
}

// timer returns when to look for a timer that is due; nil if there is none.
//
//go:noinline
func (w *walker) timer() (due <-chan time.Time, stop func()) {
	at, ok := w.nextDue()
	if !ok {
		return nil, func() {}
	}
	t := time.NewTimer(wallclock.Until(at, w.r.options.Now()))
	return t.C, func() { t.Stop() }
}

//go:noinline
func (w *walker) receiveAll() {
	for _, ev := range w.in.Inbox.Take() {
		w.receive(&ev)
	}
}

// receive folds an event that others appended.
func (w *walker) receive(ev *tapedeck.Event) {
	if ev.Type == tapedeck.WorkflowMessage && ev.Offset < w.seen {
		return // the log that was folded has it
	}
	if ev.Type == tapedeck.PermissionAnswered {
		if d, err := payload.DecodeAs[payload.PermissionAnswered](*ev); err == nil {
			delete(w.asked, d.ID)
		}
	}
	w.fold.Apply(ev)
	for _, a := range w.fold.AllOpen() {
		for i := range a.Waits {
			if a.Waits[i].Answer != nil {
				w.todo = append(w.todo, a.ID)
			}
		}
	}
}

// advance takes decisions and starts tasks until only others can move the process. It is the
// only loop over the things to look at: what fails is looked at in its next round, and never
// inside the call that failed.
func (w *walker) advance() {
	for !w.stopped() {
		if !w.over() && w.decide() {
			continue
		}
		w.tasks.sweep()
		w.withdraw()
		if w.over() {
			return // something may be left to look at, which is not looked at
		}
		w.tasks.start()
		if len(w.todo) == 0 {
			return
		}
	}
}

// over reports whether the process has ended.
func (w *walker) over() bool { return w.fold.Head().Outcome != "" }

func (w *walker) stopped() bool { return w.left || w.ctx.Err() != nil }

// decide takes the next decision. It reports false if there is none.
func (w *walker) decide() bool {
	for len(w.todo) > 0 {
		id := w.todo[0]
		w.todo = w.todo[1:]
		if a := w.fold.Open(id); a != nil {
			w.act(a)
			return true
		}
	}
	return w.armScope("", w.d.scopeOf(nil)) || w.moveToken() || w.wakeThrower() || w.deliver() || w.fireTimer() || w.endProcess()
}

// look makes the walker look at an activation, or at what is around it.
func (w *walker) look(id string) {
	if id != "" {
		w.todo = append(w.todo, id)
	}
}

// newID returns the id of a new activation.
func (w *walker) newID() string {
	id := strconv.FormatInt(w.next, 10)
	w.next++
	return id
}

// node returns the element of an activation.
func (w *walker) node(a *view.WorkflowActivation) *bpmn.Node { return w.d.Node(a.Element) }

// isBody reports whether an activation is a loop or a multi-instance element itself,
// and not one of its instances.
func isBody(a *view.WorkflowActivation) bool { return a.Count != nil }

// scopeOf returns what is directly in an element; nil stands for the process.
func (d *diagram) scopeOf(n *bpmn.Node) *bpmn.Scope {
	switch {
	case n == nil:
		return &d.Main.Scope
	case n.Called != nil:
		return &n.Called.Scope
	}
	return n.Scope
}

// endProcess ends the process if no token is left in it. If the tokens that are left can
// never move again, it fails.
func (w *walker) endProcess() bool {
	switch {
	case w.fold.Inside() == 0 && w.fold.Halted():
		w.emit(payload.WorkflowEnded{Outcome: view.WorkflowTerminated})
	case w.fold.Inside() == 0:
		w.emit(payload.WorkflowEnded{Outcome: view.WorkflowCompleted})
	default:
		return w.unblock()
	}
	return true
}

// unblock looks for tokens that wait in front of a joining gateway while nothing else is
// left that could move. An inclusive gateway lets them pass: several of them may wait for
// each other. At a parallel one, the process cannot continue.
func (w *walker) unblock() bool {
	if len(w.fold.AllOpen()) > 0 || len(w.fold.Head().Tokens) == 0 {
		return false
	}
	for _, t := range w.fold.Head().Tokens {
		n := w.target(&t)
		if n != nil && n.Kind == bpmn.InclusiveGateway {
			w.enter(n, t.Scope, w.arrived(n, t.Scope), nil)
			return true
		}
	}
	n := w.target(&w.fold.Head().Tokens[0])
	if n == nil {
		n = &bpmn.Node{}
	}
	w.emit(payload.WorkflowEnded{
		Outcome: view.WorkflowFailed, Code: codeStuck, Element: n.ID,
		Message: "a token waits at " + title(n) + " for others that cannot come",
	})
	return true
}

// title names an element in a sentence.
func title(n *bpmn.Node) string {
	if n.Name != "" {
		return strconv.Quote(n.ID) + " (" + n.Name + ")"
	}
	return strconv.Quote(n.ID)
}

// Codes of failures, which error events can catch.
const (
	codeAgent      = "agent"      // the agent of a task failed
	codeOutput     = "output"     // what an agent said does not fit, or is too large
	codeExpression = "expression" // an expression failed
	codeLimit      = "limit"      // an element was entered too often
	codeCancelled  = "cancelled"  // a task was cancelled alone
	codeStuck      = "stuck"      // tokens wait for others that cannot come
)

var errNoAgents = errors.New("this host can start no agents")
