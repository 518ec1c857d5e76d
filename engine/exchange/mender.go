package exchange

import (
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/order"
	"github.com/tapedeck/tapedeck/payload"
)

// A mender brings AG-UI events that come from elsewhere into an order that can be
// replayed: what an end has left open is closed, and a run whose end is missing
// is ended as interrupted.
type mender struct {
	verifier *order.Verifier
	emit     func(tapedeck.Event)
	last     tapedeck.Event // for the time of what is added
}

// add takes an event. An error says why it cannot be taken; nothing came of it
// then.
func (m *mender) add(e tapedeck.Event) error {
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

// close closes what the run has open that e is to end.
func (m *mender) close(e *tapedeck.Event) {
	invocation := e.Invocation
	if invocation == "" {
		invocation, _, _ = m.verifier.ActiveRun(e.ThreadName())
	}
	m.put(m.verifier.Closing(invocation))
}

// interrupt ends a run whose end is not there.
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
		if m.verifier.Add(&e) == nil { // Closing gives what can be added
			m.emit(e)
		}
	}
}

// endAll ends every run that is open, those of sub-agents before the ones that
// have started them.
func (m *mender) endAll() {
	for _, r := range slices.Backward(m.verifier.Runs()) {
		m.interrupt(r.Invocation, r.Thread)
	}
}
