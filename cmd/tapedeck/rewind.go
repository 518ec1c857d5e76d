package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newRewind(e *env) *cobra.Command {
	r := api.Rewind{}
	var to int64
	c := &cobra.Command{
		Use:   "rewind SESSION (--before INVOCATION | --to OFFSET)",
		Short: "Take a session back to what it was before an event",
		Long: `Rewind takes a session back to what it was before an invocation began, or
before the event at an offset. A run that is in the way is cancelled first.

Nothing is deleted: the rewind is an event of the session. It prints a marker,
with which tapedeck undo takes it back.

A place that was reverted before is refused: to go back to it would make other
reverted events active again. --force does so.

tapedeck tasks lists the invocations of a session, tapedeck tail its offsets.`,
		Example: `  tapedeck rewind ses_01J… --before inv_01J…
  tapedeck rewind ses_01J… --to 120 --thread review`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			before, offset := c.Flags().Changed("before"), c.Flags().Changed("to")
			if before == offset {
				return usageError("rewind needs --before INVOCATION or --to OFFSET, one of them")
			}
			if offset {
				if to < 0 {
					return usageError("--to takes an offset, from 0")
				}
				r.ToOffset = &to
			}
			r.Session = args[0]
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				done, err := conn.Rewind(ctx, r)
				return done, conn.forceHint(ctx, r.Session, err)
			})
		},
	}
	c.Flags().StringVar(&r.BeforeInvocation, "before", "", "the invocation whose events, and all after them, are taken back")
	c.Flags().Int64Var(&to, "to", 0, "the offset of the first event that is taken back, the first one not kept")
	c.Flags().StringVar(&r.Thread, "thread", "", "only in this thread (default: in all)")
	c.Flags().BoolVar(&r.Force, "force", false, "even if that makes reverted events active again")
	return c
}
