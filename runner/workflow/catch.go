package workflow

import (
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/runner/workflow/bpmn"
	"github.com/tapedeck/tapedeck/view"
)

func cut(s string) string {
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}

// waits reports whether an activation waits for an element, or has done so.
func waits(a *view.WorkflowActivation, element string) bool {
	return a.Fired[element] || slices.ContainsFunc(a.Waits, func(wait view.WorkflowWait) bool { return wait.Element == element })
}

// armBoundary makes an activation wait for the next event at its boundary. It reports
// false if there is none left.
func (w *walker) armBoundary(n *bpmn.Node, a *view.WorkflowActivation) bool {
	for _, b := range n.Boundary {
		if b.Event != nil && b.Event.Kind.Waits() && !waits(a, b.ID) {
			w.arm(b, a.ID)
			return true
		}
	}
	return false
}

// armScope makes the process or an activation wait for the next event sub-process in it.
// It reports false if there is none left: all wait, or one of them has interrupted the others.
func (w *walker) armScope(id string, s *bpmn.Scope) bool {
	if s == nil || slices.ContainsFunc(s.EventSubProcesses, func(sub *bpmn.Node) bool { return sub.Scope.Start.Interrupting && w.fired(id, sub.ID) }) {
		return false
	}
	for _, sub := range s.EventSubProcesses {
		event := sub.CatchEvent()
		if event == nil || !event.Kind.Waits() {
			continue
		}
		if a := w.fold.Open(id); a != nil && waits(a, sub.ID) || id == "" && w.processWaits(sub.ID) {
			continue
		}
		w.armFor(sub, event, id)
		return true
	}
	return false
}

// fired reports whether an event of the process, or of an activation, has happened.
func (w *walker) fired(id, element string) bool {
	if a := w.fold.Open(id); a != nil {
		return a.Fired[element]
	}
	return id == "" && w.fold.Fired(element)
}

func (w *walker) processWaits(element string) bool {
	return w.fold.Fired(element) || slices.ContainsFunc(w.fold.Head().Waits, func(wait view.WorkflowWait) bool { return wait.Element == element })
}

// arm makes an activation wait for an element's event. It reports false if that fails.
func (w *walker) arm(n *bpmn.Node, id string) bool { return w.armFor(n, n.Event, id) }

func (w *walker) armFor(n *bpmn.Node, event *bpmn.Event, id string) bool {
	p := payload.WorkflowWaiting{WorkflowElement: elementOf(n), Activation: id, For: string(event.Kind), Within: n.Triggered}
	if err := w.wanted(event, id, &p); err != nil {
		if id == "" {
			w.emit(payload.WorkflowEnded{Outcome: view.WorkflowFailed, Code: codeExpression, Element: n.ID, Message: title(n) + " failed: " + cut(err.Error())})
		} else {
			w.failWith(id, codeExpression, err)
		}
		return false
	}
	w.emit(p)
	return true
}

// wanted evaluates what an event waits for. The due time of a timer is absolute.
func (w *walker) wanted(event *bpmn.Event, id string, p *payload.WorkflowWaiting) (err error) {
	env := w.env(id)
	switch event.Kind {
	case bpmn.TimerEvent:
		s, err := event.Timer.Schedule(w.ctx, env, w.r.options.Now())
		if err != nil {
			return err
		}
		p.Due, p.Repeats = stamp(s.First), int64(s.Repeat)
		if s.Repeat > 0 {
			p.Repeats--
		}
	case bpmn.SignalEvent:
		p.Signal, err = w.named(event, env)
	case bpmn.MessageEvent:
		p.Message, p.Correlation, err = w.addressed(event, env)
	}
	return err
}

// addressed evaluates the name and the correlation key of a message. The key is empty only if
// the diagram has none: then every message of the name fits.
func (w *walker) addressed(event *bpmn.Event, env map[string]any) (name, key string, err error) {
	if name, err = w.named(event, env); err == nil && event.Correlation != nil {
		key, err = event.Correlation.Key(w.ctx, env)
	}
	return name, key, err
}

