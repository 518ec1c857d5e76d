package view

import (
	"cmp"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// Window is the number of messages, tool calls and runs that a [Conversation]
// keeps in memory in each thread. An item settles when it is not open and this
// many newer items of its kind follow. If more than maxOpen items are loaded,
// the oldest settles even if it is open. Later events do not change a settled
// item, except that a MESSAGES_SNAPSHOT that does not restate it drops it. If a
// settled item's id is used again, a new item begins.
//
// So the memory of a conversation and the size of a checkpoint do not grow with
// its length. Window is a rule of the view: every implementation of the fold
// must have the same.
const Window = 128

// maxOpen is the largest number of open items that stay in memory.
const maxOpen = 4 * Window

// A pastGroup is what a lane keeps of a group's settled messages (a
// MESSAGES_SNAPSHOT restates a group together).
type pastGroup struct {
	Count  int   `json:"count,omitempty"` // number of settled messages
	To     int64 `json:"to,omitempty"`    // they began before this offset
	Floor  int64 `json:"floor,omitempty"` // offset of the newest MESSAGES_SNAPSHOT of the group; what settled before it is dropped
	Lowest int64 `json:"least,omitempty"` // lowest offset that this snapshot gave to a message
}

// earlier returns the number of settled messages.
func (l *lane) earlier() int {
	n := 0
	for _, p := range l.past {
		n += p.Count
	}
	return n
}

// Keep makes c keep the items that settle from now on, so that
// [Conversation.Snapshot] shows them.
func (c *Conversation) Keep() {
	if c.archive == nil {
		c.archive = &archive{lanes: map[string]*settledItems{}}
	}
}

// KeepFor makes c keep, of the items that settle from now on, those that a page of later
// needs. later is the same conversation as of a later offset. [Conversation.Settled] returns
// them.
func (c *Conversation) KeepFor(q Query, later *Conversation) {
	c.Keep()
	c.archive.query, c.archive.later = q, later
}

// An archive has settled items.
type archive struct {
	lanes map[string]*settledItems // by thread
	query Query                    // of [Conversation.KeepFor]
	later *Conversation            // nil if all items are kept
	size  int                      // of the items, if the query has a limit of bytes
	from  int64                    // items that began before this offset have lost their contents, because newer ones are as large as the query allows
}

// settledItems are the settled items of a thread, in the order in which they settled.
type settledItems struct {
	messages []settled[Message]
	calls    []settled[ToolCall]
	runs     []settled[Run]
}

// A settled value is an item that no longer changes.
type settled[T any] struct {
	at    int64 // offset of the event by which it settled
	group int   // the group of the message, or of the message that made the call; -1 if there is none
	item  T
}

// of returns the settled items of a lane, and creates the entry if necessary.
func (a *archive) of(l *lane) *settledItems {
	s, ok := a.lanes[l.Name]
	if !ok {
		s = new(settledItems)
		a.lanes[l.Name] = s
	}
	return s
}

// wants reports whether an item that settles at an offset is kept.
func (a *archive) wants(l *lane, group int, at, offset int64) bool {
	if a == nil || a.later == nil {
		return a != nil
	}
	now := a.later.lanes[l.Name]
	return now != nil && now.has(group, at) && (a.query.Thread == "" || a.query.Thread == l.Name) && offset < a.query.Before
}

// wantsRun is wants for a run.
func (a *archive) wantsRun(l *lane, at int64, r *Run) bool {
	return a.wants(l, -1, at, r.Offset) && (!a.onlyRuns() || r.isOf(a.query.Thread))
}

// onlyRuns reports whether the page has runs only.
func (a *archive) onlyRuns() bool { return a != nil && a.later != nil && a.query.Runs }

// grow notes that the archive has an item more. If the items are too large, the oldest lose
// their contents: a page has no place for them.
func (a *archive) grow(size int) {
	if a.query.Bytes <= 0 {
		return
	}
	if a.size += size; a.size <= 2*a.query.Bytes {
		return
	}
	var lists []Items
	for _, s := range a.lanes {
		lists = append(lists, s.items())
	}
	all := joined(lists)
	a.from = max(a.from, all.fits(a.query.Bytes))
	for _, s := range a.lanes {
		s.empty(a.from)
	}
	a.size = all.Since(a.from).Size()
}

// empty removes the contents of the items that began before an offset.
func (s *settledItems) empty(from int64) {
	for i := range s.messages {
		if m := &s.messages[i].item; m.Offset < from {
			*m = Message{Item: m.Item}
		}
	}
	for i := range s.calls {
		if k := &s.calls[i].item; k.Offset < from {
			*k = ToolCall{Item: k.Item}
		}
	}
	for i := range s.runs {
		if r := &s.runs[i].item; r.Offset < from {
			*r = Run{Item: r.Item, Sub: r.Sub}
		}
	}
}

// items returns all items in the order of their offsets.
func (s *settledItems) items() Items { return s.present(func(int, int64) bool { return true }) }

// items returns the settled items of a lane by offset, without those that a
// MESSAGES_SNAPSHOT has dropped. It sorts, because an item that was open for
// long settles after newer ones.
func (a *archive) items(l *lane) Items {
	if s, ok := a.lanes[l.Name]; ok {
		return s.present(l.has)
	}
	return Items{}
}

func (s *settledItems) present(has func(group int, at int64) bool) (out Items) {
	out.Messages = present(has, s.messages, messageOffset)
	out.Calls = present(has, s.calls, callOffset)
	out.Runs = present(has, s.runs, runOffset)
	return out
}

func present[T any](has func(group int, at int64) bool, all []settled[T], offset func(*T) int64) []T {
	out := make([]T, 0, len(all))
	for i := range all {
		if s := &all[i]; has(s.group, s.at) {
			out = append(out, s.item)
		}
	}
	byOffset := func(a, b T) int { return cmp.Compare(offset(&a), offset(&b)) }
	if !slices.IsSortedFunc(out, byOffset) {
		slices.SortStableFunc(out, byOffset)
	}
	return out
}

// has reports whether an item that settled at an offset was not dropped since.
func (l *lane) has(group int, at int64) bool {
	return group < 0 || at >= l.past[group].Floor
}

// loaded returns the items that have not settled.
func (l *lane) loaded() (out Items) {
	for _, m := range l.messages.items {
		if !m.removed {
			out.Messages = append(out.Messages, m.value())
		}
	}
	for _, k := range l.calls.items {
		if !k.removed {
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
	v.Text, v.Half = split(m.text.String(), v.Status == tapedeck.StatusRunning)
	v.Content = m.doc.value()
	return v
}

func (k *call) value() ToolCall {
	v := k.ToolCall
	v.Arguments, v.Half = split(k.args.String(), !k.complete)
	v.Input = k.input()
	return v
}

// split returns the text that pieces make, and the half of a character with which it ends.
// If the text does not go on, such a half is U+FFFD.
func split(pieces string, goesOn bool) (text string, half payload.Piece) {
	if !goesOn {
		return payload.Whole(pieces), ""
	}
	var halves payload.Halves
	text = halves.Next(payload.Piece(pieces))
	return text, halves.Held
}

// settleMessages must be called after the event at an offset has added a
// message.
func (c *Conversation) settleMessages(l *lane, at int64) {
	for !l.restating && l.messages.alive() > Window {
		i := l.messages.oldest(func(m *message) bool { return !m.removed && !l.isBusy(m) }, func(m *message) bool { return !m.removed })
		if i < 0 {
			return
		}
		m := l.messages.removeAt(i)
		m.settled = true
		group := groupOf(m.Role)
		l.finish(m.Invocation, m, nil)
		l.forgetID(m)
		l.groups[group] = without(l.groups[group], m)
		past := &l.past[group]
		past.Count, past.To = past.Count+1, max(past.To, m.Offset+1)
		if !c.archive.onlyRuns() && c.archive.wants(l, group, at, m.Offset) {
			s, v := c.archive.of(l), m.value()
			s.messages = append(s.messages, settled[Message]{at, group, v})
			c.archive.grow(v.size())
		}
	}
}

func (c *Conversation) settleCalls(l *lane, at int64) {
	for !l.restating && l.calls.alive() > Window {
		i := l.calls.oldest(func(k *call) bool { return !k.removed && !l.isOpen(k) }, func(k *call) bool { return !k.removed })
		if i < 0 {
			return
		}
		k := l.calls.removeAt(i)
		l.settledCalls = max(l.settledCalls, k.Offset+1)
		l.finish(k.Invocation, nil, k)
		if l.call[k.ID] == k {
			delete(l.call, k.ID)
		}
		group := -1
		if k.maker != nil {
			group = groupOf(k.maker.Role)
			k.maker.calls = without(k.maker.calls, k)
		}
		if !c.archive.onlyRuns() && c.archive.wants(l, group, at, k.Offset) {
			s, v := c.archive.of(l), k.value()
			s.calls = append(s.calls, settled[ToolCall]{at, group, v})
			c.archive.grow(v.size())
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
	if c.archive.wantsRun(l, at, l.runs[i]) {
		s, v := c.archive.of(l), *l.runs[i]
		s.runs = append(s.runs, settled[Run]{at, -1, v})
		c.archive.grow(v.size())
	}
	l.runs = slices.Delete(l.runs, i, i+1)
}

// oldest returns the index of the oldest item that may settle. If more than
// maxOpen items are loaded, it returns the oldest item that must settle. -1
// means none.
func (l *list[T]) oldest(may, must func(*T) bool) int {
	if i := slices.IndexFunc(l.items, may); i >= 0 || l.alive() <= maxOpen {
		return i
	}
	return slices.IndexFunc(l.items, must)
}

// removeAt removes and returns an item.
func (l *list[T]) removeAt(i int) *T {
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
