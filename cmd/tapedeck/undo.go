package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newUndo(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "undo SESSION [MARKER]",
		Short: "Undo a rewind, a clear or an overwrite",
		Long: `Undo takes a session back to its state before a rewind, a clear or an overwrite: it
makes the events active again that were reverted, and reverts the events after it.
Without a marker it undoes the newest rewind, clear or overwrite.

An undo is itself a rewind, so a second undo without a marker undoes the first.`,
		Example: `  tapedeck undo ses_01J…
  tapedeck undo ses_01J… rew_01J…`,
		Args: sessionAnd(0, 1, "a session and optionally a marker"),
		RunE: func(c *cobra.Command, args []string) error {
			u := api.Undo{Session: args[0]}
			if len(args) == 2 {
				u.Marker = args[1]
			}
			return e.jump(c.Context(), "undid", func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return conn.Undo(ctx, u)
			})
		},
	}
}
