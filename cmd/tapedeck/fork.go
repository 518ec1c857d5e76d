package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newFork(e *env) *cobra.Command {
	f := api.Fork{}
	var at int64
	var title string
	c := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Create a session that shares the events of another one",
		Long: `Fork creates a session that begins with the events of another session and continues
on its own. The events are shared, not copied, so a fork takes no time and no space,
however long the session is. Fork prints the id of the new session.`,
		Example: `  tapedeck fork ses_01J…
  tapedeck fork ses_01J… --at 120 --title "Another way"`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			f.Parent = args[0]
			if c.Flags().Changed("at") {
				if at < 0 {
					return usageError("--at takes an offset, from 0")
				}
				f.At = &at
			}
			if c.Flags().Changed("title") {
				f.Title = &title
			}
			return e.withExisting(c.Context(), func(conn *connection) error { return e.fork(c.Context(), conn, f) })
		},
	}
	c.Flags().Int64Var(&at, "at", 0, "share the events before this offset (default: all)")
	c.Flags().StringVar(&title, "title", "", "title of the fork (default: that of the session)")
	c.Flags().StringVar(&f.ID, "id", "", "id of the fork (default: a new id)")
	return c
}

func (e *env) fork(ctx context.Context, conn *connection, f api.Fork) error {
	s, err := conn.Fork(ctx, f)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(s)
	}
	if _, err = fmt.Fprintln(e.stdout, s.ID); err == nil && f.At != nil && !f.Copy {
		fmt.Fprintf(e.stderr, "shared: the events before offset %d\n", *f.At)
	}
	return err
}
