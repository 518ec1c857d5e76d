package view

import (
	"slices"

	"github.com/tapedeck/tapedeck/payload"
)

// Items are the messages, calls and runs of a conversation, each list by
// offset.
type Items struct {
	Messages []Message
	Calls    []ToolCall
	Runs     []Run
}

// Since returns the items that began at or after an offset. It also returns
// each run that was open at the offset, and the newest run of each thread,
// because that run gives the thread its status.
func (i Items) Since(offset int64) Items {
	newest := map[string]int64{}
	for n := range i.Runs {
		newest[i.Runs[n].Thread] = i.Runs[n].Offset
	}
	return Items{
		Messages: slices.DeleteFunc(slices.Clone(i.Messages), func(m Message) bool { return m.Offset < offset }),
		Calls:    slices.DeleteFunc(slices.Clone(i.Calls), func(k ToolCall) bool { return k.Offset < offset }),
		Runs: slices.DeleteFunc(slices.Clone(i.Runs), func(r Run) bool {
			return r.Offset < offset && r.EndOffset != nil && *r.EndOffset < offset && r.Offset < newest[r.Thread]
		}),
	}
}

// Before returns the items that began before an offset.
func (i Items) Before(offset int64) Items {
	return Items{
		Messages: slices.DeleteFunc(slices.Clone(i.Messages), func(m Message) bool { return m.Offset >= offset }),
		Calls:    slices.DeleteFunc(slices.Clone(i.Calls), func(k ToolCall) bool { return k.Offset >= offset }),
		Runs:     slices.DeleteFunc(slices.Clone(i.Runs), func(r Run) bool { return r.Offset >= offset }),
	}
}

// Newest returns the newest limit messages, and the calls and runs since the
// first of them. limit must not be 0. Messages of one offset stay together, so
// there may be more: the offset of the first message is where the page before
// ends. If there are no more than limit messages, it returns i.
func (i Items) Newest(limit int) Items {
	if len(i.Messages) <= limit {
		return i
	}
	return i.Since(i.Messages[len(i.Messages)-limit].Offset)
}

// RunsOf returns only the runs of a thread. If thread is "", it returns the
// runs of all threads except those of sub-agents.
func (i Items) RunsOf(thread string) Items {
	return Items{Runs: slices.DeleteFunc(slices.Clone(i.Runs), func(r Run) bool {
		return thread == "" && (r.Sub || payload.IsSubThread(r.Thread)) || thread != "" && thread != r.Thread
	})}
}

// NewestRuns returns only the newest runs, at most limit.
func (i Items) NewestRuns(limit int) Items {
	return Items{Runs: i.Runs[max(0, len(i.Runs)-limit):]}
}

// With returns the items of both, by offset; later has items that settled after
// i.
func (i Items) With(later Items) Items { return joined([]Items{i, later}) }

// joined returns all items by offset. Items of the same offset stay in the
// given order.
func joined(lists []Items) Items {
	var messages [][]Message
	var calls [][]ToolCall
	var runs [][]Run
	for _, l := range lists {
		messages, calls, runs = append(messages, l.Messages), append(calls, l.Calls), append(runs, l.Runs)
	}
	return Items{
		Messages: merge(messages, func(m *Message) int64 { return m.Offset }),
		Calls:    merge(calls, func(k *ToolCall) int64 { return k.Offset }),
		Runs:     merge(runs, func(r *Run) int64 { return r.Offset }),
	}
}

// merge joins lists, each sorted by offset, into one.
func merge[T any](lists [][]T, offset func(*T) int64) []T {
	switch len(lists) {
	case 0:
		return []T{}
	case 1:
		return append([]T{}, lists[0]...)
	}
	half := len(lists) / 2
	return mergeTwo(merge(lists[:half], offset), merge(lists[half:], offset), offset)
}

