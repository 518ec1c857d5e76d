package main

import (
	"cmp"
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
				if invocation == "" && tapedeck.KindOf(err) == tapedeck.Conflict {
					done, err = cancelIdle(c.Context(), conn, args[0], all, err)
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

// cancelIdle withdraws all messages that wait in a session without an open run, or says how
// many wait. refused is the error if a run is open.
func cancelIdle(ctx context.Context, c *connection, session string, all bool, refused error) (done api.Cancelled, err error) {
	s, err := c.Session(ctx, session)
	switch n := len(s.Inputs); {
	case err != nil || len(s.Runs) > 0:
		return done, cmp.Or(err, refused)
	case all && n == 0:
		return done, tapedeck.Errorf(tapedeck.Conflict, "nothing is running in session %s, and no message waits", session)
	case n > 0 && !all:
		return done, tapedeck.Errorf(tapedeck.Conflict, "nothing is running in session %s", session).
			WithHint("%s in the queue; --all withdraws what waits", terminal.Count(n, "message"))
	}
	for _, in := range s.Inputs {
		if _, err := c.Withdraw(ctx, api.Withdraw{Session: session, Input: in.ID}); err != nil {
			return done, err
		}
		done.Withdrawn++
	}
	if done.Withdrawn == 0 {
		return done, refused
	}
	return done, nil
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
