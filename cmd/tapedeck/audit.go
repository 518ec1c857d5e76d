package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
)

type auditFlags struct {
	api.AuditQuery
	from, to moment
	follow   bool
}

func newAudit(e *env) *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show who deleted, exported, erased and shared sessions, changed tokens, or was refused",
		Long: `Audit shows the audit log of the data folder, oldest first. It reads the files of the
log, also while a server uses the folder. With --url it asks that server, which needs
the token of an admin in $` + tokenVariable + `.

What changes a session, such as a rewind or an answer, is an event of the session with
its actor, and not here. docs/security.md says what is recorded.`,
		Example: `  tapedeck audit
  tapedeck audit --action session.delete --from 7d
  tapedeck audit --actor ada --json
  tapedeck audit --outcome refused --follow`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.audit(c.Context(), f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.Action, "action", "", "only this action, or the actions that begin with it: session, session.delete, token, login …")
	fl.StringVar(&f.Actor, "actor", "", "only what this subject did")
	fl.StringVar(&f.Session, "session", "", "only what concerns the session with this id")
	fl.StringVar(&f.Outcome, "outcome", "", "only allowed, failed or refused")
	fl.Var(&f.from, "from", "only from this time on: 2026-01-05, 2026-01-05T12:34:56Z, or 7d or 12h ago")
	fl.Var(&f.to, "to", "only before this time")
	fl.IntVar(&f.Limit, "limit", 100, "the newest this many, at most 1000")
	fl.BoolVar(&f.follow, "follow", false, "show what follows, until you interrupt it")
	return c
}

// A moment is a time on the command line.
type moment struct{ time.Time }

// Set implements [pflag.Value].
//
// [pflag.Value]: https://pkg.go.dev/github.com/spf13/pflag#Value
func (m *moment) Set(s string) error {
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			m.Time = t
			return nil
		}
	}
	ago := lifetime{most: maxDays}
	if ago.Set(s) != nil {
		return errors.New("it is written as 2026-01-05, 2026-01-05T12:34:56Z, 12h or 7d")
	}
	m.Time = time.Now().Add(-ago.Duration)
	return nil
}

// String implements [pflag.Value].
//
// [pflag.Value]: https://pkg.go.dev/github.com/spf13/pflag#Value
func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format(time.RFC3339)
}

// Type implements [pflag.Value].
//
// [pflag.Value]: https://pkg.go.dev/github.com/spf13/pflag#Value
func (m *moment) Type() string { return "time" }

func (e *env) audit(ctx context.Context, f auditFlags) error {
	if f.Limit < 1 || f.Limit > 1000 {
		return usageError("--limit takes a number from 1 to 1000")
	}
	if !slices.Contains([]string{"", audit.Allowed, audit.Failed, audit.Refused}, f.Outcome) {
		return usageError("--outcome is allowed, failed or refused, not %q", f.Outcome)
	}
	f.From, f.To = f.from.Time, f.to.Time
	if u := e.serverURL(); u != "" {
		if f.follow {
			return e.onlyFolder("--follow reads the data folder, not through a server")
		}
		return e.auditURL(ctx, u, f.AuditQuery)
	}
	if err := e.exists(); err != nil {
		return err
	}
	return e.auditFolder(ctx, f)
}

// auditURL shows the log of a server.
func (e *env) auditURL(ctx context.Context, url string, q api.AuditQuery) error {
	c, err := e.connectURL(ctx, url)
	if err != nil {
		return err
	}
	defer c.close()
	page, err := c.Audit(ctx, q)
	if err != nil {
		return err
	}
	return e.printAudit(&page)
}

// auditFolder shows the log of the data folder, and follows it.
func (e *env) auditFolder(ctx context.Context, f auditFlags) error {
	var follower *audit.Follower
	if f.follow { // before the read, so that nothing is missed
		var err error
		if follower, err = audit.NewFollower(e.folder(), f.AuditQuery); err != nil {
			return err
		}
		defer func() { _ = follower.Close() }()
	}
	page, err := audit.Read(e.folder(), f.AuditQuery)
	if err == nil {
		err = e.printAudit(&page)
	}
	if err != nil || follower == nil {
		return err
	}
	var last time.Time
	if len(page.Records) > 0 {
		last = page.Records[0].Time
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	err = follower.Run(ctx, tick.C, func(records []api.AuditRecord) error {
		for i := range records {
			if records[i].Time.After(last) { // the read has shown the others
				if err := e.printAuditRecord(&records[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// followEvery is how often the files of the log are looked at.
const followEvery = 300 * time.Millisecond

func (e *env) printAudit(page *api.AuditPage) error {
	for _, r := range slices.Backward(page.Records) {
		if err := e.printAuditRecord(&r); err != nil {
			return err
		}
	}
	if page.Next != nil {
		e.notice("there are older records: --limit, or --to %s", page.Next.Format(time.RFC3339Nano))
	}
	if page.Unreadable > 0 {
		e.notice("%s of the log cannot be read: a crash has cut off the last line that was being written, or somebody has changed the files", terminal.Count(page.Unreadable, "line"))
	}
	return nil
}

func (e *env) printAuditRecord(r *api.AuditRecord) error {
	if e.json {
		return e.printJSON(r)
	}
	p := e.pen()
	colour := terminal.Dim
	if r.Outcome == audit.Refused || r.Outcome == audit.Failed {
		colour = terminal.Red
	}
	who := cmp.Or(terminal.Clean(r.Actor), "-")
	if r.Role != "" {
		who += " (" + terminal.Clean(r.Role) + ")"
	}
	line := fmt.Sprintf("%s  %s  %-20s  %-16s", instant(r.Time), p.Paint(colour, fmt.Sprintf("%-7s", terminal.Clean(r.Outcome))), terminal.Clean(r.Action), who)
	for _, part := range [...]struct{ name, value string }{
		{"session", r.Session}, {"token", r.TokenID}, {"from", r.Remote}, {"request", r.Request}, {"times", countOf(r.Count)}, {"reason", r.Reason},
	} {
		if part.value != "" {
			line += "  " + p.Paint(terminal.Dim, part.name+" ") + terminal.Clean(part.value)
		}
	}
	return p.Printf("%s\n", line)
}

func countOf(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// localActor is the actor of the command line in the audit log: the user of the system.
func localActor() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return "local:" + u.Username
	}
	return "local:" + strconv.Itoa(os.Getuid())
}

// recordToken records a change of a file of tokens in the audit log of the data folder. The
// file may be that of a server elsewhere; then the folder has no data, and nothing is created
// in it: that server records what it finds.
func (e *env) recordToken(action, id, reason string) error {
	if !hasData(e.folder()) {
		hint := "name the folder of the server with --data"
		if e.data != "" {
			hint = "is this the folder of the server?"
		}
		e.notice("there are no sessions in %s, so no audit log has this change; %s", terminal.Clean(e.folder()), hint)
		return nil
	}
	log := audit.Open(e.folder(), audit.Options{})
	defer log.Close()
	return log.Add(api.AuditRecord{Action: action, Outcome: audit.Allowed, Actor: localActor(), Role: audit.RoleLocal, TokenID: id, Reason: reason})
}
