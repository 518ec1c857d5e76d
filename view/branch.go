package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
)

// The kinds of a [Branch].
const (
	BranchMain    = "main"    // a session that stands at the root
	BranchFork    = "fork"    // a session that was forked from its parent
	BranchCopy    = "copy"    // the same, but it is meant to stand for itself
	BranchRewound = "rewound" // what was taken back in a session
)

// A Branch is a line of conversation in the tree of those that share a beginning.
type Branch struct {
	with []string // threads that were taken back with Thread

	ID      string `json:"id"` // of the session; of what was taken back, its marker
	Kind    string `json:"kind"`
	Session string `json:"session"`           // whose log has its events
	Parent  string `json:"parent,omitempty"`  // the branch that it leaves; "" for the root
	ForkAt  int64  `json:"fork_at"`           // the offset at which it does
	From    int64  `json:"from"`              // its events, or the first and last stretch of them, are from here
	To      int64  `json:"to"`                // up to here
	Current bool   `json:"current,omitempty"` // it is the session that was asked for

	Ranges      []tapedeck.OffsetRange `json:"ranges,omitempty"`      // where its events are, of the session that was asked for and what was taken back in it
	Invocations []BranchInvocation     `json:"invocations,omitempty"` // likewise, and those of other sessions that began there; at most the first 100
	More        int                    `json:"invocations_left_out,omitempty"`

	Title  string          `json:"title,omitempty"` // of a session
	Status tapedeck.Status `json:"status,omitempty"`

	Marker string `json:"marker,omitempty"` // with which what was taken back can be brought back
	Thread string `json:"thread,omitempty"` // the only one of which it was taken back; "" for all
	Verb   string `json:"verb,omitempty"`   // the type of the event that took it back
	By     string `json:"by,omitempty"`     // who did
	At     *Time  `json:"at,omitempty"`     // when; of a session, when it was made
}

// A BranchInvocation is an invocation in a branch.
type BranchInvocation struct {
	Invocation string `json:"invocation"`
	Thread     string `json:"thread"`
	First      int64  `json:"first"`
	Last       int64  `json:"last"` // the offset of its newest event
	Title      string `json:"title,omitempty"`
}

// Limits of [Branches].
const (
	maxStretches         = 1000
	maxBranchInvocations = 100
)

// Family is what a tree of branches is made of.
type Family struct {
	Session   tapedeck.Session
	At        int64              // as of this offset
	Jumps     []tapedeck.Event   // those of the session that take others back, inherited ones too; in any order
	Index     Index              // of the session, for the invocations
	Forks     []tapedeck.Session // of the session and its ancestors, and of these, as deep as is wanted
	Ancestors []tapedeck.Session // its parent, that one's parent, and so on
	Indexes   map[string]Index   // of forks and ancestors, by id, as far as they are wanted
}

// Branches returns the tree of branches around a session: its ancestors, oldest
// first, itself, what was taken back in it, newest first, and the forks of all of
// them. What was taken back several times is where it was taken back last; what
// was brought back is part of the session again. Of more than 1,000 jumps the
// oldest are passed over.
func Branches(f Family) []Branch {
	var out []Branch
	for _, s := range slices.Backward(f.Ancestors) {
		out = append(out, f.relative(&s))
	}
	own := sessionBranch(&f.Session)
	own.Current, own.To = true, f.At
	jumps := f.jumps()
	own.Ranges = timelineOf(jumps, "").Ranges("", f.At)
	stretches := f.stretches(jumps)
	apart := f.apart(stretches)
	own.addInvocations(&f.Index, apart)
	out = append(out, own)
	for i := range stretches {
		b := &stretches[i]
		b.Parent = f.parentOf(stretches, b.From, b.Thread)
		b.addInvocations(&f.Index, apart)
	}
	out = append(out, stretches...)
	for i := range f.Forks {
		b := f.relative(&f.Forks[i])
		if b.Parent == f.Session.ID {
			b.Parent = f.parentOf(stretches, b.ForkAt, "")
		}
		out = append(out, b)
	}
	return out
}

// Cut reports whether [Branches] leaves out jumps, because there are more than 1,000.
func (f *Family) Cut() bool { return len(f.jumps()) > maxStretches }

func sessionBranch(s *tapedeck.Session) Branch {
	b := Branch{
		ID: s.ID, Kind: BranchMain, Session: s.ID, Parent: s.Parent, ForkAt: s.ForkedAt, From: s.ForkedAt, To: s.Head,
		Title: s.Title, Status: s.Status, At: &Time{s.Created},
	}
	switch {
	case s.Copy:
		b.Kind = BranchCopy
	case s.Parent != "":
		b.Kind = BranchFork
	}
	return b
}

