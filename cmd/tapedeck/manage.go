package main

import (
	"context"
	"fmt"

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

func newClose(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "close SESSION",
		Short: "Close a session: nothing can be appended any more",
		Long: `Close closes a session for good: it can be read, replayed, forked and erased,
but nothing can be appended to it any more. Those who follow it see its end.`,
		Example: `  tapedeck close ses_01J…`,
		Args:    oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				s, err := conn.CloseSession(c.Context(), args[0])
				if err != nil {
					return err
				}
				return e.printDone(s, "closed %s at offset %d", s.ID, s.Head-1)
			})
		},
	}
}

func newRename(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     `rename SESSION "title"`,
		Short:   "Give a session another title",
		Example: `  tapedeck rename ses_01J… "The slow test"`,
		Args:    sessionAnd(1, 1, "a session and a title, in quotes"),
		RunE: func(c *cobra.Command, args []string) error {
			return e.reading(c.Context(), func(conn *connection) error {
				s, err := conn.Rename(c.Context(), api.Rename{Session: args[0], Title: &args[1]})
				if err != nil {
					return err
				}
				return e.printDone(s, "%s is called %s", s.ID, clean(titleOf(s)))
			})
		},
	}
}

func newDelete(e *env) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "delete SESSION",
		Aliases: []string{"rm"},
		Short:   "Delete a session",
		Long: `Delete removes a session, with the folder that was made for its agents. While
forks need its events they stay, and go with the last of the forks; then the
folder stays, too. It cannot be undone.`,
		Example: `  tapedeck delete ses_01J…
  tapedeck delete ses_01J… --yes`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error { return e.delete(c.Context(), args[0], yes) },
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (e *env) delete(ctx context.Context, session string, yes bool) error {
	return e.reading(ctx, func(conn *connection) error {
		s, err := conn.Session(ctx, session)
		if err != nil {
			return err
		}
		if err := e.confirm(ctx, yes, "Delete %s (%s, %s)?", s.ID, brief(titleOf(s), 40), count(int(s.Head), "event")); err != nil {
			return err
		}
		if err := conn.Delete(ctx, session); err != nil {
			return err
		}
		return e.printDone(map[string]any{"deleted": session}, "deleted %s", session)
	})
}

// printDone prints v, or, without --json, a sentence.
func (e *env) printDone(v any, format string, args ...any) error {
	if e.json {
		return e.printJSON(v)
	}
	_, err := fmt.Fprintf(e.stdout, format+"\n", args...)
	return err
}
