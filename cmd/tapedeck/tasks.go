package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newTasks(e *env) *cobra.Command {
	o := client.TaskOptions{}
	c := viewCommand(e, "tasks", "List the tasks of a session and how they ended",
		`Tasks lists the tasks that agents received in a session, oldest first. It shows
the invocation of each and the offset at which it began; tapedeck rewind takes
either. Reverted tasks are left out.`,
		func(ctx context.Context, c *connection, session string, at int64) (api.Tasks, error) {
			if o.Limit < 1 || o.Limit > 10_000 {
				return api.Tasks{}, usageError("--limit takes a number from 1 to 10000")
			}
			if o.Before < 0 {
				return api.Tasks{}, usageError("--before takes an offset, from 0")
			}
			o.At = &at
			return c.Tasks(ctx, session, o)
		}, printTasks)
	c.Flags().IntVar(&o.Limit, "limit", 100, "list at most this many, the newest ones")
	c.Flags().Int64Var(&o.Before, "before", 0, "only tasks that began before this offset (default: the newest)")
	return c
}

func printTasks(p terminal.Pen, v api.Tasks) (err error) {
	if v.Earlier > 0 && len(v.Tasks) > 0 {
		err = p.Printf("%s\n", p.Paint(terminal.Dim, fmt.Sprintf("… %s before these: --limit N lists more, --before %d lists the earlier ones", terminal.Count(v.Earlier, "task"), v.Tasks[0].Offset)))
	}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		thread := ""
		if t.Thread != tapedeck.MainThread {
			thread = p.Paint(terminal.Blue, "["+t.Thread+"]") + " "
		}
		if err == nil {
			err = p.Printf("%s  %s  %s  %s%s\n", p.Paint(terminal.Dim, fmt.Sprintf("%6d", t.First)), t.Invocation,
				p.Paint(statusStyle(t.Status), fmt.Sprintf("%-11s", t.Status)), thread, terminal.Brief(t.Text, max(20, p.Width-54)))
		}
	}
	return err
}
