package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/view"
)

// viewCommand is a command that shows a view of a session. fetch gets it; print
// shows it without --json.
func viewCommand(e *env, use, short, long string, fetch func(ctx context.Context, c *connection, session string, at int64) (json.RawMessage, error), print func(p pen, raw json.RawMessage) error) *cobra.Command {
	var at int64
	c := &cobra.Command{
		Use:     use + " SESSION",
		Short:   short,
		Long:    long,
		Example: fmt.Sprintf("  tapedeck %s ses_01J…\n  tapedeck %s ses_01J… --at 120 --json", use, use),
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkAt(at); err != nil {
				return err
			}
			return e.reading(c.Context(), func(conn *connection) error {
				raw, err := fetch(c.Context(), conn, args[0], at)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(raw)
				}
				return print(e.pen(), raw)
			})
		},
	}
	atFlag(c, &at)
	return c
}

// atFlag adds the flag that says as of when a view is; without it, at is -1.
func atFlag(c *cobra.Command, at *int64) {
	c.Flags().Int64Var(at, "at", -1, "as it was before the event at this offset, the first one left out (default: as it is)")
	c.Flags().Lookup("at").DefValue = "0" // what pflag would print is not what it means
}

func checkAt(at int64) error {
	if at < -1 {
		return usageError("--at takes an offset, from 0")
	}
	return nil
}

// decodeView decodes what the server sent.
func decodeView[T any](raw json.RawMessage) (T, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, tapedeck.Errorf(tapedeck.Internal, "the server's answer cannot be read: %w", err).
			WithHint("is it of another version? --json prints it as it is")
	}
	return v, nil
}

func newSummary(e *env) *cobra.Command {
	return viewCommand(e, "summary", "Say how long a session took, what it used and what it changed",
		`Summary says how long the runs of a session took, how many tokens they used, at
what cost, which tools they called and which files they changed. It counts what
has happened, so what was taken back counts, too. A fork counts its own events
only.`,
		func(ctx context.Context, c *connection, session string, at int64) (json.RawMessage, error) {
			return c.Summary(ctx, session, at)
		}, printSummary)
}

func printSummary(p pen, raw json.RawMessage) error {
	s, err := decodeView[view.Summary](raw)
	if err != nil {
		return err
	}
	line := func(name, format string, args ...any) {
		if err == nil {
			err = p.printf("%s  %s\n", p.paint(dim, fmt.Sprintf("%-9s", name)), clean(fmt.Sprintf(format, args...)))
		}
	}
	line("status", "%s", s.Status)
	line("events", "%d%s", s.Events, orNothing(" and %d inherited", s.InheritedEvents))
	line("runs took", "%s", (time.Duration(s.DurationMS) * time.Millisecond).Round(100*time.Millisecond))
	line("turns", "%d%s", s.Turns, orNothing(", model calls %d", s.ModelTurns))
	cost := ""
	if s.CostUSD != nil {
		cost = fmt.Sprintf(", $%.4f", *s.CostUSD)
	}
	line("tokens", "%d in, %d out%s", s.Tokens.Input, s.Tokens.Output, cost)
	for _, t := range s.Tools {
		line("tool", "%s %d×%s", brief(t.Name, 40), t.Count, orNothing(", %d failed", t.Failed))
	}
	for _, f := range s.FilesModified {
		line("file", "%s", f)
	}
	if s.LinesAdded+s.LinesRemoved > 0 {
		line("lines", "+%d -%d", s.LinesAdded, s.LinesRemoved)
	}
	return err
}

// orNothing formats a number unless it is 0.
func orNothing(format string, n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

func newTasks(e *env) *cobra.Command {
	o := client.TaskOptions{}
	c := viewCommand(e, "tasks", "List what was asked in a session, and what became of it",
		`Tasks lists what agents were asked to do in a session, oldest first, with the
invocation and the offset at which each began: tapedeck rewind takes either.
What was taken back is not in it.`,
		func(ctx context.Context, c *connection, session string, at int64) (json.RawMessage, error) {
			if o.Limit < 1 || o.Limit > 10_000 {
				return nil, usageError("--limit takes a number from 1 to 10000")
			}
			if o.Before < 0 {
				return nil, usageError("--before takes an offset, from 0")
			}
			o.At = at
			return c.Tasks(ctx, session, o)
		}, printTasks)
	c.Flags().IntVar(&o.Limit, "limit", 100, "at most this many, the newest ones")
	c.Flags().Int64Var(&o.Before, "before", 0, "only those that began before this offset (default: the newest)")
	return c
}

func printTasks(p pen, raw json.RawMessage) error {
	v, err := decodeView[struct {
		Tasks   []view.Task
		Earlier int
	}](raw)
	if v.Earlier > 0 && err == nil && len(v.Tasks) > 0 {
		err = p.printf("%s\n", p.paint(dim, fmt.Sprintf("… %s before these: --limit N shows more, --before %d those before", count(v.Earlier, "task"), v.Tasks[0].Offset)))
	}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		thread := ""
		if t.Thread != tapedeck.MainThread {
			thread = p.paint(blue, "["+t.Thread+"]") + " "
		}
		if err == nil {
			err = p.printf("%s  %s  %s  %s%s\n", p.paint(dim, fmt.Sprintf("%6d", t.First)), t.Invocation,
				p.paint(statusStyle(t.Status), fmt.Sprintf("%-11s", t.Status)), thread, brief(t.Text, max(20, p.width-54)))
		}
	}
	return err
}

