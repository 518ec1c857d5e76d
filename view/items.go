package view

import "slices"

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

// Newest returns the newest messages, at most limit, which is not 0, and the
// calls and runs since the first of them. If there are fewer messages, it is all.
func (i Items) Newest(limit int) Items {
	if len(i.Messages) <= limit {
		return i
	}
	newest := i.Messages[len(i.Messages)-limit:]
	i = i.Since(newest[0].Offset)
	i.Messages = newest
	return i
}

// With returns i and others, by offset.
func (i Items) With(other Items) Items {
	return Items{
		Messages: merge([]Message{}, [][]Message{i.Messages, other.Messages}, func(m *Message) int64 { return m.Offset }),
		Calls:    merge([]ToolCall{}, [][]ToolCall{i.Calls, other.Calls}, func(k *ToolCall) int64 { return k.Offset }),
		Runs:     merge([]Run{}, [][]Run{i.Runs, other.Runs}, func(r *Run) int64 { return r.Offset }),
	}
}

// Settled returns what c has kept (see [Conversation.Keep]) of a thread, or of
// all if it is "", as far as it is still there in later: the same conversation
// as of a later offset.
func (c *Conversation) Settled(thread string, later *Conversation) Items {
	var out Items
	if c.archive == nil {
		return out
	}
	for name, l := range later.lanes {
		if thread == "" || thread == name {
			out = out.With(c.archive.of(l))
		}
	}
	return out
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

// Settles reports whether something that began before an offset, and has not
// settled in c, has in later.
func (c *Conversation) Settles(before int64, later *Conversation) bool {
	for name, l := range c.lanes {
		now := later.lanes[name]
		if now == nil {
			continue
		}
		if begun(l.messages.items, before) > begun(now.messages.items, before) ||
			begun(l.calls.items, before) > begun(now.calls.items, before) || begun(l.runs, before) > begun(now.runs, before) {
			return true
		}
	}
	return false
}

func begun[T begins](items []T, before int64) int {
	n := 0
	for _, i := range items {
		if i.began() < before {
			n++
		}
	}
	return n
}

type begins interface{ began() int64 }

func (i *Item) began() int64 { return i.Offset }

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

// complete returns the offset of the oldest item of each kind of which some have
// settled, and of these the newest. What is open may be older than what has
// settled.
func (l *lane) complete() int64 {
	from := int64(0)
	if l.earlier() > 0 {
		from = max(from, first(l.messages.items, func(m *message) bool { return !m.gone && !l.isBusy(m) }))
	}
	if l.settledCalls {
		from = max(from, first(l.calls.items, func(k *call) bool { return !k.gone && !l.isOpen(k) }))
	}
	if l.settledRuns {
		from = max(from, first(l.runs, func(r *Run) bool { return r.EndOffset != nil }))
	}
	return from
}

func first[T begins](items []T, ok func(T) bool) int64 {
	for _, i := range items {
		if ok(i) {
			return i.began()
		}
	}
	return 0
}