// named evaluates the name of a message or a signal. Without one, those that have lost their
// names would find each other.
func (w *walker) named(event *bpmn.Event, env map[string]any) (string, error) {
	name, err := event.Name.Render(w.ctx, env)
	if err == nil && name == "" {
		err = tapedeck.Errorf(tapedeck.Invalid, "the name of the %s is empty: %.100q has no value", event.Kind, event.Name.Text)
	}
	return name, err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// catch waits for the event of an activation's own element, or ends it if the event has
// happened.
func (w *walker) catch(n *bpmn.Node, a *view.WorkflowActivation) {
	switch {
	case a.Trigger != nil:
		w.leave(n, a, triggered(n, a))
	case n.Event.Kind == bpmn.LinkEvent:
		w.leave(n, a, nil)
	case !waits(a, n.ID):
		w.arm(n, a.ID)
	}
}

// A waiter is an activation, or the process, with something it waits for.
type waiter struct {
	a *view.WorkflowActivation // nil for the process
	view.WorkflowWait
}

// waiters yields all waits, those of activations first, in the order of their ids.
func (w *walker) waiters(what string) (out []waiter) {
	for _, a := range w.fold.AllOpen() {
		for _, wait := range a.Waits {
			if wait.For == what {
				out = append(out, waiter{a, wait})
			}
		}
	}
	for _, wait := range w.fold.Head().Waits {
		if wait.For == what {
			out = append(out, waiter{nil, wait})
		}
	}
	return out
}

// caught returns the event for a wait that has come true.
func (w *walker) caught(on *waiter, by string) payload.WorkflowCaught {
	n := w.d.Node(on.Element)
	p := payload.WorkflowCaught{WorkflowElement: payload.WorkflowElement{Element: on.Element}, By: by}
	if on.a != nil {
		p.Activation = on.a.ID
	}
	if n == nil {
		return p
	}
	p.Name = n.Name
	switch {
	case n.Triggered:
		p.Within, p.Interrupts = true, n.Scope.Start.Interrupting
	case n.Kind == bpmn.BoundaryEvent:
		p.Interrupts = n.Interrupting
	case on.a != nil && on.a.Type == string(bpmn.EventBasedGateway):
		p.Interrupts = true
	}
	return p
}

// happen yields that a wait has come true, and looks at what it moves.
func (w *walker) happen(p payload.WorkflowCaught) {
	w.emit(p)
	w.look(p.Activation)
}

// fireTimer lets the first timer that is due happen.
func (w *walker) fireTimer() bool {
	now := w.r.options.Now()
	for _, on := range w.waiters("timer") {
		due, err := time.Parse(time.RFC3339Nano, on.Due)
		if err != nil || due.After(now) {
			continue
		}
		p := w.caught(&on, "timer")
		if on.Repeats != 0 && !p.Interrupts {
			p.Due, p.Repeats = w.nextCycle(&on, due), on.Repeats
			if p.Repeats > 0 {
				p.Repeats--
			}
		}
		w.happen(p)
		return true
	}
	return false
}

// nextCycle returns when a repeated timer is due again, "" if its period cannot be
// evaluated any more.
func (w *walker) nextCycle(on *waiter, due time.Time) string {
	n := w.d.Node(on.Element)
	if n == nil {
		return ""
	}
	event, id := n.Event, ""
	if n.Triggered {
		event = n.Scope.Start.Event
	}
	if on.a != nil {
		id = on.a.ID
	}
	if event == nil || event.Timer == nil {
		return ""
	}
	s, err := event.Timer.Schedule(w.ctx, w.env(id), due)
	if err != nil {
		return ""
	}
	s.First, s.Repeat = due, -1
	next, _ := s.Next(1)
	for k, now := 2, w.r.options.Now(); on.Repeats < 0 && !next.After(now) && k < maxSkipped; k++ {
		next, _ = s.Next(k) // what was missed while the server was down happens once
	}
	return stamp(next)
}

// maxSkipped is how many repetitions of a timer a restart skips.
const maxSkipped = 1_000_000

// nextDue returns when the next timer is due.
func (w *walker) nextDue() (first time.Time, ok bool) {
	for _, on := range w.waiters("timer") {
		due, err := time.Parse(time.RFC3339Nano, on.Due)
		if err == nil && (!ok || due.Before(first)) {
			first, ok = due, true
		}
	}
	return first, ok
}

// deliver gives the first message that an element waits for to that element.
func (w *walker) deliver() bool {
	messages := w.fold.Head().Messages
	if len(messages) == 0 {
		return false
	}
	waiters := w.waiters("message")
	for i := range messages {
		m := &messages[i]
		for j := range waiters {
			on := &waiters[j]
			if on.Message != m.Name || m.Sender != "" && on.a != nil && on.a.ID == m.Sender {
				continue
			}
			if on.Correlation != "" && m.Correlation != "" && on.Correlation != m.Correlation {
				continue
			}
			p := w.caught(on, "message")
			p.Variables, p.Sender = m.Variables, m.Sender
			if m.Sender == "" {
				p.Received = new(m.Offset)
			}
			w.happen(p)
			return true
		}
	}
	return false
}

// send sends the message of an element to whatever waits for it in the process.
func (w *walker) send(n *bpmn.Node, a *view.WorkflowActivation) {
	if a.Sent {
		w.leave(n, a, nil)
		return
	}
	env := w.env(a.ID)
	p := payload.WorkflowMessage{Activation: a.ID}
	var err error
	if p.Name, p.Correlation, err = w.addressed(n.Event, env); err != nil {
		w.failWith(a.ID, codeExpression, err)
		return
	}
	w.emit(p)
	w.leave(n, a, nil)
}

// broadcast throws a signal to everything that waits for it.
func (w *walker) broadcast(n *bpmn.Node, a *view.WorkflowActivation) {
	name, err := w.named(n.Event, w.env(a.ID))
	if err != nil {
		w.failWith(a.ID, codeExpression, err)
		return
	}
	for _, on := range w.waiters("signal") {
		if on.Signal != name || on.a != nil && w.fold.Open(on.a.ID) == nil {
			continue // another event that caught it has ended this one
		}
		w.happen(w.caught(&on, "signal"))
	}
	if w.fold.Open(a.ID) != nil { // it may have interrupted itself
		w.leave(n, a, nil)
	}
}
