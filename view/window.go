package view

import (
	"cmp"
	"slices"
)

// Window is how many messages, tool calls and runs a [Conversation] keeps at
// hand in each thread. One that has so many newer ones of its kind, and is not
// open, has settled: nothing that comes later changes it, except that a
// MESSAGES_SNAPSHOT which does not restate it drops it. Under an id that only
// settled ones have had, a new one begins.
//
// So what a conversation holds, and what a checkpoint of it costs, does not grow
// with its length. It is a rule of the view, not of this program: every fold
// must have the same.
const Window = 128

// maxOpen is the most that is kept at hand if it does not end.
const maxOpen = 4 * Window

// A pastGroup is what a lane knows of the messages of a group that have settled.
type pastGroup struct {
	Count int   `json:"count,omitempty"` // how many there are
	To    int64 `json:"to,omitempty"`    // they began before this offset
	Floor int64 `json:"floor,omitempty"` // of the newest MESSAGES_SNAPSHOT of the group: what settled before it is gone
	Least int64 `json:"least,omitempty"` // and what began anew with it has this offset or a higher one
}

// earlier returns how many messages have settled.
func (l *lane) earlier() int {
	n := 0
	for _, p := range l.past {
		n += p.Count
	}
	return n
}

// Keep makes c keep what settles from now on, for [Conversation.Snapshot] to
// show it.
func (c *Conversation) Keep() {
	if c.archive == nil {
		c.archive = archive{}
	}
}

// An archive has what has settled in each thread, in the order in which it did.
type archive map[string]*settledItems

type settledItems struct {
	messages []settled[Message]
	calls    []settled[ToolCall]
	runs     []settled[Run]
}

// in returns what has settled in a lane.
func (a archive) in(l *lane) *settledItems {
	s, ok := a[l.Name]
	if !ok {
		s = new(settledItems)
		a[l.Name] = s
	}
	return s
}

// A settled item is one that nothing changes any more.
type settled[T any] struct {
	at    int64 // of the event by which it settled
	group int   // of a message, or of the message that made a call; -1 for none
	item  T
}

// of returns what the archive has of a lane and no MESSAGES_SNAPSHOT has dropped,
// by offset: an item that was open for long settles after younger ones.
func (a archive) of(l *lane) (out Items) {
	s, ok := a[l.Name]
	if !ok {
		return out
	}
	out.Messages = present(l, s.messages, func(m *Message) int64 { return m.Offset })
	out.Calls = present(l, s.calls, func(k *ToolCall) int64 { return k.Offset })
	out.Runs = present(l, s.runs, func(r *Run) int64 { return r.Offset })
	return out
}

func present[T any](l *lane, all []settled[T], offset func(*T) int64) []T {
	out := make([]T, 0, len(all))
	for i := range all {
		if s := &all[i]; l.has(s.group, s.at) {
			out = append(out, s.item)
		}
	}
	byOffset := func(a, b T) int { return cmp.Compare(offset(&a), offset(&b)) }
	if !slices.IsSortedFunc(out, byOffset) {
		slices.SortStableFunc(out, byOffset)
	}
	return out
}

// has reports whether what settled at an offset is still there.
func (l *lane) has(group int, at int64) bool {
	return group < 0 || at >= l.past[group].Floor
}

// atHand returns what has not settled.
func (l *lane) atHand() (out Items) {
	for _, m := range l.messages.items {
		if !m.gone {
			out.Messages = append(out.Messages, m.value())
		}
	}
	for _, k := range l.calls.items {
		if !k.gone {
			out.Calls = append(out.Calls, k.value())
		}
	}
	for _, r := range l.runs {
		out.Runs = append(out.Runs, *r)
	}
	return out
}

func (m *message) value() Message {
	v := m.Message
	v.Text = m.text.String()
	v.Content = m.doc.value()
	return v
}

func (k *call) value() ToolCall {
	v := k.ToolCall
	v.Arguments, v.Input = k.args.String(), k.input()
	return v
}

// settleMessages is called when a message was added, by the event at an offset.
func (c *Conversation) settleMessages(l *lane, at int64) {
	for !l.restating && l.messages.alive() > Window {
		i := l.messages.oldest(func(m *message) bool { return !m.gone && !l.isBusy(m) }, func(m *message) bool { return !m.gone })
		if i < 0 {
			return
		}
		m := l.messages.take(i)
		m.settled = true
		group := groupOf(m.Role)
		l.settle(m.Invocation, m, nil)
		l.forget(m)
		l.groups[group] = without(l.groups[group], m)
		past := &l.past[group]
		past.Count, past.To = past.Count+1, max(past.To, m.Offset+1)
		if c.archive != nil {
			s := c.archive.in(l)
			s.messages = append(s.messages, settled[Message]{at, group, m.value()})
		}
	}
}

func (c *Conversation) settleCalls(l *lane, at int64) {
	for !l.restating && l.calls.alive() > Window {
		i := l.calls.oldest(func(k *call) bool { return !k.gone && !l.isOpen(k) }, func(k *call) bool { return !k.gone })
		if i < 0 {
			return
		}
		k := l.calls.take(i)
		l.settledCalls = max(l.settledCalls, k.Offset+1)
		l.settle(k.Invocation, nil, k)
		if l.call[k.ID] == k {
			delete(l.call, k.ID)
		}
		group := -1
		if k.maker != nil {
			group = groupOf(k.maker.Role)
			k.maker.calls = without(k.maker.calls, k)
		}
		if c.archive != nil {
			s := c.archive.in(l)
			s.calls = append(s.calls, settled[ToolCall]{at, group, k.value()})
		}
	}
}

func (c *Conversation) settleRuns(l *lane, at int64) {
	if len(l.runs) <= Window {
		return
	}
	i := slices.IndexFunc(l.runs, func(r *Run) bool { return r.EndOffset != nil })
	if i < 0 {
		if i = 0; len(l.runs) <= maxOpen {
			return
		}
		if w := l.open[l.runs[0].Invocation]; w != nil && w.run == l.runs[0] {
			w.run = nil
		}
	}
	l.settledRuns, l.pastRuns = max(l.settledRuns, l.runs[i].Offset+1), l.pastRuns+1
	if l.runs[i].Sub {
		l.pastSubs++
	}
	if r := l.runs[i]; l.newest[r.Invocation] == r {
		delete(l.newest, r.Invocation)
	}
	if c.archive != nil {
		s := c.archive.in(l)
		s.runs = append(s.runs, settled[Run]{at, -1, *l.runs[i]})
	}
	l.runs = slices.Delete(l.runs, i, i+1)
}

// oldest returns the index of the oldest item that may go; if there are too many
// that may not, of the oldest one; -1 for none.
func (l *list[T]) oldest(may, must func(*T) bool) int {
	if i := slices.IndexFunc(l.items, may); i >= 0 || l.alive() <= maxOpen {
		return i
	}
	return slices.IndexFunc(l.items, must)
}

// take takes an item out.
func (l *list[T]) take(i int) *T {
	item := l.items[i]
	if i == 0 {
		l.items[0] = nil
		l.items = l.items[1:]
	} else {
		l.items = slices.Delete(l.items, i, i+1)
	}
	return item
}

// without returns list without an item, which is most likely its first.
func without[T any](list []*T, item *T) []*T {
	i := slices.Index(list, item)
	switch {
	case i == 0:
		return list[1:]
	case i > 0:
		return slices.Delete(list, i, i+1)
	}
	return list
}
