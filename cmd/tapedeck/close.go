package main

import "github.com/spf13/cobra"

func newClose(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "close SESSION",
		Short: "Close a session, so that nothing can be appended",
		Long: `Close closes a session permanently. You can still read, replay, fork and erase it,
but nothing can be appended to it. Its followers are notified that it has ended.`,
		Example: `  tapedeck close ses_01J…`,
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return e.withExisting(c.Context(), func(conn *connection) error {
				s, err := conn.CloseSession(c.Context(), args[0])
				if err != nil {
					return err
				}
				return e.printDone(s, "closed %s at offset %d", s.ID, s.Head-1)
			})
		},
	}
}