// relative returns the branch of another session, with what began in it.
func (f *Family) relative(s *tapedeck.Session) Branch {
	b := sessionBranch(s)
	x := f.Indexes[s.ID]
	for i := range x.Invocations {
		if v := &x.Invocations[i]; v.First >= s.ForkedAt {
			b.addInvocation(v)
		}
	}
	return b
}

// jumps returns the events of f that are jumps, newest first.
func (f *Family) jumps() []tapedeck.Event {
	jumps := slices.DeleteFunc(slices.Clone(f.Jumps), func(e tapedeck.Event) bool {
		_, ok := e.Jump()
		return !ok || e.Offset >= f.At
	})
	slices.SortFunc(jumps, func(a, b tapedeck.Event) int { return int(max(-1, min(1, b.Offset-a.Offset))) })
	return jumps
}

// timelineOf returns the timeline of a thread; that of "" is that of threads
// which were never taken back by themselves.
func timelineOf(jumps []tapedeck.Event, thread string) *Timeline {
	var of []tapedeck.Jump
	for i := range jumps {
		if j, _ := jumps[i].Jump(); j.Takes(thread) {
			of = append(of, j)
		}
	}
	return NewTimeline(of)
}

// stretches returns what was taken back and is not in force, newest first.
func (f *Family) stretches(jumps []tapedeck.Event) []Branch {
	var out []Branch
	type lane struct {
		timeline *Timeline
		covered  []tapedeck.OffsetRange
	}
	lanes := map[string]*lane{}
	for i := range jumps[:min(len(jumps), maxStretches)] {
		e := &jumps[i]
		j, _ := e.Jump()
		l, ok := lanes[j.Thread]
		if !ok {
			l = &lane{timeline: timelineOf(jumps, j.Thread)}
			l.covered = l.timeline.Ranges(j.Thread, f.At)
			lanes[j.Thread] = l
		}
		hidden := cutOut(l.timeline.Ranges(j.Thread, j.Offset), l.timeline.Ranges(j.Thread, j.To))
		hidden = cutOut(hidden, l.covered)
		if len(hidden) == 0 {
			continue
		}
		l.covered = join(l.covered, hidden)
		out = append(out, Branch{
			ID: j.Marker, Kind: BranchRewound, Session: f.Session.ID, ForkAt: hidden[0].From,
			From: hidden[0].From, To: hidden[len(hidden)-1].To, Ranges: hidden,
			Marker: j.Marker, Thread: j.Thread, with: j.With, Verb: e.Type, By: e.Actor, At: &Time{e.Time},
		})
	}
	return out
}

// parentOf returns the branch in which the event before an offset is.
func (f *Family) parentOf(stretches []Branch, offset int64, thread string) string {
	for i := range stretches {
		b := &stretches[i]
		if b.takes(thread) && b.has(offset-1) {
			return b.ID
		}
	}
	return f.Session.ID
}

// takes reports whether the branch is of a thread, too.
func (b *Branch) takes(thread string) bool {
	return b.Thread == "" || b.Thread == thread || slices.Contains(b.with, thread)
}

func (b *Branch) has(offset int64) bool {
	return slices.ContainsFunc(b.Ranges, func(r tapedeck.OffsetRange) bool { return r.From <= offset && offset < r.To })
}

// apart returns which invocations are in what was taken back of their thread
// alone, and so not in branches of all threads.
func (f *Family) apart(stretches []Branch) map[string]bool {
	out := map[string]bool{}
	for i := range stretches {
		for _, v := range f.Index.Invocations {
			if b := &stretches[i]; b.Thread != "" && b.takes(v.Thread) && b.has(v.First) {
				out[v.Invocation] = true
			}
		}
	}
	return out
}

func (b *Branch) addInvocations(x *Index, apart map[string]bool) {
	for i := range x.Invocations {
		v := &x.Invocations[i]
		switch {
		case !b.has(v.First) || !b.takes(v.Thread) || b.Thread == "" && apart[v.Invocation]:
		default:
			b.addInvocation(v)
		}
	}
}

func (b *Branch) addInvocation(v *IndexedInvocation) {
	if len(b.Invocations) >= maxBranchInvocations {
		b.More++
		return
	}
	b.Invocations = append(b.Invocations, BranchInvocation{
		Invocation: v.Invocation, Thread: v.Thread, First: v.First, Last: v.Last, Title: v.Title,
	})
}
