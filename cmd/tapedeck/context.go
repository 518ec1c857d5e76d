package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/view"
)

// wholeContext is the largest number of messages of a context. Points count from the
// first message, so a shorter part would not do.
const wholeContext = 10_000

func newContext(e *env) *cobra.Command {
	o := client.ContextOptions{Limit: wholeContext}
	c := viewCommand(e, "context", "Print the messages that a model receives",
		`Context prints the conversation as a model receives it with the next task: system,
user, assistant and tool messages in the format of chat completions. It is always
well-formed: a tool call without a result gets one here.

Each message and each tool call begins with its sequence number and, after @, the
offsets of its first and last event. --to-point and --from-point of other commands
take the sequence number or, as @N, the last offset.`,
		func(ctx context.Context, c *connection, session string, at int64) (api.Context, error) {
			o.At = &at
			return c.contextOf(ctx, session, o)
		}, printContext)
	c.Flags().StringVar(&o.Instance, "instance", "", "context of this agent instance (default: that of the main thread)")
	c.Flags().StringVar(&o.Thread, "thread", "", "context of this thread (default main)")
	return c
}

func printContext(p terminal.Pen, v api.Context) (err error) {
	if v.Earlier > 0 {
		err = p.Printf("%s\n", p.Paint(terminal.Dim, fmt.Sprintf("… %d messages before these are left out", v.Earlier)))
	}
	for _, l := range contextLines(p, &v) {
		if err == nil {
			err = p.Printf("%s %s\n", p.Paint(terminal.Dim, fmt.Sprintf("%-18s %-9s", placeOf(l.place), l.role)), l.text)
		}
	}
	return err
}

// A contextLine is a message or a tool call of a context.
type contextLine struct {
	place *view.ContextPlace // nil if it has none of its own
	role  string
	text  string
}

// contextLines returns the messages, each followed by its calls. Each number of the context
// has a line, also what the model does not get, such as an empty message.
func contextLines(p terminal.Pen, v *api.Context) (lines []contextLine) {
	calls, lineOf := map[string][]*view.ContextEvent{}, map[int]int{} // by id and by number
	for i := range v.Events {
		if e := &v.Events[i]; e.Type == view.CallEvent {
			calls[e.CallID()] = append(calls[e.CallID()], e)
		}
	}
	add := func(l contextLine) {
		if l.place != nil && l.place.Sequence != nil {
			lineOf[*l.place.Sequence] = len(lines)
		}
		lines = append(lines, l)
	}
	for i, m := range v.Messages {
		l := contextLine{role: m.Role, text: strings.ReplaceAll(terminal.Clean(m.Content), "\n", "\n"+strings.Repeat(" ", 29))}
		if i < len(v.Places) {
			l.place = &v.Places[i]
		}
		add(l)
		for n, k := range m.ToolCalls {
			l := contextLine{role: "call", text: p.Paint(terminal.Yellow, terminal.Brief(k.Function.Name, 64)) + " " + p.Paint(terminal.Dim, terminal.Brief(k.Function.Arguments, max(20, p.Width-76)))}
			if same := calls[k.ID]; len(same) > 0 && isBefore(same[0], v.Places, i+1+n) {
				l.place, calls[k.ID] = eventPlace(same[0]), same[1:]
			}
			add(l)
		}
	}
	return withUnsent(p, v.Events, lines, lineOf)
}

// isBefore reports whether a call comes before the place of an answer. A later call may have
// the same id.
func isBefore(call *view.ContextEvent, places []view.ContextPlace, answer int) bool {
	return answer >= len(places) || places[answer].Sequence == nil || call.Sequence < *places[answer].Sequence
}

// withUnsent adds the events that the model does not get, each after the event before it.
func withUnsent(p terminal.Pen, events []view.ContextEvent, lines []contextLine, lineOf map[int]int) (all []contextLine) {
	unsent, before := map[int][]contextLine{}, -1 // by the line before
	for i := range events {
		e := &events[i]
		if n, ok := lineOf[e.Sequence]; ok {
			before = n
			continue
		}
		role, _, _ := strings.Cut(strings.TrimPrefix(e.Type, "tool_"), "_")
		unsent[before] = append(unsent[before], contextLine{eventPlace(e), role, p.Paint(terminal.Dim, "(the model does not get it)")})
	}
	all = append(all, unsent[-1]...)
	for n, l := range lines {
		all = append(append(all, l), unsent[n]...)
	}
	return all
}

func eventPlace(e *view.ContextEvent) *view.ContextPlace {
	return &view.ContextPlace{Sequence: &e.Sequence, Offset: &e.Offset, EndOffset: e.EndOffset}
}

// placeOf returns sequence number and offsets, such as "3 @12-17".
func placeOf(p *view.ContextPlace) string {
	switch {
	case p == nil:
		return ""
	case p.Offset == nil:
		return "-" // the result of a tool call that has none in the log
	}
	place := fmt.Sprintf("@%d", *p.Offset)
	if p.Sequence != nil {
		place = fmt.Sprintf("%d %s", *p.Sequence, place)
	}
	switch {
	case p.EndOffset == nil:
		return place + "-…"
	case *p.EndOffset != *p.Offset:
		return fmt.Sprintf("%s-%d", place, *p.EndOffset)
	}
	return place
}
