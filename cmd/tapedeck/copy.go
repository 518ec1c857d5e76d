package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newCopy(e *env) *cobra.Command {
	f := api.Fork{Copy: true}
	var text, instance, thread, title string
	c := &cobra.Command{
		Use:   "copy SESSION",
		Short: "Create an independent session with the events of another one",
		Long: `Copy creates a session with the events of another session, up to and including the
one at --to-point. Unlike a fork, a copy is independent: it is not listed as a
branch of the session that it was copied from. Copy prints the id of the new
session. To copy and run a task in one command, see: tapedeck run --help

The point is the sequence number of the last event to copy in the context of an
agent, which tapedeck context shows, or as @119 an offset of the session. If a number
is inside a run, the agent is not told of the cut. If an offset is, the agent is told
that the run was interrupted, and copy prints a warning. After the last output of a
run, the end of the run is copied, too.`,
		Example: `  tapedeck copy ses_01J…
  tapedeck copy ses_01J… --to-point 4
  tapedeck copy ses_01J… --to-point 4 --thread review
  tapedeck copy ses_01J… --to-point @119`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			f.Parent = args[0]
			p, err := readPoint(c, "to-point", text, instance)
			switch {
			case err != nil:
				return err
			case !p.given && (instance != "" || thread != ""):
				return usageError("--instance and --thread need --to-point")
			}
			p.thread = thread
			if c.Flags().Changed("title") {
				f.Title = &title
			}
			return e.withExisting(c.Context(), func(conn *connection) error { return e.copyTo(c.Context(), conn, f, &p) })
		},
	}
	c.Flags().StringVar(&text, "to-point", "", pointUsage("the last event to copy", "default: all"))
	c.Flags().StringVar(&instance, "instance", "", instanceUsage)
	c.Flags().StringVar(&thread, "thread", "", "count a point N in the context of this thread (default main)")
	c.Flags().StringVar(&title, "title", "", "title of the copy (default: that of the session)")
	c.Flags().StringVar(&f.ID, "id", "", "id of the copy (default: a new id)")
	return c
}

// copyTo copies a session up to a point.
func (e *env) copyTo(ctx context.Context, conn *connection, f api.Fork, p *point) error {
	at, err := p.place(ctx, conn, f.Parent)
	if err != nil {
		return err
	}
	if at != nil {
		f.At, f.Context = &at.First, at.Context
	}
	if err := e.fork(ctx, conn, f); err != nil {
		return err
	}
	e.report(at)
	return nil
}
