package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newUndo(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "undo SESSION [MARKER]",
		Short: "Take back a rewind, a clear or an overwrite",
		Long: `Undo takes back a rewind, a clear or an overwrite, and all that came after it:
what was in force before it is in force again. Without a marker it is the
newest one. An undo is a rewind itself, so a second one without a marker takes
back the first.`,
		Example: `  tapedeck undo ses_01J…
  tapedeck undo ses_01J… rew_01J…`,
		Args: sessionAnd(0, 1, "a session and maybe a marker"),
		RunE: func(c *cobra.Command, args []string) error {
			u := api.Undo{Session: args[0]}
			if len(args) == 2 {
				u.Marker = args[1]
			}
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return conn.Undo(ctx, u)
			})
		},
	}
}
