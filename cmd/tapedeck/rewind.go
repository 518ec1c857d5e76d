package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
)

func newRewind(e *env) *cobra.Command {
	r := api.Rewind{}
	var to int64
	c := &cobra.Command{
		Use:   "rewind SESSION (--before INVOCATION|ELEMENT | --to OFFSET)",
		Short: "Revert the events from an invocation or offset on",
		Long: `Rewind takes a session back to its state before an invocation, or before the event
at an offset. A run in progress that the rewind affects is cancelled first.

Nothing is deleted: the rewind is an event of the session. Rewind prints the marker
of this event, with which tapedeck undo undoes it.

A rewind that would make reverted events active again is refused, unless you pass
--force. This can happen if the offset was reverted earlier.

List invocations with tapedeck tasks, and offsets with tapedeck tail. In a session with a
workflow, --before also takes the id of an element: it goes back to before the element was
entered for the last time. Then tapedeck resume does the element again.`,
		Example: `  tapedeck rewind ses_01J… --before inv_01J…
  tapedeck rewind ses_01J… --before Review
  tapedeck rewind ses_01J… --to 120 --thread review`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			before, offset := c.Flags().Changed("before"), c.Flags().Changed("to")
			if before == offset {
				return usageError("rewind needs either --before INVOCATION or --to OFFSET")
			}
			if offset {
				if to < 0 {
					return usageError("--to takes an offset, from 0")
				}
				r.ToOffset = &to
			}
			r.Session = args[0]
			return e.jump(c.Context(), "rewound", func(ctx context.Context, conn *connection) (api.Rewound, error) {
				if err := conn.beforeElement(ctx, &r); err != nil {
					return api.Rewound{}, err
				}
				done, err := conn.Rewind(ctx, r)
				return done, conn.forceHint(ctx, r.Session, err)
			})
		},
	}
	c.Flags().StringVar(&r.BeforeInvocation, "before", "", "the first invocation to revert, or the id of an element of a workflow; everything after it is reverted, too")
	c.Flags().Int64Var(&to, "to", 0, "the first offset to revert")
	c.Flags().StringVar(&r.Thread, "thread", "", "only events of this thread (default: all threads)")
	c.Flags().BoolVar(&r.IfIdle, "if-idle", false, "refuse it while a run is open, instead of cancelling the run")
	c.Flags().BoolVar(&r.Force, "force", false, "rewind even if that makes reverted events active again")
	return c
}

// invocationPrefix begins the ids of invocations that the server makes.
const invocationPrefix = "inv_"

// beforeElement makes the id of an element of a workflow the offset at which the element was
// entered for the last time. Everything else stays as it is: programs choose the ids of their
// own invocations.
func (c *connection) beforeElement(ctx context.Context, r *api.Rewind) error {
	if r.BeforeInvocation == "" || strings.HasPrefix(r.BeforeInvocation, invocationPrefix) {
		return nil
	}
	s, err := c.SessionWorkflow(ctx, r.Session, r.Thread, -1)
	if err != nil || s.Workflow == nil {
		return err
	}
	for _, a := range slices.Backward(s.Workflow.Activations) {
		if a.Element == r.BeforeInvocation {
			r.BeforeInvocation, r.ToOffset = "", &a.Offset
			return nil
		}
	}
	return nil
}
