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
		Short: "Keep a session up to an offset; what follows takes the place of the rest",
		Long: `Overwrite keeps the events up to and including the one at --from-point, and
takes back those after it. What follows takes their place.

The point is the offset of the last event to keep or, as seq:4, its sequence
number in the context of an agent, which tapedeck context shows. A point in the
middle of a run cuts the run off, and overwrite warns of it.

Nothing is deleted: tapedeck undo takes it back. To overwrite and go on at once,
see: tapedeck run --help`,
		Example: `  tapedeck overwrite ses_01J… --from-point 41
  tapedeck overwrite ses_01J… --from-point seq:4
  tapedeck run "try it another way" --overwrite ses_01J… --from-point 41`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := readPoint(c, "from-point", text, instance)
			if err == nil && !p.given {
				err = usageError("overwrite needs --from-point POINT, the last event to keep")
			}
			if err != nil {
				return err
			}
			o.Session, p.thread, p.within = args[0], o.Thread, o.Thread
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return e.overwrite(ctx, conn, o, &p)
			})
		},
	}
	c.Flags().StringVar(&text, "from-point", "", pointUsage("the last event to keep", "required"))
	c.Flags().StringVar(&instance, "instance", "", instanceUsage)
	c.Flags().StringVar(&o.Thread, "thread", "", "only in this thread (default: in all)")
	c.Flags().BoolVar(&o.Force, "force", false, "even if that makes reverted events active again")
	return c
}

// overwrite reverts what comes after a point.
func (e *env) overwrite(ctx context.Context, conn *connection, o api.Overwrite, p *point) (api.Rewound, error) {
	at, err := p.place(ctx, conn, o.Session)
	if err != nil {
		return api.Rewound{}, err
	}
	o.FromOffset = at.First
	done, err := conn.Overwrite(ctx, o)
	if err == nil && done.Marker != "" {
		e.report(at)
	}
	return done, conn.forceHint(ctx, o.Session, err)
}
