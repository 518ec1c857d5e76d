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
		Short: "Go on where a run stopped before its end",
		Long: `Resume asks the agent to go on where a run was cancelled, interrupted or has
failed, and prints what it does. The agent is told how the run ended, what its
todo list was then, and what you have seen of its last answer if it may not know
that itself. The text, if there is one, is what you say to it.

It is the agent of the run. A run that another program has written to the session
can be resumed by that program, or here by the agent that --agent names.

Ctrl-C and exit codes are those of tapedeck run.`,
		Example: `  tapedeck resume ses_01J…
  tapedeck resume ses_01J… "leave the tests alone this time"`,
		Args: sessionAnd(0, 1, "a session and maybe a text, in quotes"),
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
	c.Flags().StringVar(&r.Agent, "agent", "", "the agent that is to go on (default the one of the run)")
	c.Flags().StringVar(&r.Thread, "thread", "", "the thread whose run it is (default main)")
	return c
}
