package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newDelete(e *env) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "delete SESSION",
		Aliases: []string{"rm"},
		Short:   "Delete a session",
		Long: `Delete removes a session, and the folder that Tapedeck created for its agents.
Events that forks share stay until the last fork is deleted; while there are forks,
the folder stays, too. You cannot undo a delete.`,
		Example: `  tapedeck delete ses_01J…
  tapedeck delete ses_01J… --yes`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error { return e.delete(c.Context(), args[0], yes) },
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

func (e *env) delete(ctx context.Context, session string, yes bool) error {
	return e.withExisting(ctx, func(conn *connection) error {
		s, err := conn.Session(ctx, session)
		if err != nil {
			return err
		}
		if err := e.confirm(ctx, yes, "Delete %s (%s, %s)?", s.ID, terminal.Brief(titleOf(s), 40), terminal.Count(int(s.Head), "event")); err != nil {
			return err
		}
		if err := conn.Delete(ctx, session); err != nil {
			return err
		}
		return e.printDone(map[string]any{"deleted": session}, "deleted %s", session)
	})
}
