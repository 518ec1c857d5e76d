package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newResume(e *env) *cobra.Command {
	var r api.Resume
	c := &cobra.Command{
		Use:   `resume SESSION ["text"]`,
		Short: "Continue a run that stopped before its end",
		Long: `Resume asks the agent to continue a run that was cancelled, was interrupted or
failed, and prints what it does. The agent receives how the run ended, its todo list
at that moment and, if it may not know it, the part of its last answer that you have
seen. The optional text is your next message to the agent. Without it, a last message
that nobody has answered is answered, whatever the run before it did.

Resume uses the agent of the run. A run that another program wrote to the session
can be resumed by that program, or here by the agent that --agent names.

Ctrl-C and the exit codes are those of tapedeck run.`,
		Example: `  tapedeck resume ses_01J…
  tapedeck resume ses_01J… "leave the tests alone this time"`,
		Args: sessionAnd(0, 1, "a session and optionally a text, in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			r.Session = args[0]
			if len(args) == 2 {
				r.Text = args[1]
			}
			if err := e.exists(); err != nil {
				return err
			}
			e.startsAgents = true
			return e.with(context.WithoutCancel(c.Context()), func(conn *connection) error {
				return e.run(c.Context(), conn, func(ctx context.Context) (api.Started, error) { return conn.Resume(ctx, r) })
			})
		},
	}
	e.permissionsFlag(c)
	c.Flags().StringVar(&r.Agent, "agent", "", "agent that continues (default: the agent of the run)")
	c.Flags().StringVar(&r.Thread, "thread", "", "thread of the run (default main)")
	return c
}
