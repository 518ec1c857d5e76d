package main

import (
	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newCreate(e *env) *cobra.Command {
	var n api.NewSession
	c := &cobra.Command{
		Use:   "create [SESSION]",
		Short: "Make a session without a task",
		Long: `Create makes a session, with the id that is given or a new one, and prints its
id. tapedeck run makes one by itself; this is for one with an id of your own.`,
		Example: `  tapedeck create notes --title "My notes" --agent coder
  tapedeck run "tidy up" --session notes`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneSession(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				n.ID = args[0]
			}
			return e.with(c.Context(), func(conn *connection) error {
				s, err := conn.Create(c.Context(), n)
				if err != nil {
					return err
				}
				return e.printDone(s, "%s", s.ID)
			})
		},
	}
	c.Flags().StringVar(&n.Title, "title", "", "what people call it")
	c.Flags().StringVar(&n.Agent, "agent", "", "the agent that its tasks go to; tapedeck agents lists them")
	c.Flags().StringVar(&n.Owner, "owner", "", "whose it is")
	c.Flags().StringToStringVar(&n.Labels, "label", nil, "labels, such as team=blue")
	return c
}