func newBranches(e *env) *cobra.Command {
	return viewCommand(e, "branches", "Show the tree of forks and of what was taken back",
		`Branches shows the tree that a session is part of: the session it was forked
from, its forks, and what was taken back in it, each with the offset at which it
leaves. What was taken back can be brought back: tapedeck undo takes the marker.`,
		func(ctx context.Context, c *connection, session string, at int64) (json.RawMessage, error) {
			return c.Branches(ctx, session, at)
		}, printBranches)
}

func printBranches(p pen, raw json.RawMessage) error {
	v, err := decodeView[struct{ Branches []view.Branch }](raw)
	if err != nil {
		return err
	}
	children, known := map[string][]int{}, map[string]bool{}
	for i := range v.Branches {
		known[v.Branches[i].ID] = true
	}
	var roots []int
	for i := range v.Branches {
		if b := &v.Branches[i]; known[b.Parent] && b.Parent != b.ID {
			children[b.Parent] = append(children[b.Parent], i)
		} else {
			roots = append(roots, i)
		}
	}
	var show func(is []int, depth int) error
	show = func(is []int, depth int) error {
		for _, i := range is {
			b := &v.Branches[i]
			if err := p.printf("%s%s\n", strings.Repeat("  ", depth), p.branchLine(b)); err != nil {
				return err
			}
			if err := show(children[b.ID], depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return show(roots, 0)
}

func (p pen) branchLine(b *view.Branch) string {
	name := b.ID
	if b.Current {
		name = p.paint(bold, name)
	}
	kind := b.Kind
	switch b.Verb {
	case tapedeck.SessionCleared:
		kind = "cleared"
	case tapedeck.SessionOverwritten:
		kind = "overwritten"
	}
	line := fmt.Sprintf("%s  %s", name, p.paint(dim, kind))
	if b.Parent != "" {
		line += p.paint(dim, fmt.Sprintf(" at %d", b.ForkAt))
	}
	if b.Kind == view.BranchRewound {
		line += p.paint(dim, fmt.Sprintf(", %d to %d", b.From, b.To))
	}
	if b.Title != "" {
		line += "  " + brief(b.Title, 50)
	}
	return line
}

// wholeContext is the most messages of a context: points count from the first one.
const wholeContext = 10_000

func newContext(e *env) *cobra.Command {
	o := client.ContextOptions{Limit: wholeContext}
	c := viewCommand(e, "context", "Print the messages that a model would be given",
		`Context prints the conversation as a model is given it to go on: system, user,
assistant and tool messages in the form of chat completions. It is always
well-formed: a tool call that was never answered is answered here.

Before each message stands its sequence number and the offsets of its first and
last event. --to-point and --from-point of other commands take the number as
seq:N, or the last offset.`,
		func(ctx context.Context, c *connection, session string, at int64) (json.RawMessage, error) {
			o.At = at
			return c.Context(ctx, session, o)
		}, printContext)
	c.Flags().StringVar(&o.Instance, "instance", "", "of this agent instance (default: the main thread)")
	c.Flags().StringVar(&o.Thread, "thread", "", "of this thread (default main)")
	return c
}

// placeOf returns sequence number and offsets of a message, such as "seq:3 12-17".
func placeOf(p view.ContextPlace) string {
	if p.Sequence == nil || p.Offset == nil {
		return "-" // an answer that no tool gave
	}
	place := fmt.Sprintf("seq:%d %d", *p.Sequence, *p.Offset)
	switch {
	case p.EndOffset == nil:
		return place + "-…"
	case *p.EndOffset != *p.Offset:
		return fmt.Sprintf("%s-%d", place, *p.EndOffset)
	}
	return place
}

func printContext(p pen, raw json.RawMessage) error {
	v, err := decodeView[struct {
		Messages []view.ContextMessage
		Places   []view.ContextPlace
		Earlier  int
	}](raw)
	if v.Earlier > 0 && err == nil {
		err = p.printf("%s\n", p.paint(dim, fmt.Sprintf("… %d messages before these are left out", v.Earlier)))
	}
	for i, m := range v.Messages {
		if err == nil {
			place := ""
			if i < len(v.Places) {
				place = placeOf(v.Places[i])
			}
			err = p.printf("%s %s\n", p.paint(dim, fmt.Sprintf("%-18s %-9s", place, m.Role)), strings.ReplaceAll(clean(m.Content), "\n", "\n"+strings.Repeat(" ", 29)))
		}
		for _, k := range m.ToolCalls {
			if err == nil {
				err = p.printf("%29s%s %s\n", "", p.paint(yellow, brief(k.Function.Name, 64)), p.paint(dim, brief(k.Function.Arguments, max(20, p.width-76))))
			}
		}
	}
	return err
}
