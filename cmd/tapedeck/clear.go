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
		Short: "Revert all events of a session or of one thread",
		Long: `Clear reverts all events of a session, or of one thread, so that it looks like a
new one. Nothing is deleted: tapedeck undo restores the events. To remove the
content of events permanently, see: tapedeck erase --help`,
		Example: `  tapedeck clear ses_01J…
  tapedeck clear ses_01J… --thread review`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			r.Session = args[0]
			return e.jump(c.Context(), "cleared", func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return conn.Clear(ctx, r)
			})
		},
	}
	c.Flags().StringVar(&r.Thread, "thread", "", "only this thread (default: all threads)")
	return c
}
