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

// FitRuns is [Items.Fit] for the runs alone.
func (i Items) FitRuns(bytes int, whole int64) Items {
	runs := Items{Runs: i.Runs}
	from := max(whole, runs.fits(bytes))
	return Items{Runs: slices.DeleteFunc(slices.Clone(i.Runs), func(r Run) bool { return r.Offset < from })}
}

// Fit returns the newest items that have at most so many bytes together, but always the
// newest message or call. Items that began before whole have no contents, see
// [Conversation.Settled], and are left out.
func (i Items) Fit(bytes int, whole int64) Items {
	from := max(whole, i.fits(bytes))
	if from == 0 {
		return i
	}
	kept := i.Since(from)
	older, left := 0, bytes // the runs that began before from
	for ; older < len(kept.Runs) && kept.Runs[older].Offset < from; older++ {
		left += kept.Runs[older].size()
	}
	left -= kept.Size()
	for j := older - 1; j >= 0; j-- {
		if r := &kept.Runs[j]; r.Offset < whole || r.size() > left {
			kept.Runs = slices.Delete(kept.Runs, j, j+1)
		} else {
			left -= r.size()
		}
	}
	return kept
}

// fits returns the offset from which the items have at most so many bytes; 0 for all. The
// newest message or call always fits, because its offset is where the page before ends.
func (i Items) fits(bytes int) int64 {
	from, size := int64(-1), 0
	needed := max(newestOf(i.Messages, messageOffset), newestOf(i.Calls, callOffset))
	if needed < 0 {
		needed = newestOf(i.Runs, runOffset)
	}
	m, k, r := len(i.Messages), len(i.Calls), len(i.Runs)
	for m > 0 || k > 0 || r > 0 {
		at := max(newestOf(i.Messages[:m], messageOffset), newestOf(i.Calls[:k], callOffset), newestOf(i.Runs[:r], runOffset))
		for ; m > 0 && i.Messages[m-1].Offset == at; m-- {
			size += i.Messages[m-1].size()
		}
		for ; k > 0 && i.Calls[k-1].Offset == at; k-- {
			size += i.Calls[k-1].size()
		}
		for ; r > 0 && i.Runs[r-1].Offset == at; r-- {
			size += i.Runs[r-1].size()
		}
		if size > bytes && at < needed {
			return from
		}
		from = at
	}
	return 0
}

func newestOf[T any](list []T, offset func(*T) int64) int64 {
	if len(list) == 0 {
		return -1
	}
	return offset(&list[len(list)-1])
}

func messageOffset(m *Message) int64 { return m.Offset }
func callOffset(k *ToolCall) int64   { return k.Offset }
func runOffset(r *Run) int64         { return r.Offset }

// itemSize is what an item has beside its contents, in bytes, about.
const itemSize = 300

// Size returns how many bytes the items have, about.
func (i Items) Size() (n int) {
	for j := range i.Messages {
		n += i.Messages[j].size()
	}
	for j := range i.Calls {
		n += i.Calls[j].size()
	}
	for j := range i.Runs {
		n += i.Runs[j].size()
	}
	return n
}

// Size is [Items.Size] for the items of s.
func (s *Snapshot) Size() int { return Items{s.Messages, s.Calls, s.Runs}.Size() }

func (m *Message) size() int {
	return itemSize + len(m.Text) + len(m.Parts) + len(m.Content) + len(m.Metadata)
}

func (k *ToolCall) size() int {
	n := itemSize + len(k.Arguments) + len(k.Input)
	if r := k.Result; r != nil {
		n += len(r.Text) + len(r.Parts) + len(r.Error)
	}
	return n
}

func (r *Run) size() int {
	n := itemSize + len(r.Context) + len(r.Result) + len(r.Interrupts) + len(r.Usage) + len(r.Tally.Text)
	if r.Error != nil {
		n += len(r.Error.Message)
	}
	return n
}

// RunsOf returns only the runs of a thread. If thread is "", it returns the
// runs of all threads except those of sub-agents.
func (i Items) RunsOf(thread string) Items {
	return Items{Runs: slices.DeleteFunc(slices.Clone(i.Runs), func(r Run) bool { return !r.isOf(thread) })}
}

func (r *Run) isOf(thread string) bool {
	if thread == "" {
		return !r.Sub && !payload.IsSubThread(r.Thread)
	}
	return r.Thread == thread
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
		Messages: merge(messages, messageOffset), Calls: merge(calls, callOffset), Runs: merge(runs, runOffset),
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

// Settled returns the settled items that c has kept for a page, see
// [Conversation.KeepFor]. Those that began before from are there, but without their
// contents: the newer ones have as many bytes as the page may have.
func (c *Conversation) Settled() (items Items, from int64) {
	var lists []Items
	for _, s := range c.archive.lanes {
		lists = append(lists, s.items())
	}
	return joined(lists), c.archive.from
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
