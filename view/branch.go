package view

import (
	"slices"

	"github.com/tapedeck/tapedeck"
)

// The kinds of a [Branch].
const (
	BranchMain    = "main"    // a session without a parent
	BranchFork    = "fork"    // a session that was forked from its parent
	BranchCopy    = "copy"    // a fork that is meant as an independent session
	BranchRewound = "rewound" // events that were reverted in a session
)

// A Branch is one line of conversation in a tree of branches. All branches of a
// tree share a beginning.
type Branch struct {
	with []string // the threads of the jump's member "with", which it reverted too

	ID      string `json:"id"` // the session's id; for reverted events, the marker of their jump
	Kind    string `json:"kind"`
	Session string `json:"session"`           // the session whose log has the events
	Parent  string `json:"parent,omitempty"`  // the branch that this one leaves; "" for the root
	ForkAt  int64  `json:"fork_at"`           // the offset at which it leaves its parent
	From    int64  `json:"from"`              // offset of its first event; its events may have gaps between From and To
	To      int64  `json:"to"`                // the offset after its last event
	Current bool   `json:"current,omitempty"` // the session that was asked for

	Ranges      []tapedeck.OffsetRange `json:"ranges,omitempty"`      // the offsets of its events; set for the session that was asked for and for what was reverted in it
	Invocations []BranchInvocation     `json:"invocations,omitempty"` // the first 100 invocations of Ranges; for another session, those that began after its fork
	More        int                    `json:"invocations_left_out,omitempty"`

	Title  string          `json:"title,omitempty"` // the session's; absent for reverted events
	Agent  string          `json:"agent,omitempty"` // the session's; absent for reverted events
	Status tapedeck.Status `json:"status,omitempty"`

	Marker string `json:"marker,omitempty"` // pass it to undo to make the reverted events active again
	Thread string `json:"thread,omitempty"` // the only thread that was reverted; "" for all
	Verb   string `json:"verb,omitempty"`   // the type of the event that reverted it
	By     string `json:"by,omitempty"`     // the actor who reverted it
	At     *Time  `json:"at,omitempty"`     // the time when it was reverted; for a session, the time when it was created
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
	maxRevertedBranches  = 1000
	maxBranchInvocations = 100
)

// A Tree is the tree of branches around a session.
type Tree struct {
	Branches []Branch // in the order of [Branches]
	Cut      bool     // the tree is larger than a limit of docs/views.md, so a part of it is left out
}

// A BranchInput has everything from which [Branches] builds a tree.
type BranchInput struct {
	Session   tapedeck.Session
	At        int64              // the tree is as of this offset
	Jumps     []tapedeck.Event   // jumps of the session, inherited ones too, in any order; other events are ignored
	Index     Index              // the index of the session, which gives the invocations
	Forks     []tapedeck.Session // forks of the session and its ancestors, and forks of these to any depth
	Ancestors []tapedeck.Session // the parent, then its parent, and so on
	Indexes   map[string]Index   // the indexes of forks and ancestors, by session id; a session without an index gets no invocations
}

// Branches returns the tree of branches around a session. It lists the
// ancestors, oldest first, then the session itself, then what was reverted in
// it, newest first, and then all forks. An event that was reverted several
// times belongs to the newest of these jumps. What an attempt of a run has
// replaced is in no branch. Restored events belong to the
// session again. If there are more than 1,000 jumps, the oldest ones are
// ignored.
func Branches(f BranchInput) []Branch {
	var out []Branch
	for _, s := range slices.Backward(f.Ancestors) {
		out = append(out, f.otherBranch(&s))
	}
	own := sessionBranch(&f.Session)
	own.Current, own.To = true, f.At
	jumps := f.sortedJumps()
	own.Ranges = timelineOf(jumps, "").Ranges("", f.At)
	reverted := f.reverted(jumps)
	separate := f.separate(reverted)
	own.addInvocations(&f.Index, separate)
	out = append(out, own)
	for i := range reverted {
		b := &reverted[i]
		b.Parent = f.parentOf(reverted, b.From, b.Thread)
		b.addInvocations(&f.Index, separate)
	}
	out = append(out, reverted...)
	for i := range f.Forks {
		b := f.otherBranch(&f.Forks[i])
		if b.Parent == f.Session.ID {
			b.Parent = f.parentOf(reverted, b.ForkAt, "")
		}
		out = append(out, b)
	}
	return out
}

