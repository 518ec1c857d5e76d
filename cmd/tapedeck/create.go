package main

import (
	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newCreate(e *env) *cobra.Command {
	var n api.NewSession
	var f budgetFlags
	c := &cobra.Command{
		Use:   "create [SESSION]",
		Short: "Create a session without a task",
		Long: `Create creates a session and prints its id: the one that is given, or a new one.
tapedeck run creates a session by itself. --max-tokens, --max-usd, --max-turns and
--max-time limit what all its runs may use together.`,
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
			var err error
			if n.Budget, err = f.budget(); err != nil {
				return err
			}
			if err := checkOwner(n.Owner); err != nil {
				return err
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
	f.register(c.Flags())
	c.Flags().StringVar(&n.Title, "title", "", "title for people")
	c.Flags().StringVar(&n.Agent, "agent", "", "agent for its tasks; list agents with: tapedeck agents")
	c.Flags().StringVar(&n.Owner, "owner", "", "owner of the session")
	c.Flags().StringToStringVar(&n.Labels, "label", nil, "labels, such as team=blue")
	return c
}
