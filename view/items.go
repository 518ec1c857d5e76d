package view

import (
	"slices"

	"github.com/tapedeck/tapedeck/payload"
)

// Items are what a conversation consists of, each list in order.
type Items struct {
	Messages []Message
	Calls    []ToolCall
	Runs     []Run
}

// Since returns those that began at or after an offset. A run that was open then
// is there, too, and in any case the newest run of each thread: how that went is
// what a thread amounts to.
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

// Before returns those that began before an offset.
func (i Items) Before(offset int64) Items {
	return Items{
		Messages: slices.DeleteFunc(slices.Clone(i.Messages), func(m Message) bool { return m.Offset >= offset }),
		Calls:    slices.DeleteFunc(slices.Clone(i.Calls), func(k ToolCall) bool { return k.Offset >= offset }),
		Runs:     slices.DeleteFunc(slices.Clone(i.Runs), func(r Run) bool { return r.Offset >= offset }),
	}
}

// Newest returns the newest messages, limit of them, which is not 0, and the calls
// and runs since the first of them. Messages of one offset stay together, so there
// may be more: the offset of the first is where the page before ends. If there are
// not more messages, it is all.
func (i Items) Newest(limit int) Items {
	if len(i.Messages) <= limit {
		return i
	}
	return i.Since(i.Messages[len(i.Messages)-limit].Offset)
}

// RunsOf returns only the runs of a thread, or if it is "" those of all threads,
// without those of sub-agents.
func (i Items) RunsOf(thread string) Items {
	return Items{Runs: slices.DeleteFunc(slices.Clone(i.Runs), func(r Run) bool {
		return thread == "" && (r.Sub || payload.IsSubThread(r.Thread)) || thread != "" && thread != r.Thread
	})}
}

// NewestRuns returns only the newest runs, at most limit.
func (i Items) NewestRuns(limit int) Items {
	return Items{Runs: i.Runs[max(0, len(i.Runs)-limit):]}
}

// With returns i and those that settled after them, by offset.
func (i Items) With(later Items) Items { return joined([]Items{i, later}) }

// joined returns all items by offset; those of one offset in the order given.
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

// merge joins lists, each by offset, to one.
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

// Settled returns what c has kept (see [Conversation.Keep]) of a thread, or of
// all if it is "", as far as it is still there in later: the same conversation
// as of a later offset.
func (c *Conversation) Settled(thread string, later *Conversation) Items {
	var lists []Items
	for name := range c.archive {
		if l := later.lanes[name]; l != nil && (thread == "" || thread == name) {
			lists = append(lists, c.archive.of(l))
		}
	}
	return joined(lists)
}

// SettledBefore returns how many messages of a thread, or of all if it is "",
// have settled in c and are still there in later.
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

// Threads returns how many threads there are.
func (c *Conversation) Threads() int { return len(c.lanes) }

// RunsSettledBefore returns how many runs have settled in c, of a thread or, if it
// is "", of all threads, without those of sub-agents.
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

// RunsComplete returns the offset from which on c has all runs at hand, of a thread
// or, if it is "", of all.
func (c *Conversation) RunsComplete(thread string) int64 {
	from := int64(0)
	for name, l := range c.lanes {
		if thread == "" || thread == name {
			from = max(from, l.settledRuns)
		}
	}
	return from
}

// Settles reports whether something with an offset before one has settled in
// later, the same conversation as of a later offset, and has not yet in c.
func (c *Conversation) Settles(before int64, later *Conversation) bool {
	if c.next < before && c.next < later.next {
		return true // it may be still to come
	}
	for name, now := range later.lanes {
		l := c.lanes[name]
		if now.restatesBelow(before, c.next) || l != nil && l.settlesBelow(before, now) {
			return true
		}
	}
	return false
}

// restatesBelow reports whether a MESSAGES_SNAPSHOT at or after an offset has said
// something anew at a place before another offset.
func (l *lane) restatesBelow(before, from int64) bool {
	return slices.ContainsFunc(l.past[:], func(p pastGroup) bool { return p.Floor >= from && p.Floor > 0 && p.Least < before })
}

// settlesBelow reports whether fewer items that began before an offset are at hand
// later. None can have come.
func (l *lane) settlesBelow(before int64, later *lane) bool {
	return begun(l.messages.items, before) > begun(later.messages.items, before) ||
		begun(l.calls.items, before) > begun(later.calls.items, before) || begun(l.runs, before) > begun(later.runs, before)
}

func begun[T begins](items []T, before int64) int {
	n := 0
	for _, i := range items {
		if i.began() < before && !i.isGone() {
			n++
		}
	}
	return n
}

type begins interface {
	began() int64
	isGone() bool
}

func (i *Item) began() int64    { return i.Offset }
func (*Item) isGone() bool      { return false }
func (m *message) isGone() bool { return m.gone }
func (k *call) isGone() bool    { return k.gone }

// Complete returns the offset from which on c has everything of a thread, or of
// all if it is "", at hand.
func (c *Conversation) Complete(thread string) int64 {
	from := int64(0)
	for name, l := range c.lanes {
		if thread == "" || thread == name {
			from = max(from, l.complete())
		}
	}
	return from
}

// complete returns the offset after the newest of all that has settled. What was
// open for long is older than what has settled, and still at hand.
func (l *lane) complete() int64 {
	from := max(l.settledCalls, l.settledRuns)
	for _, p := range l.past {
		from = max(from, p.To)
	}
	return from
}
