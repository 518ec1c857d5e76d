package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newWorkflowMessage(e *env) *cobra.Command {
	var m api.SendMessage
	var vars []string
	var file, correlation string
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
			if c.Flags().Changed("correlation") {
				m.Correlation = &correlation
			}
			return e.withExisting(c.Context(), func(conn *connection) error {
				done, err := conn.SendMessage(c.Context(), m)
				if err != nil {
					return err
				}
				if err := e.noteUnawaited(c.Context(), conn, &m, done.Offset); err != nil {
					return err
				}
				return e.printDone(done, "sent %s at offset %d", m.Name, done.Offset)
			})
		},
	}
	fl := c.Flags()
	fl.StringVar(&correlation, "correlation", "", "value that the waiting element must have (default: every element that waits for the name fits)")
	fl.StringVar(&m.Thread, "thread", "", "thread of the workflow; needed only if several run in the session")
	fl.StringArrayVar(&vars, "var", nil, "variable that the element sets, as NAME=VALUE; VALUE is JSON or a text; may be repeated")
	fl.StringVar(&file, "vars", "", "file with a JSON object of variables")
	return c
}

// noteUnawaited tells the user if no element waited for a message when it was sent. That can
// be right, but it can also be a misspelt name, which nothing receives.
func (e *env) noteUnawaited(ctx context.Context, c *connection, m *api.SendMessage, at int64) error {
	s, err := c.SessionWorkflow(ctx, m.Session, m.Thread, at)
	if err != nil || s.Workflow == nil {
		return err
	}
	var names []string
	waits := s.Workflow.Waits
	for i := range s.Workflow.Activations {
		waits = append(waits, s.Workflow.Activations[i].Waits...)
	}
	for i := range waits {
		w := &waits[i]
		switch {
		case w.For != "message":
		case w.Message == m.Name && (w.Correlation == "" || m.Correlation == nil || w.Correlation == *m.Correlation):
			return nil
		default:
			names = append(names, strings.TrimSpace(w.Message+" "+w.Correlation))
		}
	}
	now := "no element waits for a message now"
	if slices.Sort(names); len(names) > 0 {
		now = "now elements wait for " + strings.Join(slices.Compact(names), ", ")
	}
	e.notice("no element waits for this message yet, so it stays until one does; %s", terminal.Clean(now))
	return nil
}
