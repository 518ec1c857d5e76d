package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newCancel(e *env) *cobra.Command {
	var invocation string
	c := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel a run and keep what it has said",
		Long: `Cancel stops the agent of a run, keeps what it has said, and closes what is
open. If the agent had started, tapedeck resume goes on from there.`,
		Example: `  tapedeck cancel ses_01J…
  tapedeck cancel ses_01J… --invocation inv_01J…`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				done, err := conn.Cancel(c.Context(), args[0], invocation)
				if err != nil {
					return err
				}
				return e.printCancelled(done)
			})
		},
	}
	c.Flags().StringVar(&invocation, "invocation", "", "which run, if there are several")
	return c
}

func (e *env) printCancelled(d api.Cancelled) error {
	if e.json {
		return e.printJSON(map[string]any{"invocation_id": d.Invocation, "offset": d.Offset, "resumable": d.Resumable})
	}
	_, err := fmt.Fprintf(e.stdout, "cancelled %s at offset %d\n", d.Invocation, d.Offset)
	return err
}
