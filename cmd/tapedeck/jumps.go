package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

func newRewind(e *env) *cobra.Command {
	r := api.Rewind{}
	var to int64
	c := &cobra.Command{
		Use:   "rewind SESSION (--before INVOCATION | --to OFFSET)",
		Short: "Take a session back to what it was before an event",
		Long: `Rewind takes a session back to what it was before an invocation began, or
before the event at an offset. A run that is in the way is cancelled first.

Nothing is deleted: the rewind is an event of the session. It prints a marker,
with which tapedeck undo takes it back.

A place that was reverted before is refused: to go back to it would make other
reverted events active again. --force does so.

tapedeck tasks lists the invocations of a session, tapedeck tail its offsets.`,
		Example: `  tapedeck rewind ses_01J… --before inv_01J…
  tapedeck rewind ses_01J… --to 120 --thread review`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			before, offset := c.Flags().Changed("before"), c.Flags().Changed("to")
			if before == offset {
				return usageError("rewind needs --before INVOCATION or --to OFFSET, one of them")
			}
			if offset {
				if to < 0 {
					return usageError("--to takes an offset, from 0")
				}
				r.ToOffset = &to
			}
			r.Session = args[0]
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				done, err := conn.Rewind(ctx, r)
				return done, conn.forceHint(ctx, r.Session, err)
			})
		},
	}
	c.Flags().StringVar(&r.BeforeInvocation, "before", "", "the invocation whose events, and all after them, are taken back")
	c.Flags().Int64Var(&to, "to", 0, "the offset of the first event that is taken back, the first one not kept")
	c.Flags().StringVar(&r.Thread, "thread", "", "only in this thread (default: in all)")
	c.Flags().BoolVar(&r.Force, "force", false, "even if that makes reverted events active again")
	return c
}

func newUndo(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "undo SESSION [MARKER]",
		Short: "Take back a rewind, a clear or an overwrite",
		Long: `Undo takes back a rewind, a clear or an overwrite, and all that came after it:
what was in force before it is in force again. Without a marker it is the
newest one. An undo is a rewind itself, so a second one without a marker takes
back the first.`,
		Example: `  tapedeck undo ses_01J…
  tapedeck undo ses_01J… rew_01J…`,
		Args: sessionAnd(0, 1, "a session and maybe a marker"),
		RunE: func(c *cobra.Command, args []string) error {
			u := api.Undo{Session: args[0]}
			if len(args) == 2 {
				u.Marker = args[1]
			}
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return conn.Undo(ctx, u)
			})
		},
	}
}

func newOverwrite(e *env) *cobra.Command {
	var o api.Overwrite
	var text, instance string
	c := &cobra.Command{
		Use:   "overwrite SESSION --from-point POINT",
		Short: "Keep a session up to an offset; what follows takes the place of the rest",
		Long: `Overwrite keeps the events up to and including the one at --from-point, and
takes back those after it. What follows takes their place.

The point is the offset of the last event to keep or, as seq:4, its sequence
number in the context of an agent, which tapedeck context shows. A point in the
middle of a run cuts the run off, and overwrite warns of it.

Nothing is deleted: tapedeck undo takes it back. To overwrite and go on at once,
see: tapedeck run --help`,
		Example: `  tapedeck overwrite ses_01J… --from-point 41
  tapedeck overwrite ses_01J… --from-point seq:4
  tapedeck run "try it another way" --overwrite ses_01J… --from-point 41`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := readPoint(c, "from-point", text, instance)
			if err == nil && !p.given {
				err = usageError("overwrite needs --from-point POINT, the last event to keep")
			}
			if err != nil {
				return err
			}
			o.Session, p.thread, p.within = args[0], o.Thread, o.Thread
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return e.overwrite(ctx, conn, o, &p)
			})
		},
	}
	c.Flags().StringVar(&text, "from-point", "", pointUsage("the last event to keep", "required"))
	c.Flags().StringVar(&instance, "instance", "", instanceUsage)
	c.Flags().StringVar(&o.Thread, "thread", "", "only in this thread (default: in all)")
	c.Flags().BoolVar(&o.Force, "force", false, "even if that makes reverted events active again")
	return c
}

