package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/view"
)

// A point is the value of a flag that names the last event to keep: by its sequence
// number in the context of an agent, or as @N by its offset in the session.
type point struct {
	flag     string
	given    bool
	number   int64
	sequence bool
	instance string // the sequence number counts in the context of this instance; "" for that of a thread
	thread   string // likewise, of this thread
	within   string // an offset cuts this thread; "" for all
	reverts  bool   // a number cuts the thread of its context only; in a copy it cuts all
}

// pointUsage describes the flag of a point; without is its default.
func pointUsage(about, without string) string {
	return about + ": its sequence number `N` in the context, or @N, its offset in the session (" + without + ")"
}

const instanceUsage = "count a point N in the context of this agent instance"

// readPoint reads the flags of a point.
func readPoint(c *cobra.Command, flag, text, instance string) (point, error) {
	p := point{flag: flag, given: c.Flags().Changed(flag), instance: instance}
	if !p.given {
		return p, nil
	}
	rest, offset := strings.CutPrefix(text, "@")
	n, err := strconv.ParseUint(rest, 10, 62)
	if err != nil {
		return p, usageError("--%s takes the last event to keep, from 0: its sequence number N in the context, or @N, its offset in the session", flag)
	}
	p.number, p.sequence = int64(n), !offset
	switch {
	case instance == "":
		return p, nil
	case offset:
		return p, usageError("--instance counts sequence numbers, and @%d is an offset", n)
	}
	if err := tapedeck.CheckID("the instance", instance); err != nil {
		return p, &exitError{exitUsage, err}
	}
	return p, nil
}

// A cut says where a point divides a session.
type cut struct {
	Last     int64  `json:"last_kept"` // -1 if nothing is kept
	First    int64  `json:"first_not_kept"`
	Sequence *int64 `json:"sequence_number,omitempty"` // of the point, if the user gave it
	Moved    *int64 `json:"moved_from,omitempty"`      // the offset that was given, if the end of the run after it is kept, too
	Inside   []span `json:"inside,omitempty"`          // the runs that the point cuts in two, if it is an offset

	Context *view.ContextCut `json:"context,omitempty"` // of a point that is given by its sequence number

	thread string // that is cut; "" for all
	end    int64  // of a point that is given by its sequence number: the last offset that tapedeck context shows for it
}

// A span is the part of a log from the first event of a run to its last.
type span struct {
	Invocation string `json:"invocation"`
	First      int64  `json:"first"`
	Last       *int64 `json:"last,omitempty"` // nil if it is still running
}

// place finds the point in a session. It returns nil if no point was given.
func (p *point) place(ctx context.Context, c *connection, session string) (*cut, error) {
	if !p.given {
		return nil, nil
	}
	s, err := c.Session(ctx, session)
	if err != nil {
		return nil, err
	}
	out := &cut{Last: p.number, First: p.number + 1, thread: p.within}
	if p.sequence {
		if out, err = p.count(ctx, c, &s); err != nil {
			return nil, err
		}
	}
	if out.First > s.Head {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "session %s has no event at offset %d; its last one is at %d", s.ID, p.number, s.Head-1)
	}
	if out.Context != nil && len(out.Context.Uncalled) > 0 {
		return out, nil
	}
	return out, p.inspect(ctx, c, &s, out)
}

// count finds a point that is given by its sequence number.
func (p *point) count(ctx context.Context, c *connection, s *tapedeck.Session) (*cut, error) {
	o := client.ContextOptions{Instance: p.instance, Thread: p.thread, Limit: wholeContext}
	if p.instance != "" {
		o.Thread = "" // the instance has its thread
	}
	v, err := c.contextOf(ctx, s.ID, o)
	switch {
	case err != nil:
		return nil, err
	case v.Earlier > 0:
		return nil, tapedeck.Errorf(tapedeck.TooLarge, "the context is too long to count its events").WithHint("pass an offset, as @N, to --%s", p.flag)
	case len(v.Events) == 0:
		return nil, c.noContext(ctx, s.ID, &v)
	case p.number >= int64(len(v.Events)):
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the context has %d events, so there is no sequence number %d", len(v.Events), p.number).
			WithHint("tapedeck context %s%s shows the numbers", s.ID, p.where())
	}
	last := &v.Events[p.number]
	first, uncalled := view.CutContext(v.Events, int(p.number))
	if first < 0 {
		first = s.Head
	}
	out := &cut{Last: first - 1, First: first, Sequence: &p.number, end: last.Offset, Context: &view.ContextCut{Thread: v.Thread, Uncalled: uncalled}}
	if last.EndOffset != nil {
		out.end = *last.EndOffset
	}
	if p.reverts {
		out.thread = v.Thread
	}
	return out, nil
}

// where returns the flags of the context in which the point counts.
func (p *point) where() string {
	switch {
	case p.instance != "":
		return " --instance " + p.instance
	case p.thread != "":
		return " --thread " + p.thread
	}
	return ""
}