// Cut reports whether [Branches] leaves out jumps, because there are more than 1,000.
func (f *BranchInput) Cut() bool {
	n := 0
	for _, e := range f.sortedJumps() {
		if j, _ := e.Jump(); !j.Attempt {
			n++
		}
	}
	return n > maxRevertedBranches
}

func sessionBranch(s *tapedeck.Session) Branch {
	b := Branch{
		ID: s.ID, Kind: BranchMain, Session: s.ID, Parent: s.Parent, ForkAt: s.ForkedAt, From: s.ForkedAt, To: s.Head,
		Title: s.Title, Agent: s.Agent, Status: s.Status, At: &Time{s.Created},
	}
	switch {
	case s.Copy:
		b.Kind = BranchCopy
	case s.Parent != "":
		b.Kind = BranchFork
	}
	return b
}

// otherBranch returns the branch of another session, with the invocations that
// began in it.
func (f *BranchInput) otherBranch(s *tapedeck.Session) Branch {
	b := sessionBranch(s)
	x := f.Indexes[s.ID]
	for i := range x.Invocations {
		if v := &x.Invocations[i]; v.First >= s.ForkedAt {
			b.addInvocation(v)
		}
	}
	return b
}

// sortedJumps returns the jumps before f.At, newest first.
func (f *BranchInput) sortedJumps() []tapedeck.Event {
	jumps := slices.DeleteFunc(slices.Clone(f.Jumps), func(e tapedeck.Event) bool {
		_, ok := e.Jump()
		return !ok || e.Offset >= f.At
	})
	slices.SortFunc(jumps, func(a, b tapedeck.Event) int { return int(max(-1, min(1, b.Offset-a.Offset))) })
	return jumps
}

// timelineOf returns the timeline of a thread. The timeline of "" applies to
// all threads that no jump reverted separately.
func timelineOf(jumps []tapedeck.Event, thread string) *Timeline {
	var of []tapedeck.Jump
	for i := range jumps {
		if j, _ := jumps[i].Jump(); j.Reverts(thread) {
			of = append(of, j)
		}
	}
	return NewTimeline(of)
}

// reverted returns a branch for each jump whose events are still reverted,
// newest first.
func (f *BranchInput) reverted(jumps []tapedeck.Event) []Branch {
	var out []Branch
	type lane struct {
		timeline *Timeline
		covered  []tapedeck.OffsetRange
	}
	lanes := map[string]*lane{}
	for i, listed := 0, 0; i < len(jumps) && listed < maxRevertedBranches; i++ {
		e := &jumps[i]
		j, _ := e.Jump()
		if !j.Attempt {
			listed++
		}
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
		if j.Attempt { // no branch: it was no decision of a user
			continue
		}
		out = append(out, Branch{
			ID: j.Marker, Kind: BranchRewound, Session: f.Session.ID, ForkAt: hidden[0].From,
			From: hidden[0].From, To: hidden[len(hidden)-1].To, Ranges: hidden,
			Marker: j.Marker, Thread: j.Thread, with: j.With, Verb: e.Type, By: e.Actor, At: &Time{e.Time},
		})
	}
	return out
}

// parentOf returns the id of the branch that has the event before an offset.
func (f *BranchInput) parentOf(reverted []Branch, offset int64, thread string) string {
	for i := range reverted {
		b := &reverted[i]
		if b.covers(thread) && b.has(offset-1) {
			return b.ID
		}
	}
	return f.Session.ID
}

// covers reports whether the branch has events of a thread.
func (b *Branch) covers(thread string) bool {
	return b.Thread == "" || b.Thread == thread || slices.Contains(b.with, thread)
}

func (b *Branch) has(offset int64) bool {
	return slices.ContainsFunc(b.Ranges, func(r tapedeck.OffsetRange) bool { return r.From <= offset && offset < r.To })
}

// separate returns the invocations whose thread was reverted alone. They belong
// to the branch of that jump and to no branch that covers all threads.
func (f *BranchInput) separate(reverted []Branch) map[string]bool {
	out := map[string]bool{}
	for i := range reverted {
		for _, v := range f.Index.Invocations {
			if b := &reverted[i]; b.Thread != "" && b.covers(v.Thread) && b.has(v.First) {
				out[v.Invocation] = true
			}
		}
	}
	return out
}

func (b *Branch) addInvocations(x *Index, separate map[string]bool) {
	for i := range x.Invocations {
		v := &x.Invocations[i]
		switch {
		case !b.has(v.First) || !b.covers(v.Thread) || b.Thread == "" && separate[v.Invocation]:
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
