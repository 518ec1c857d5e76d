package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
)

func newFork(e *env) *cobra.Command {
	f := tapedeck.Fork{}
	var at int64
	var title string
	c := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Make a session that shares the events of another one",
		Long: `Fork makes a session that begins with the events of another one, and goes its
own way from there. The events are shared, not copied, so it takes no time and
no space, however long the session is. It prints the id of the fork.`,
		Example: `  tapedeck fork ses_01J…
  tapedeck fork ses_01J… --at 120 --title "Another way"`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			f.Parent = args[0]
			if c.Flags().Changed("at") {
				if at < 0 {
					return usageError("--at takes an offset, from 0")
				}
				f.At = &at
			}
			if c.Flags().Changed("title") {
				f.Title = &title
			}
			return e.fork(c.Context(), f)
		},
	}
	c.Flags().Int64Var(&at, "at", 0, "share the events before this offset (default: all)")
	c.Flags().StringVar(&title, "title", "", "title of the fork (default: that of the session)")
	c.Flags().StringVar(&f.ID, "id", "", "id of the fork (default: a new one)")
	return c
}

func newCopy(e *env) *cobra.Command {
	f := tapedeck.Fork{Copy: true}
	var point int64
	var title string
	c := &cobra.Command{
		Use:   "copy SESSION",
		Short: "Make a session of its own with the events of another one",
		Long: `Copy makes a session with the events of another one, up to and including the
one at --to-point. Unlike a fork it stands for itself: it is not listed as a
branch of the session that it was copied from. It prints the id of the copy. To
copy and go on at once, see: tapedeck run --help`,
		Example: `  tapedeck copy ses_01J…
  tapedeck copy ses_01J… --to-point 119`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			f.Parent = args[0]
			at, err := pointOf(c, "to-point", point)
			if err != nil {
				return err
			}
			f.At = at
			if c.Flags().Changed("title") {
				f.Title = &title
			}
			return e.fork(c.Context(), f)
		},
	}
	c.Flags().Int64Var(&point, "to-point", 0, "the offset of the last event to copy (default: all)")
	c.Flags().StringVar(&title, "title", "", "title of the copy (default: that of the session)")
	c.Flags().StringVar(&f.ID, "id", "", "id of the copy (default: a new one)")
	return c
}

// pointOf returns the offset after the point that a flag names, nil if it was
// not given: a point is the last event to keep, an offset the first not to.
func pointOf(c *cobra.Command, flag string, point int64) (*int64, error) {
	switch {
	case !c.Flags().Changed(flag):
		return nil, nil
	case point < 0:
		return nil, usageError("--%s takes the offset of the last event to keep, from 0", flag)
	}
	return new(point + 1), nil
}

func (e *env) fork(ctx context.Context, f tapedeck.Fork) error {
	return e.reading(ctx, func(conn *connection) error {
		s, err := conn.Fork(ctx, f)
		if err != nil {
			return err
		}
		if e.json {
			return e.printJSON(s)
		}
		_, err = fmt.Fprintln(e.stdout, s.ID)
		return err
	})
}
