package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newAgents(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "agents",
		Short: "List the agents that can run tasks",
		Long: `Agents lists the configured agents, the default first. It shows the kind of each
and, if the agent cannot run here, the reason. Agents are configured in
` + agentconfig.FileName + `, in the working folder or in the data folder; see
docs/agents/README.md.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			e.reads = true
			return e.withoutTrace(c.Context(), func(conn *connection) error { return e.agents(c.Context(), conn) })
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
	state := p.Paint(terminal.Green, "ready")
	if a.Unavailable != "" {
		state = p.Paint(terminal.Red, "cannot run here: "+terminal.Brief(a.Unavailable, 200))
	}
	if a.Description != "" {
		state += "  " + p.Paint(terminal.Dim, terminal.Brief(a.Description, 100))
	}
	return p.Printf("%-14s %-8s %s\n", a.Name, a.Kind, state)
}
