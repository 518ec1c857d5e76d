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
		Short: "Cancel a run and keep its partial answer",
		Long: `Cancel stops the agent of a run, keeps its partial answer, and ends its open
messages and tool calls. If the agent had started, tapedeck resume continues the
run.`,
		Example: `  tapedeck cancel ses_01J…
  tapedeck cancel ses_01J… --invocation inv_01J…`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return e.withExisting(c.Context(), func(conn *connection) error {
				done, err := conn.Cancel(c.Context(), args[0], invocation)
				if err != nil {
					return err
				}
				return e.printCancelled(done)
			})
		},
	}
	c.Flags().StringVar(&invocation, "invocation", "", "invocation to cancel, if several are running")
	return c
}

func (e *env) printCancelled(d api.Cancelled) error {
	if e.json {
		return e.printJSON(map[string]any{"invocation_id": d.Invocation, "offset": d.Offset, "resumable": d.Resumable})
	}
	_, err := fmt.Fprintf(e.stdout, "cancelled %s at offset %d\n", d.Invocation, d.Offset)
	return err
}
