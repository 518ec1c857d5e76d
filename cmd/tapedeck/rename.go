package main

import (
	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newRename(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     `rename SESSION "title"`,
		Short:   "Change the title of a session",
		Example: `  tapedeck rename ses_01J… "The slow test"`,
		Args:    sessionAnd(1, 1, "a session and a title, in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			return e.withExisting(c.Context(), func(conn *connection) error {
				s, err := conn.Rename(c.Context(), api.Rename{Session: args[0], Title: &args[1]})
				if err != nil {
					return err
				}
				return e.printDone(s, "renamed %s to %q", s.ID, terminal.Clean(titleOf(s)))
			})
		},
	}
}
