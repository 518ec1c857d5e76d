package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

// viewCommand returns a command that shows a view of a session. fetch loads the
// view; print prints it, unless --json is given.
func viewCommand[T any](e *env, use, short, long string, fetch func(ctx context.Context, c *connection, session string, at int64) (T, error), print func(p terminal.Pen, v T) error) *cobra.Command {
	var at int64
	c := &cobra.Command{
		Use:     use + " SESSION",
		Short:   short,
		Long:    long,
		Example: fmt.Sprintf("  tapedeck %s ses_01J…\n  tapedeck %s ses_01J… --at 120 --json", use, use),
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkAt(c, at); err != nil {
				return err
			}
			return e.reading(c.Context(), func(conn *connection) error {
				v, err := fetch(c.Context(), conn, args[0], at)
				if err != nil {
					return err
				}
				if e.json {
					return e.printJSON(v)
				}
				return print(e.pen(), v)
			})
		},
	}
	atFlag(c, &at)
	return c
}

// atFlag adds the flag --at, the offset at which a view is computed. Without the
// flag, at is -1.
func atFlag(c *cobra.Command, at *int64) {
	c.Flags().Int64Var(at, "at", -1, "show the state before the event at this offset (default: the current state)")
	c.Flags().Lookup("at").DefValue = "0" // otherwise pflag prints -1 as the default
}

func checkAt(c *cobra.Command, at int64) error {
	if at < 0 && c.Flags().Changed("at") {
		return usageError("--at takes an offset, from 0")
	}
	return nil
}
