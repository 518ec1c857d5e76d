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
		Short: "Remove the payload of events permanently",
		Long: `Erase removes the payload of events permanently, from the database and from every
fork that shares the events. Offsets, types and times stay. A receipt in the session
says what was erased, when, by whom and why.

You cannot undo an erase. To revert events and keep them in the log, use tapedeck
rewind or tapedeck clear.`,
		Example: `  tapedeck erase ses_01J… --events 12,40-57 --reason "a password was pasted"
  tapedeck erase ses_01J… --all --reason "the user asked for it" --yes`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if r.All == (len(events) > 0) {
				return usageError("erase needs either --events A-B,… or --all")
			}
			if strings.TrimSpace(r.Reason) == "" {
				return usageError("erase needs --reason TEXT, for the receipt")
			}
			if r.Events, err = offsetRanges(events); err != nil {
				return err
			}
			r.Session = args[0]
			return e.erase(c.Context(), r, yes)
		},
	}
	c.Flags().StringSliceVar(&events, "events", nil, "offsets of the events, such as 12,40-57 (both ends included)")
	c.Flags().BoolVar(&r.All, "all", false, "all events of the session, except those that it inherited as a fork")
	c.Flags().StringVar(&r.Reason, "reason", "", "reason, for the receipt")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
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
	return e.withExisting(ctx, func(conn *connection) error {
		s, err := conn.Session(ctx, r.Session)
		if err != nil {
			return err
		}
		scope := "all events"
		if !r.All {
			n := int64(0)
			for _, x := range r.Events {
				n += x.To - x.From
			}
			scope = fmt.Sprintf("%d of %d events", n, s.Head)
		}
		if err := e.confirm(ctx, yes, "Erase %s of %s (%s) permanently?", scope, s.ID, terminal.Brief(titleOf(s), 40)); err != nil {
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
		fmt.Fprintf(e.stderr, "also erased from the fork %s\n", f)
	}
	return err
}
