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
		Use:   "erase SESSION (--events FIRST-LAST,… | --all) --reason TEXT",
		Short: "Remove the payload of events permanently",
		Long: `Erase removes the payload of events permanently, from the database and from every
fork that shares the events. Offsets, types and times stay. A receipt in the session
says what was erased, when, by whom and why.

A range includes both ends: 40-57 means the events 40 to 57. (In the HTTP API, "to" is
the first offset after the range, here 58.) If the title of the session repeats an
erased request, the title is erased, too.

You cannot undo an erase. To revert events and keep them in the log, use tapedeck
rewind or tapedeck clear.`,
		Example: `  tapedeck erase ses_01J… --events 12,40-57 --reason "a password was pasted"
  tapedeck erase ses_01J… --all --reason "the user asked for it" --yes`,
		Args: oneSession,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if r.All == (len(events) > 0) {
				return usageError("erase needs either --events FIRST-LAST,… or --all")
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

// offsetRanges reads offsets such as 12, and ranges such as 40-57. A range includes its
// last event, unlike a range of the HTTP API: a person who writes 40-57 expects that
// event 57 is erased.
func offsetRanges(in []string) ([]tapedeck.OffsetRange, error) {
	var out []tapedeck.OffsetRange
	for _, s := range in {
		first, last, isRange := strings.Cut(strings.TrimSpace(s), "-")
		if !isRange {
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

// count returns the number of offsets in ranges that do not overlap.
func count(ranges []tapedeck.OffsetRange) (n int64) {
	for _, r := range ranges {
		n += r.To - r.From
	}
	return n
}

func (e *env) erase(ctx context.Context, r api.Erase, yes bool) error {
	return e.withExisting(ctx, func(conn *connection) error {
		s, err := conn.Session(ctx, r.Session)
		if err != nil {
			return err
		}
		scope := "all events"
		if !r.All {
			scope = fmt.Sprintf("%d of %d events", count(r.Events), s.Head)
		}
		if err := e.confirm(ctx, yes, "Erase %s of %s (%s) permanently?", scope, s.ID, terminal.Brief(titleOf(s), 40)); err != nil {
			return err
		}
		done, err := conn.Erase(ctx, r)
		if err != nil {
			return err
		}
		if !e.json && !r.All && count(done.Ranges) > count(r.Events) {
			e.notice("the title repeated a request, and is erased with it")
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
