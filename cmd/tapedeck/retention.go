package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/retention"
)

func newRetention(e *env) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "retention --dry-run",
		Short: "Show which sessions a server would delete because they are old, or too many",
		Long: `Retention shows which sessions tapedeck serve deletes by the table [retention] of the
configuration, and why:

  [retention]
  max_age = "90d"         # since anything happened in the session
  max_sessions = 1000     # of each owner; those that were active last stay
  keep_label = "keep"     # sessions with this label always stay

  [retention.owner.ada]   # instead, for ada
  max_age = "365d"

A session with an open run, an open question or a task that waits always stays. Events
that forks share stay with the forks. The server deletes every ten minutes, and records
each session in the audit log. This command deletes nothing.`,
		Example: `  tapedeck retention --dry-run
  tapedeck retention --dry-run --config tapedeck.toml --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !dry {
				return usageError("only a server deletes sessions; to see which, pass --dry-run")
			}
			return e.dryRetention(c.Context())
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be deleted")
	return c
}

// A retained lists the sessions of a server for a policy.
type retained struct{ *client.Client }

// List implements [retention.Lister].
func (r retained) List(ctx context.Context, f tapedeck.Filter) (tapedeck.SessionPage, error) {
	page, err := r.Sessions(ctx, f)
	out := tapedeck.SessionPage{Next: page.Next}
	for i := range page.Sessions {
		out.Sessions = append(out.Sessions, page.Sessions[i].Session)
	}
	return out, err
}

func (e *env) dryRetention(ctx context.Context) error {
	c, err := e.readConfig()
	if err != nil {
		return err
	}
	policy := c.Retention()
	if policy.IsZero() {
		e.notice("the configuration has no table [retention], so nothing is deleted")
		return nil
	}
	return e.reading(ctx, func(conn *connection) error {
		seen := map[string]bool{}
		l := retained{conn.Client}
		for found, err := range policy.Old(ctx, l, time.Now()) {
			if err == nil {
				err = e.printCandidate(seen, &found)
			}
			if err != nil {
				return err
			}
		}
		owners := map[string]bool{}
		if err := retention.Owners(ctx, l, func(owner string) { owners[owner] = true }); err != nil {
			return err
		}
		for owner := range owners {
			for found, err := range policy.Surplus(ctx, l, owner) {
				if err == nil {
					err = e.printCandidate(seen, &found)
				}
				if err != nil {
					return err
				}
			}
		}
		e.notice("%s would be deleted", terminal.Count(len(seen), "session"))
		return nil
	})
}

// printCandidate prints a session that would be deleted, once.
func (e *env) printCandidate(seen map[string]bool, c *retention.Candidate) error {
	s := &c.Session
	if seen[s.ID] {
		return nil
	}
	seen[s.ID] = true
	if e.json {
		return e.printJSON(map[string]any{"session": s.ID, "owner": s.Owner, "updated_at": s.Updated, "reason": c.Reason})
	}
	return e.pen().Printf("%s  %s  %s  %s\n", s.ID, instant(s.Updated), terminal.Brief(fmt.Sprintf("%q", titleOf(*s)), 40), c.Reason)
}
