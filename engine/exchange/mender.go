package exchange

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// A mender makes the order of external AG-UI events replayable: it closes what an
// end left open, and ends a run without an end as interrupted.
type mender struct {
	verifier *order.Verifier
	emit     func(tapedeck.Event)
	last     tapedeck.Event // gives the time of added events
}

// accept accepts an event. An error says why the event cannot be accepted; then it
// has no effect.
func (m *mender) accept(e tapedeck.Event) error {
	if e.Type == tapedeck.RunStarted {
		if open, _, ok := m.verifier.ActiveRun(e.ThreadName()); ok {
			m.interrupt(open, e.ThreadName())
		}
	}
	if e.Type == tapedeck.RunFinished {
		m.close(&e)
	}
	out, err := m.verifier.Accept([]tapedeck.Event{e})
	if err != nil {
		return err
	}
	for _, one := range out {
		m.emit(one)
	}
	m.last = e
	return nil
}

// close closes what the run has open that e ends.
func (m *mender) close(e *tapedeck.Event) {
	invocation := e.Invocation
	if invocation == "" {
		invocation, _, _ = m.verifier.ActiveRun(e.ThreadName())
	}
	m.put(m.verifier.Closing(invocation))
}

// interrupt ends a run whose end is missing.
func (m *mender) interrupt(invocation, thread string) {
	events := m.verifier.Closing(invocation)
	e := payload.NewEvent(payload.RunError{Message: "the recording has no end of this run", Code: tapedeck.CodeInterrupted})
	e.Invocation = invocation
	if thread != tapedeck.MainThread {
		e.Thread = thread
	}
	m.put(append(events, e))
}

func (m *mender) put(events []tapedeck.Event) {
	for _, e := range events {
		e.Time = m.last.Time
		if m.verifier.Add(&e) == nil { // Closing returns events in a valid order
			m.emit(e)
		}
	}
}

// endAllRuns ends every open run, those of sub-agents before their parent runs.
func (m *mender) endAllRuns() {
	for _, r := range slices.Backward(m.verifier.Runs()) {
		m.interrupt(r.Invocation, r.Thread)
	}
}