// inspect finds the runs that a cut divides. If a run has no output after the cut,
// the cut moves behind its end, because the run was not interrupted. A cut in the context
// of an agent interrupts no run: its agent is not told of it.
func (p *point) inspect(ctx context.Context, c *connection, s *tapedeck.Session, at *cut) error {
	runs, err := c.openRuns(ctx, s.ID, at.First, at.thread)
	if err != nil || len(runs) == 0 || at.First == s.Head {
		return err
	}
	if begun := slices.MinFunc(runs, func(a, b openRun) int { return cmp.Compare(a.Offset, b.Offset) }); at.Sequence != nil && begun.Offset > at.end {
		at.Last, at.First = begun.Offset-1, begun.Offset // the run has no output yet: keep only its task
		return nil
	}
	rest, err := c.rest(ctx, s, at.First, runs)
	if err != nil {
		return err
	}
	if rest.quiet {
		if given := at.Last; at.Sequence == nil {
			at.Moved = &given
		}
		at.Last, at.First = rest.end, rest.end+1
		return nil
	}
	if at.Sequence != nil {
		return nil
	}
	for _, r := range runs {
		if r.Parent != "" { // a sub-agent is cut with the agent that started it
			continue
		}
		one := span{Invocation: r.Invocation, First: r.first}
		if end, ok := rest.ends[r.Invocation]; ok {
			one.Last = &end
		}
		at.Inside = append(at.Inside, one)
	}
	return nil
}

// An openRun is a run that has not ended at a cut.
type openRun struct {
	view.Run
	first int64 // offset of its first message, which is its task; of the run, if it has none
}

// openRuns returns the runs that have not ended before an offset, in one thread or,
// for "", in all.
func (c *connection) openRuns(ctx context.Context, session string, at int64, thread string) (open []openRun, err error) {
	v, err := c.Snapshot(ctx, session, view.Query{At: new(at), Thread: thread})
	for _, r := range v.Runs {
		if r.Status != tapedeck.StatusRunning {
			continue
		}
		one := openRun{Run: r, first: r.Offset}
		for _, m := range v.Messages {
			if m.Invocation == r.Invocation {
				one.first = min(one.first, m.Offset)
			}
		}
		open = append(open, one)
	}
	return open, err
}

// A remainder describes the events after a cut, up to the end of the divided runs.
type remainder struct {
	ends  map[string]int64 // by invocation, the offset of the terminal event
	end   int64            // the last of these offsets
	quiet bool             // all runs end, and no event before that has content
}

// errEnough ends a read early.
var errEnough = errors.New("enough")

// maxRemainder is the number of events after a cut in which the end of a run is
// searched.
const maxRemainder = 10_000

// rest reads the events after a cut until the divided runs have ended.
func (c *connection) rest(ctx context.Context, s *tapedeck.Session, from int64, runs []openRun) (remainder, error) {
	r := remainder{ends: map[string]int64{}, quiet: true}
	open := map[string]bool{}
	for _, run := range runs {
		open[run.Invocation] = true
	}
	o := client.PageOptions{}
	o.From = from
	err := c.each(ctx, s.ID, min(s.Head, from+maxRemainder), o, func(e *tapedeck.Event) error {
		switch {
		case len(open) == 0:
			return errEnough
		case open[e.Invocation] && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError):
			delete(open, e.Invocation)
			r.ends[e.Invocation], r.end = e.Offset, e.Offset
		case !open[e.Invocation] || !closing[e.Type]:
			r.quiet = false
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	r.quiet = r.quiet && len(open) == 0
	return r, err
}

// closing are the types of events at the end of a run that have no content.
var closing = map[string]bool{
	tapedeck.TextMessageEnd: true, tapedeck.ReasoningMessageEnd: true, tapedeck.ReasoningEnd: true,
	tapedeck.StepFinished: true, tapedeck.UsageReported: true, tapedeck.AgentLinked: true,
}

// report prints which events were kept, and a warning for each run that the cut
// divides. With --json it prints the cut.
func (e *env) report(at *cut) {
	if at == nil {
		return
	}
	if e.json {
		b, _ := json.Marshal(map[string]any{"point": at}) // numbers and ids only
		fmt.Fprintf(e.stderr, "%s\n", b)
		return
	}
	if at.Sequence != nil {
		fmt.Fprintf(e.stderr, "kept: the events up to and including number %d of the context (offset %d)\n", *at.Sequence, at.end)
	} else {
		fmt.Fprintf(e.stderr, "kept: the events up to and including offset %d\n", at.Last)
	}
	if at.Moved != nil {
		fmt.Fprintf(e.stderr, "offset %d is the last output of a run; the end of the run is kept, too\n", *at.Moved)
	}
	for _, r := range at.Inside {
		whole := ""
		if r.Last != nil {
			whole = fmt.Sprintf(" @%d keeps the whole run,", *r.Last)
		}
		fmt.Fprintf(e.stderr, "warning: the point is inside the run %s (%s): the agent is told that this run was interrupted;%s @%d leaves it out\n",
			r.Invocation, r.where(), whole, max(r.First-1, 0))
	}
}

// where returns the offsets of a run.
func (r *span) where() string {
	if r.Last == nil {
		return fmt.Sprintf("from offset %d on", r.First)
	}
	return fmt.Sprintf("offsets %d to %d", r.First, *r.Last)
}
