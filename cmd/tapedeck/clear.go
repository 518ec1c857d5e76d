package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newClear(e *env) *cobra.Command {
	var r api.Clear
	c := &cobra.Command{
		Use:   "clear SESSION",
		Short: "Take everything in a session, or in one thread, back",
		Long: `Clear takes everything in a session, or in one thread of it, back, so that it
is as empty as a new one. Nothing is deleted: tapedeck undo takes it back. To
remove what was said for good, see: tapedeck erase --help`,
		Example: `  tapedeck clear ses_01J…
  tapedeck clear ses_01J… --thread review`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			r.Session = args[0]
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return conn.Clear(ctx, r)
			})
		},
	}
	c.Flags().StringVar(&r.Thread, "thread", "", "only this thread (default: all)")
	return c
}
