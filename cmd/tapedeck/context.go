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

Each line begins with the sequence number of the message and, after @, the offsets
of its first and last event. Tool calls have numbers of their own between them.
--to-point and --from-point of other commands take the sequence number or, as @N,
the last offset.`,
		func(ctx context.Context, c *connection, session string, at int64) (api.Context, error) {
			o.At = &at
			return c.Context(ctx, session, o)
		}, printContext)
	c.Flags().StringVar(&o.Instance, "instance", "", "context of this agent instance (default: that of the main thread)")
	c.Flags().StringVar(&o.Thread, "thread", "", "context of this thread (default main)")
	return c
}

func printContext(p terminal.Pen, v api.Context) (err error) {
	if v.Earlier > 0 {
		err = p.Printf("%s\n", p.Paint(terminal.Dim, fmt.Sprintf("… %d messages before these are left out", v.Earlier)))
	}
	for i, m := range v.Messages {
		if err == nil {
			place := ""
			if i < len(v.Places) {
				place = placeOf(v.Places[i])
			}
			err = p.Printf("%s %s\n", p.Paint(terminal.Dim, fmt.Sprintf("%-18s %-9s", place, m.Role)), strings.ReplaceAll(terminal.Clean(m.Content), "\n", "\n"+strings.Repeat(" ", 29)))
		}
		for _, k := range m.ToolCalls {
			if err == nil {
				err = p.Printf("%29s%s %s\n", "", p.Paint(terminal.Yellow, terminal.Brief(k.Function.Name, 64)), p.Paint(terminal.Dim, terminal.Brief(k.Function.Arguments, max(20, p.Width-76))))
			}
		}
	}
	return err
}

// placeOf returns sequence number and offsets of a message, such as "3 @12-17".
func placeOf(p view.ContextPlace) string {
	if p.Sequence == nil || p.Offset == nil {
		return "-" // the result of a tool call that has none in the log
	}
	place := fmt.Sprintf("%d @%d", *p.Sequence, *p.Offset)
	switch {
	case p.EndOffset == nil:
		return place + "-…"
	case *p.EndOffset != *p.Offset:
		return fmt.Sprintf("%s-%d", place, *p.EndOffset)
	}
	return place
}