func mergeTwo[T any](a, b []T, offset func(*T) int64) []T {
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if offset(&b[0]) < offset(&a[0]) {
			out, b = append(out, b[0]), b[1:]
		} else {
			out, a = append(out, a[0]), a[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Settled returns the settled items that c has kept, see [Conversation.Keep],
// of a thread, or of all if thread is "". later is the same conversation as of
// a later offset; items that a MESSAGES_SNAPSHOT has dropped by then are left
// out.
func (c *Conversation) Settled(thread string, later *Conversation) Items {
	var lists []Items
	for name := range c.archive {
		if l := later.lanes[name]; l != nil && (thread == "" || thread == name) {
			lists = append(lists, c.archive.items(l))
		}
	}
	return joined(lists)
}

// SettledBefore returns how many messages of a thread, or of all if thread is
// "", have settled in c and still exist in later, which is the same
// conversation as of a later offset.
func (c *Conversation) SettledBefore(thread string, later *Conversation) int {
	n := 0
	for name, l := range c.lanes {
		if thread != "" && thread != name {
			continue
		}
		for g, p := range l.past {
			if now := later.lanes[name]; now != nil && now.past[g].Floor < c.next {
				n += p.Count
			}
		}
	}
	return n
}

// Threads returns the number of threads.
func (c *Conversation) Threads() int { return len(c.lanes) }

// RunsSettledBefore returns how many runs of a thread have settled in c. If
// thread is "", it counts all threads, without the runs of sub-agents.
func (c *Conversation) RunsSettledBefore(thread string) int {
	n := 0
	for name, l := range c.lanes {
		switch {
		case thread == name:
			n += l.pastRuns
		case thread == "" && !payload.IsSubThread(name):
			n += l.pastRuns - l.pastSubs
		}
	}
	return n
}

// RunsComplete returns the offset from which c has all runs of a thread in
// memory, or of all threads if thread is "".
func (c *Conversation) RunsComplete(thread string) int64 {
	from := int64(0)
	for name, l := range c.lanes {
		if thread == "" || thread == name {
			from = max(from, l.settledRuns)
		}
	}
	return from
}

// Settles reports whether an item with an offset below before has settled in
// later but not in c. later is the same conversation as of a later offset.
func (c *Conversation) Settles(before int64, later *Conversation) bool {
	if c.next < before && c.next < later.next {
		return true // c has not folded all events below before
	}
	for name, now := range later.lanes {
		l := c.lanes[name]
		if now.restatesBelow(before, c.next) || l != nil && l.settlesBelow(before, now) {
			return true
		}
	}
	return false
}

// restatesBelow reports whether a MESSAGES_SNAPSHOT at or after the offset from
// has given a message a place below the offset before.
func (l *lane) restatesBelow(before, from int64) bool {
	return slices.ContainsFunc(l.past[:], func(p pastGroup) bool { return p.Floor >= from && p.Floor > 0 && p.Lowest < before })
}

// settlesBelow reports whether later has fewer of the items that began before
// an offset. It cannot have more.
func (l *lane) settlesBelow(before int64, later *lane) bool {
	return begun(l.messages.items, before) > begun(later.messages.items, before) ||
		begun(l.calls.items, before) > begun(later.calls.items, before) || begun(l.runs, before) > begun(later.runs, before)
}

func begun[T begins](items []T, before int64) int {
	n := 0
	for _, i := range items {
		if i.began() < before && !i.isRemoved() {
			n++
		}
	}
	return n
}

type begins interface {
	began() int64
	isRemoved() bool
}

func (i *Item) began() int64       { return i.Offset }
func (*Item) isRemoved() bool      { return false }
func (m *message) isRemoved() bool { return m.removed }
func (k *call) isRemoved() bool    { return k.removed }

// Complete returns the offset from which c has all items of a thread in memory,
// or of all threads if thread is "".
func (c *Conversation) Complete(thread string) int64 {
	from := int64(0)
	for name, l := range c.lanes {
		if thread == "" || thread == name {
			from = max(from, l.complete())
		}
	}
	return from
}

// complete returns the offset after the newest settled item. Items that were
// open for long can be older, and are still in memory.
func (l *lane) complete() int64 {
	from := max(l.settledCalls, l.settledRuns)
	for _, p := range l.past {
		from = max(from, p.To)
	}
	return from
}
