package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/access"
	"github.com/tapedeck/tapedeck/access/grants"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

func newTokenIssue(e *env) *cobra.Command {
	var n api.NewToken
	expires := lifetime{least: time.Second, most: int(grants.MaxLife / (24 * time.Hour))}
	var before int64
	c := &cobra.Command{
		Use:   "issue SESSION",
		Short: "Make a token of one session and print it, this once",
		Long: `Issue asks the server for a token that is good for one session: for somebody who reads
it, for the page of a user, or for an agent that runs elsewhere. Only the owner of the
session and an admin can do it. The server does not keep the token; with a name, it
lists it.`,
		Example: `  tapedeck token issue ses_… --name "for the team" --expires 30d
  tapedeck token issue ses_… --before 40
  tapedeck token issue ses_… --role agent --run inv_… --subject coder`,
		Args: both(noFile, oneSession),
		RunE: func(c *cobra.Command, args []string) error {
			n.Session = args[0]
			if expires.Duration > 0 {
				n.Expires = new(time.Now().Add(expires.Duration).UTC())
			}
			if c.Flags().Changed("before") {
				if n.Before = &before; before < 1 {
					return usageError("--before takes an offset from 1; leave it out for a token of the whole session")
				}
			}
			if err := access.Role(n.Role).Check("a token of a session", grants.Roles()...); err != nil {
				return &exitError{exitUsage, fmt.Errorf("--role: %w", err)}
			}
			return e.withTokens(c.Context(), func(conn *connection) error { return e.issueToken(c.Context(), conn, n) })
		},
	}
	f := c.Flags()
	f.StringVar(&n.Role, "role", string(access.Reader), "reader, user or agent")
	f.StringVar(&n.Subject, "subject", "", "who uses the token (default: you). Only an admin names another user; for an agent it is its name")
	f.StringVar(&n.Name, "name", "", "the server lists the token under this name")
	f.StringVar(&n.Invocation, "run", "", "the open run that an agent writes")
	f.Int64Var(&before, "before", 0, "only the events before this offset; for a reader")
	f.BoolVar(&n.Forks, "forks", false, "also the forks of the session by the same owner")
	f.Var(&expires, "expires", "how long it is valid, "+expires.forms()+" (default: 1h)")
	return c
}

// withTokens is like withExisting, for what only a server with access control does.
func (e *env) withTokens(ctx context.Context, f func(*connection) error) error {
	if err := e.exists(); err != nil {
		return tapedeck.Errorf(tapedeck.NotFound, "%w, and no server is named", err).
			WithHint("name the server that makes the tokens with --url, or its data folder with --data; it runs with tapedeck serve --auth")
	}
	return e.with(ctx, f)
}

func (e *env) issueToken(ctx context.Context, c *connection, n api.NewToken) error {
	made, err := c.IssueToken(ctx, n)
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(made)
	}
	e.notice("%s is valid until %s; only this time you see what to send:", made.ID, instant(made.Expires))
	_, err = fmt.Fprintln(e.stdout, made.Token)
	return err
}

func newTokenIssued(e *env) *cobra.Command {
	var by, session string
	c := &cobra.Command{
		Use:   "issued",
		Short: "List the tokens of sessions",
		Long: `Issued lists the valid tokens of all sessions, newest first: those that have a name, and
those that were used since the server has started. It needs the token of an admin.

With --session it lists those of one session that have a name, for its owner.`,
		Example: `  tapedeck token issued
  tapedeck token issued --by ada --json
  tapedeck token issued --session ses_…`,
		Args: both(noFile, noArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if by != "" && session != "" {
				return usageError("--by and --session cannot be used together")
			}
			return e.withTokens(c.Context(), func(conn *connection) error { return e.listIssued(c.Context(), conn, session, by) })
		},
	}
	c.Flags().StringVar(&by, "by", "", "only those that this user issued")
	c.Flags().StringVar(&session, "session", "", "those of this session")
	return c
}

func (e *env) listIssued(ctx context.Context, c *connection, session, by string) error {
	var list api.SessionTokens
	var err error
	if session != "" {
		list, err = c.Tokens(ctx, session)
	} else {
		list, err = c.IssuedTokens(ctx, by)
	}
	if err != nil {
		return err
	}
	if e.json {
		return e.printJSON(list)
	}
	if len(list.Tokens) == 0 {
		e.notice("no tokens of sessions; one without a name is listed only after it was used, and not with --session")
		return nil
	}
	const row = "%-30s  %-6s  %-12s  %s%s\n"
	p := e.pen()
	if err := p.Printf("%s", p.Paint(terminal.Dim, fmt.Sprintf(row, "SESSION", "ROLE", "SUBJECT", "NAME", ""))); err != nil {
		return err
	}
	for _, t := range list.Tokens {
		about := fmt.Sprintf("  by %s  until %s  %s", terminal.Clean(t.IssuedBy), instant(t.Expires), t.ID)
		if err := p.Printf(row, terminal.Clean(t.Session), t.Role, terminal.Clean(t.Subject), terminal.Clean(cmp.Or(t.Name, "-")), p.Paint(terminal.Dim, about)); err != nil {
			return err
		}
	}
	if list.More {
		e.notice("there are older ones: --by shows those of one user")
	}
	return nil
}

// revokeIssued revokes the tokens of sessions that a subject issued.
func (e *env) revokeIssued(ctx context.Context, by string) error {
	return e.withTokens(ctx, func(c *connection) error {
		listed, err := c.IssuedTokens(ctx, by)
		if err == nil {
			err = c.RevokeIssuedTokens(ctx, by)
		}
		if err != nil {
			return err
		}
		n := strconv.Itoa(len(listed.Tokens))
		if n == "0" {
			return e.printDone(map[string]string{"issued_by": by, "listed": n}, "0 tokens of sessions that %s issued were listed: nothing was revoked, unless there was one without a name that nobody has used", terminal.Clean(by))
		}
		if listed.More {
			n = "more than " + n
		}
		return e.printDone(map[string]string{"issued_by": by, "listed": n}, "revoked all tokens of sessions that %s issued; %s of them were listed", terminal.Clean(by), n)
	})
}

// revokeOfSession revokes a token of a session; without an id, all of them.
func (e *env) revokeOfSession(ctx context.Context, session, id string) error {
	return e.withTokens(ctx, func(c *connection) error {
		var err error
		if id == "" {
			err = c.RevokeTokens(ctx, session)
		} else {
			err = c.RevokeToken(ctx, session, id)
		}
		if err != nil {
			return err
		}
		return e.printDone(map[string]string{"session_id": session, "revoked": id}, "revoked %s of session %s", terminal.Clean(cmp.Or(id, "all tokens")), terminal.Clean(session))
	})
}
