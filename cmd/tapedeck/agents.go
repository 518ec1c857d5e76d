package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

func newAgents(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "agents",
		Short: "List the agents that tasks can go to",
		Long: `Agents lists the agents that tasks can go to, the default first, each with its
kind and, if it cannot run here, why not. They are configured in ` + configName + `,
in the working folder or in the data folder; see docs/agents/README.md.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.with(c.Context(), func(conn *connection) error { return e.agents(c.Context(), conn) })
		},
	}
	c.AddCommand(newAgentsTest(e))
	return c
}

func (e *env) agents(ctx context.Context, c *connection) error {
	agents, err := c.Agents(ctx)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if e.json {
			err = e.printJSON(a)
		} else {
			err = e.printAgent(&a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *env) printAgent(a *tapedeck.Agent) error {
	p := e.pen()
	state := p.paint(green, "ready")
	if a.Unavailable != "" {
		state = p.paint(red, "cannot run here: "+brief(a.Unavailable, 200))
	}
	if a.Description != "" {
		state += "  " + p.paint(dim, brief(a.Description, 100))
	}
	return p.printf("%-14s %-8s %s\n", a.Name, a.Kind, state)
}

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