// overwrite reverts what comes after a point.
func (e *env) overwrite(ctx context.Context, conn *connection, o api.Overwrite, p *point) (api.Rewound, error) {
	at, err := p.place(ctx, conn, o.Session)
	if err != nil {
		return api.Rewound{}, err
	}
	o.FromOffset = at.First
	done, err := conn.Overwrite(ctx, o)
	if err == nil && done.Marker != "" {
		e.report(at)
	}
	return done, conn.forceHint(ctx, o.Session, err)
}

// forceHint says in words of the command line what to do about a place that was
// reverted before; the server's hint is for programs.
func (c *connection) forceHint(ctx context.Context, session string, err error) error {
	var te *tapedeck.Error
	if !errors.As(err, &te) || te.Kind != tapedeck.Conflict || !strings.Contains(te.Hint, "force") {
		return err
	}
	var newest tapedeck.Jump
	s, failed := c.Session(ctx, session)
	if failed == nil {
		failed = c.jumps(ctx, session, s.Head, func(j tapedeck.Jump) { newest = j })
	}
	if failed != nil { // what was refused counts
		return err
	}
	return tapedeck.Errorf(te.Kind, "%s", te.Message).Because(err).
		WithHint("tapedeck undo %s %s takes the newest of these back, --force goes there all the same", session, newest.Marker)
}

func newClear(e *env) *cobra.Command {
	var r api.Clear
	c := &cobra.Command{
		Use:   "clear SESSION",
		Short: "Take everything in a session, or in one thread, back",
		Long: `Clear takes everything in a session, or in one thread of it, back, so that it
is as empty as a new one. Nothing is deleted: tapedeck undo takes it back. To
remove what was said for good, see: tapedeck erase --help`,
		Example: `  tapedeck clear ses_01J…
  tapedeck clear ses_01J… --thread review`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) error {
			r.Session = args[0]
			return e.jump(c.Context(), func(ctx context.Context, conn *connection) (api.Rewound, error) {
				return conn.Clear(ctx, r)
			})
		},
	}
	c.Flags().StringVar(&r.Thread, "thread", "", "only this thread (default: all)")
	return c
}

// jump does a verb that takes events back, and says what it did.
func (e *env) jump(ctx context.Context, verb func(context.Context, *connection) (api.Rewound, error)) error {
	return e.reading(ctx, func(conn *connection) error {
		done, err := verb(ctx, conn)
		if err != nil {
			return err
		}
		return e.printRewound(&done)
	})
}

// reading is with for a session that must be there already.
func (e *env) reading(ctx context.Context, f func(*connection) error) error {
	if err := e.exists(); err != nil {
		return err
	}
	return e.with(ctx, f)
}

func (e *env) printRewound(r *api.Rewound) error {
	if e.json {
		return e.printJSON(r)
	}
	for _, inv := range r.Cancelled {
		fmt.Fprintf(e.stderr, "cancelled %s first\n", inv)
	}
	where := r.Session
	if r.Thread != "" {
		where = fmt.Sprintf("thread %s of %s", r.Thread, r.Session)
	}
	sentence := fmt.Sprintf("%s is as it was before offset %d\n", where, r.To)
	if r.Undoes != "" {
		sentence = fmt.Sprintf("took back %s: in %s, what was active before offset %d is active again\n", r.Undoes, where, r.To)
	}
	_, err := io.WriteString(e.stdout, sentence)
	if r.Marker == "" { // there was nothing to take back
		return err
	}
	fmt.Fprintf(e.stderr, "take it back with: tapedeck undo %s %s\n", r.Session, r.Marker)
	return err
}

// sessionAnd checks for a session and from min to max more arguments.
func sessionAnd(minMore, maxMore int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if n := len(args) - 1; n < minMore || n > maxMore {
			return usageError("%s takes %s; see: %s --help", c.CommandPath(), what, c.CommandPath())
		}
		for _, a := range args[1:] {
			if strings.TrimSpace(a) == "" {
				return usageError("%s takes no empty argument", c.CommandPath())
			}
		}
		return oneSession(c, args[:1])
	}
}
