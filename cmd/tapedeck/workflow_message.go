package main

import (
	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

func newWorkflowMessage(e *env) *cobra.Command {
	var m api.SendMessage
	var vars []string
	var file string
	c := &cobra.Command{
		Use:   "message SESSION NAME",
		Short: "Send a message to the workflow that runs in a session",
		Long: `Message sends a message to the workflow that runs in a session. The element that waits
for a message of this name, and for this correlation if the diagram names one, receives
it; if none waits yet, the message stays until one does.`,
		Example: `  tapedeck workflow message ses_01J… Payment --correlation order-7 --var paid=true`,
		Args:    sessionAnd(1, 1, "a session and the name of a message"),
		RunE: func(c *cobra.Command, args []string) error {
			values, err := assignments("var", vars, file, nil)
			if err != nil {
				return err
			}
			m.Session, m.Name, m.Variables = args[0], args[1], tapedeck.Members(values)
			return e.withExisting(c.Context(), func(conn *connection) error {
				done, err := conn.SendMessage(c.Context(), m)
				if err != nil {
					return err
				}
				return e.printDone(done, "sent %s at offset %d", m.Name, done.Offset)
			})
		},
	}
	fl := c.Flags()
	fl.StringVar(&m.Correlation, "correlation", "", "value that the waiting element must have (default: every element that waits for the name fits)")
	fl.StringVar(&m.Thread, "thread", "", "thread of the workflow; needed only if several run in the session")
	fl.StringArrayVar(&vars, "var", nil, "variable that the element sets, as NAME=VALUE; VALUE is JSON or a text; may be repeated")
	fl.StringVar(&file, "vars", "", "file with a JSON object of variables")
	return c
}
