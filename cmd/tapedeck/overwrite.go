package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newOverwrite(e *env) *cobra.Command {
	var o api.Overwrite
	var text, instance string
	c := &cobra.Command{
		Use:   "overwrite SESSION --from-point POINT",
		Short: "Revert the events after a point, so that new ones take their place",
		Long: `Overwrite keeps the events up to and including the one at --from-point and reverts
the events after it. New events take their place.

The point is the sequence number of the last event to keep in the context of an
agent, which tapedeck context shows: then only the events of its thread are reverted,
and those of the sub-agents that it has started. Or it is as @41 an offset of the
session: then the events of all threads are. If a number is inside a run, the agent is
not told of the cut. If an offset is, the agent is told that the run was interrupted,
and overwrite prints a warning.

Nothing is deleted: tapedeck undo restores the events. To overwrite and run a task
in one command, see: tapedeck run --help`,
		Example: `  tapedeck overwrite ses_01J… --from-point 4
  tapedeck overwrite ses_01J… --from-point @41
  tapedeck run "try it another way" --overwrite ses_01J… --from-point 4`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := readPoint(c, "from-point", text, instance)
			if err == nil && !p.given {
				err = usageError("overwrite needs --from-point POINT, the last event to keep")
			}
			if err != nil {
				return err
			}
			o.Session, p.thread, p.within, p.reverts = args[0], o.Thread, o.Thread, true
			return e.jump(c.Context(), "overwrote", func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return e.overwrite(ctx, conn, o, &p)
			})
		},
	}
	c.Flags().StringVar(&text, "from-point", "", pointUsage("the last event to keep", "required"))
	c.Flags().StringVar(&instance, "instance", "", instanceUsage)
	c.Flags().StringVar(&o.Thread, "thread", "", "revert only events of this thread; a point N counts in its context (default: main for N, all threads for @N)")
	c.Flags().BoolVar(&o.Force, "force", false, "overwrite even if that makes reverted events active again")
	return c
}

// overwrite reverts the events after a point.
func (e *env) overwrite(ctx context.Context, conn *connection, o api.Overwrite, p *point) (api.Rewound, error) {
	at, err := p.place(ctx, conn, o.Session)
	if err != nil {
		return api.Rewound{}, err
	}
	o.FromOffset, o.Thread, o.Context = at.First, at.thread, at.Context
	done, err := conn.Overwrite(ctx, o)
	if err == nil && done.Marker != "" {
		e.report(at)
	}
	return done, conn.forceHint(ctx, o.Session, err)
}
