package views

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/payload"
)

// endedTexts has the messages that open runs have ended, by invocation. A run may open such
// a message again, as after a restart of the server in the middle of it: then the
// message continues.
type endedTexts map[string]map[spanKey]bool

// note notes that a run begins or ends.
func (t endedTexts) note(e *tapedeck.Event) {
	if delete(t, e.Invocation); e.Type == tapedeck.RunStarted {
		t[e.Invocation] = map[spanKey]bool{}
	}
}

// end notes that a run ends a message.
func (t endedTexts) end(invocation string, key spanKey) {
	if known := t[invocation]; known != nil && key.kind != toolSpan {
		known[key] = true
	}
}

// size returns about how many bytes it takes.
func (t endedTexts) size() (n int) {
	for _, ended := range t {
		n += 64 * (1 + len(ended))
	}
	return n
}

// again shows that a run repeats a step, and forgets what the step has begun and ended.
// What the run had ended before is looked up when it is needed.
func (m *messages) again(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	out, err := m.dropReopened(ctx, e, out)
	if err != nil {
		return out, err
	}
	j, _ := e.Jump()
	delete(m.runs, e.Invocation)
	for key, s := range m.open {
		if s.invocation == e.Invocation && s.begin >= j.To {
			delete(m.open, key)
		}
	}
	if len(m.open) == 0 {
		m.bytes = 0
	}
	return m.jump(ctx, m.session, e, messageEntities, out)
}

// dropReopened deletes the messages that the step has ended and then opened again. They are
// shown, although they are not complete.
func (m *messages) dropReopened(ctx context.Context, e *tapedeck.Event, out [][]byte) ([][]byte, error) {
	known := map[spanKey]bool{} // whether it is open
	var reopened []spanKey
	err := m.before(ctx, e, func(key spanKey, step spanStep, _ spanData) {
		open, seen := known[key]
		if !seen {
			known[key] = step < spanEnds
		}
		if open && step >= spanEnds && key.kind != toolSpan && !slices.Contains(reopened, key) {
			reopened = append(reopened, key)
		}
	})
	if err != nil || len(reopened) == 0 {
		return out, err
	}
	after, err := messageEntities(ctx, m.Source, m.session, e.Offset+1)
	if err != nil {
		return out, err
	}
	names, err := m.names.before(ctx, e)
	if err != nil {
		return out, err
	}
	stays := byKey(after)
	for _, key := range reopened {
		id := idOf(key, payload.RoleAssistant, names)
		if _, ok := stays["message/"+id]; !ok {
			out = append(out, encodeChange(e, "delete", "message", id, nil))
		}
	}
	return out, nil
}

// continued gives a message that e begins what it had before, if its run had ended it.
func (m *messages) continued(ctx context.Context, key spanKey, e *tapedeck.Event, s *span) error {
	if key.kind == toolSpan || e.Invocation == "" {
		return nil
	}
	known := m.runs[e.Invocation]
	if known == nil { // the run began before this reader
		known = map[spanKey]bool{}
		err := m.before(ctx, e, func(key spanKey, step spanStep, _ spanData) {
			if step >= spanEnds && key.kind != toolSpan {
				known[key] = true
			}
		})
		if err != nil {
			return err
		}
		m.runs[e.Invocation] = known
	}
	if !known[key] {
		return nil
	}
	return m.earlier(ctx, key, e, s)
}

// earlier reads what a message that e begins had before in its run.
func (m *messages) earlier(ctx context.Context, key spanKey, e *tapedeck.Event, s *span) error {
	if key.kind == toolSpan || e.Invocation == "" {
		return nil
	}
	var deltas []payload.Piece
	replaced := false // what is older does not count
	err := m.before(ctx, e, func(k spanKey, step spanStep, d spanData) {
		if k == key && step >= spanEnds {
			s.again = true
		}
		if k == key && !replaced && (step == spanContinues || step == spanIsWhole) {
			deltas, replaced = append(deltas, d.Delta), step == spanIsWhole
		}
	})
	for _, d := range slices.Backward(deltas) {
		s.body = append(s.body, d...)
	}
	return err
}

// leftOpen shows the messages and calls that the run of e, a RUN_ERROR, has left open.
func (m *messages) leftOpen(ctx context.Context, e *tapedeck.Event, names *aguiwire.Naming, out [][]byte) ([][]byte, error) {
	if e.Invocation == "" {
		return out, nil
	}
	type part struct {
		span
		deltas   []payload.Piece
		ended    bool // the newest part of it is its end
		begun    bool
		replaced bool // what is older does not count
	}
	parts := map[spanKey]*part{}
	var order []spanKey // the newest first
	err := m.before(ctx, e, func(key spanKey, step spanStep, d spanData) {
		p := parts[key]
		if p == nil {
			p = &part{ended: step >= spanEnds}
			parts[key] = p
		}
		switch step {
		case spanBegins:
			if !p.begun && !p.ended {
				p.begun, p.head = true, d
				order = append(order, key)
			}
		case spanContinues, spanIsWhole:
			if !p.replaced {
				p.deltas = append(p.deltas, d.Delta)
			}
			if step == spanIsWhole {
				p.replaced, p.again = true, true
			}
		case spanEnds:
			p.again = p.again || p.begun
		}
	})
	if err != nil {
		return out, err
	}
	for _, key := range slices.Backward(order) {
		p := parts[key]
		for _, d := range slices.Backward(p.deltas) {
			p.body = append(p.body, d...)
		}
		out = append(out, p.encode(key, e, names))
		delete(m.open, key)
	}
	if len(m.open) == 0 {
		m.bytes = 0
	}
	return out, nil
}

// before calls f for the parts of messages and calls before e in the run of e, the newest
// first, without those that an attempt has superseded. It looks at maxSpan events at most, so that the result for an event does not depend
// on where a reader begins.
func (m *messages) before(ctx context.Context, e *tapedeck.Event, f func(spanKey, spanStep, spanData)) error {
	end := e.Offset // parts from here on are superseded
	for from := e.Offset; from > 0 && e.Offset-from < maxSpan; {
		p, err := m.Log.Read(ctx, m.session, tapedeck.Range{From: from, Reverse: true})
		if err != nil {
			return err
		}
		for _, r := range p.Records {
			b, err := r.Event()
			if err != nil {
				return err
			}
			if b.Invocation != e.Invocation || r.Offset >= end {
				continue
			}
			if j, ok := b.Jump(); ok && j.Attempt {
				end = j.To
			}
			if b.Type == tapedeck.RunStarted || e.Offset-r.Offset > maxSpan {
				return nil
			}
			if key, step, d := spanOf(&b); step != 0 {
				f(key, step, d)
			}
		}
		from = p.Next
	}
	return nil
}
