package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newCancel(e *env) *cobra.Command {
	var invocation string
	var all bool
	c := &cobra.Command{
		Use:   "cancel SESSION",
		Short: "Cancel a run and keep its partial answer",
		Long: `Cancel stops the agent of a run, keeps its partial answer, and ends its open
messages and tool calls. If the agent had started, tapedeck resume continues the
run. If messages wait for the end of the run, the next one is run; with --all they
are withdrawn, also if no run is open.`,
		Example: `  tapedeck cancel ses_01J…
  tapedeck cancel ses_01J… --all
  tapedeck cancel ses_01J… --invocation inv_01J…`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return e.withExisting(c.Context(), func(conn *connection) error {
				cancel := conn.Cancel
				if all {
					cancel = conn.CancelAll
				}
				done, err := cancel(c.Context(), args[0], invocation)
				if !all && invocation == "" && tapedeck.KindOf(err) == tapedeck.Conflict {
					err = idleHint(c.Context(), conn, args[0], err)
				}
				if err != nil {
					return err
				}
				return e.printCancelled(done)
			})
		},
	}
	c.Flags().StringVar(&invocation, "invocation", "", "invocation to cancel, if several are running")
	c.Flags().BoolVar(&all, "all", false, "withdraw the messages that wait in its thread, too")
	return c
}

// idleHint adds to an error that no run is open how many messages wait.
func idleHint(ctx context.Context, c *connection, session string, refused error) error {
	s, err := c.Session(ctx, session)
	if err != nil || len(s.Runs) > 0 || len(s.Inputs) == 0 {
		return refused
	}
	return tapedeck.Errorf(tapedeck.Conflict, "nothing is running in session %s", session).
		WithHint("%s in the queue; --all withdraws what waits", terminal.Count(len(s.Inputs), "message"))
}

func (e *env) printCancelled(d api.Cancelled) error {
	if d.Invocation == "" { // no run was open
		if e.json {
			return e.printJSON(map[string]any{"withdrawn": d.Withdrawn})
		}
		_, err := fmt.Fprintf(e.stdout, "withdrew %s\n", terminal.Count(d.Withdrawn, "message"))
		return err
	}
	if e.json {
		out := map[string]any{"invocation_id": d.Invocation, "offset": d.Offset, "resumable": d.Resumable}
		if d.Withdrawn > 0 {
			out["withdrawn"] = d.Withdrawn
		}
		return e.printJSON(out)
	}
	also := ""
	if d.Withdrawn > 0 {
		also = ", and withdrew " + terminal.Count(d.Withdrawn, "message")
	}
	_, err := fmt.Fprintf(e.stdout, "cancelled %s at offset %d%s\n", d.Invocation, d.Offset, also)
	return err
}
