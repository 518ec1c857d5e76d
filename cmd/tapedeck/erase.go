package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newErase(e *env) *cobra.Command {
	var r api.Erase
	var events []string
	var yes bool
	c := &cobra.Command{
		Use:   "erase SESSION (--events A-B,… | --all) --reason TEXT",
		Short: "Remove what was said in events, for good",
		Long: `Erase removes the payloads of events for good: from the database and from every
fork that shares them. Their offsets, types and times stay, and a receipt says
what was erased, when, by whom and why.

It cannot be undone. To take events back and keep them, use tapedeck rewind or
tapedeck clear.`,
		Example: `  tapedeck erase ses_01J… --events 12,40-57 --reason "a password was pasted"
  tapedeck erase ses_01J… --all --reason "the user asked for it" --yes`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if r.All == (len(events) > 0) {
				return usageError("erase needs --events A-B,… or --all, one of them")
			}
			if strings.TrimSpace(r.Reason) == "" {
				return usageError("--reason is needed: the receipt says why")
			}
			if r.Events, err = offsetRanges(events); err != nil {
				return err
			}
			r.Session = args[0]
			return e.erase(c.Context(), r, yes)
		},
	}
	c.Flags().StringSliceVar(&events, "events", nil, "the offsets of the events, such as 12,40-57 (both ends are erased)")
	c.Flags().BoolVar(&r.All, "all", false, "all events of the session's own (not those that a fork shares)")
	c.Flags().StringVar(&r.Reason, "reason", "", "why, for the receipt")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// offsetRanges reads ranges such as 12 and 40-57.
func offsetRanges(in []string) ([]tapedeck.OffsetRange, error) {
	var out []tapedeck.OffsetRange
	for _, s := range in {
		first, last, ok := strings.Cut(strings.TrimSpace(s), "-")
		if !ok {
			last = first
		}
		from, err1 := strconv.ParseInt(first, 10, 62)
		to, err2 := strconv.ParseInt(last, 10, 62)
		if err1 != nil || err2 != nil || from < 0 || to < from {
			return nil, usageError("--events: %q is not an offset such as 12 or a range such as 40-57", s)
		}
		out = append(out, tapedeck.OffsetRange{From: from, To: to + 1})
	}
	return out, nil
}

func (e *env) erase(ctx context.Context, r api.Erase, yes bool) error {
	return e.reading(ctx, func(conn *connection) error {
		s, err := conn.Session(ctx, r.Session)
		if err != nil {
			return err
		}
		what := "all events"
		if !r.All {
			n := int64(0)
			for _, x := range r.Events {
				n += x.To - x.From
			}
			what = fmt.Sprintf("%d of %d events", n, s.Head)
		}
		if err := e.confirm(ctx, yes, "Erase %s of %s (%s) for good?", what, s.ID, terminal.Brief(titleOf(s), 40)); err != nil {
			return err
		}
		done, err := conn.Erase(ctx, r)
		if err != nil {
			return err
		}
		return e.printErased(&done)
	})
}

func (e *env) printErased(d *api.Erased) error {
	if e.json {
		return e.printJSON(d)
	}
	_, err := fmt.Fprintf(e.stdout, "erased %s of %s; the receipt is at offset %d\n", terminal.Count(int(d.Events), "event"), d.Session, d.Receipt)
	for _, f := range d.Forks {
		fmt.Fprintf(e.stderr, "%s had shared some of them and has them no more\n", f)
	}
	return err
}
