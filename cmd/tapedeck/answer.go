package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newAnswer(e *env) *cobra.Command {
	var at int64
	c := &cobra.Command{
		Use:   "answer SESSION PERMISSION OPTION",
		Short: "Answer a question of an agent",
		Long: `Answer answers a pending question of an agent with one of its options. List both
with: tapedeck permissions

The first answer counts. With --at the answer counts only for the question at that
offset, which is the one that you have seen.`,
		Example: `  tapedeck answer ses_01J… perm_01J… allow_once --at 42`,
		Args:    sessionAnd(2, 2, "a session, a permission and one of its options"),
		RunE: func(c *cobra.Command, args []string) error {
			a := api.Answer{Session: args[0], Permission: args[1], Option: args[2]}
			if c.Flags().Changed("at") {
				if at < 0 {
					return usageError("--at takes the offset of the question, from 0")
				}
				a.Offset = &at
			}
			return e.withExisting(c.Context(), func(conn *connection) error {
				done, err := conn.Answer(c.Context(), a)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(done)
				}
				_, err = fmt.Fprintf(e.stdout, "answered %s at offset %d: %s\n", done.Permission, done.Offset, done.Option)
				return err
			})
		},
	}
	c.Flags().Int64Var(&at, "at", 0, "offset of the question, as tapedeck permissions shows it (default: the pending question)")
	return c
}
