package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/agentconfig"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// keyFiles and settingFiles are the files of a data folder that a backup has beside the
// sessions.
var (
	keyFiles     = []string{"access.key", "webhook-keys.json", "push-key"}
	settingFiles = []string{"revoked.json", agentconfig.FileName}
)

// oneBackup checks the arguments of a command that takes a backup.
func oneBackup(c *cobra.Command, args []string) error {
	if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
		return usageError("%s takes one folder, that of the backup; see: %s --help", c.CommandPath(), c.CommandPath())
	}
	return nil
}

// backupFlags are the flags of backup.
type backupFlags struct {
	verify, prune, withoutKeys bool
	keep                       lifetime
	postgres                   string
}

func newBackup(e *env) *cobra.Command {
	f := backupFlags{keep: lifetime{most: maxDays}}
	c := &cobra.Command{
		Use:   "backup DEST",
		Short: "Back up the data folder while a server uses it",
		Long: `Backup copies what is new in the data folder to the folder DEST: the first time
everything, later only the new events and the catalogue of sessions. A server may use
the data folder meanwhile. Everything that was acknowledged before backup began is in
it. Each backup is a moment to which restore can go back.

If backup is interrupted, in whatever way, what DEST had before stays good. Run the
same command again: it continues.

Events of the data folder that are damaged are named. The backup has them as they are,
earlier moments stay as they were, and --prune removes nothing then.

Erased events and deleted sessions are not in later moments, but earlier moments of
DEST still have them. --prune removes them from its files: DEST then forgets what the
data folder no longer has. With --keep, restores to moments up to that long ago stay
possible, so DEST forgets later.

DEST has the keys of the server, unless you give --without-keys. It does not have the
search index, which a server creates again, and the folders of agents.`,
		Example: `  tapedeck backup /backup/tapedeck
  tapedeck backup /backup/tapedeck --prune --keep 30d
  tapedeck backup /backup/tapedeck --verify`,
		Args: oneBackup,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c, e); err != nil {
				return err
			}
			if f.verify {
				return e.verifyBackup(c.Context(), args[0])
			}
			return e.backup(c.Context(), args[0], &f)
		},
	}
	c.Flags().BoolVar(&f.verify, "verify", false, "make no backup, but read all of DEST and compare it with its checksums and those of the events")
	c.Flags().BoolVar(&f.prune, "prune", false, "remove earlier moments from DEST, and what was erased or deleted since")
	c.Flags().Var(&f.keep, "keep", "with --prune: keep the moments of this time, "+f.keep.forms())
	c.Flags().BoolVar(&f.withoutKeys, "without-keys", false, "leave out the keys of the server: "+strings.Join(keyFiles, ", "))
	c.Flags().StringVar(&f.postgres, "postgres", "", "not possible: PostgreSQL has backups of its own, see docs/postgres.md")
	_ = c.Flags().MarkHidden("postgres")
	return c
}

// check refuses flags that do not fit together.
func (f *backupFlags) check(c *cobra.Command, e *env) error {
	switch {
	case c.Flags().Changed("postgres"):
		return usageError("backup copies a data folder; back up a PostgreSQL database with its own tools, such as pg_dump: docs/postgres.md")
	case f.verify && (f.prune || f.withoutKeys):
		return usageError("--verify only reads the backup, so --prune and --without-keys cannot be used with it")
	case c.Flags().Changed("keep") && !f.prune:
		return usageError("--keep is for --prune")
	}
	return e.onlyFolder("backup works on a data folder, also while a server uses it, but not through a server")
}

// inDatabase returns an error if the sessions of the data folder are in PostgreSQL.
func (e *env) inDatabase() error {
	other := databaseOf(e.folder())
	if other == "" {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "the sessions of %s are in PostgreSQL: %s", e.folder(), other).
		WithHint("back up the database with its own tools, such as pg_dump, and copy the keys in the folder; see docs/postgres.md")
}

func (e *env) backup(ctx context.Context, dest string, f *backupFlags) error {
	if err := e.inDatabase(); err != nil {
		return err
	}
	if err := sqlite.Find(e.folder()); err != nil {
		return err
	}
	o := sqlite.BackupOptions{Files: settingFiles, Prune: f.prune, Keep: f.keep.Duration}
	if !f.withoutKeys {
		o.Files = append(o.Files[:len(o.Files):len(o.Files)], keyFiles...)
	}
	show, end := e.showSteps()
	if show != nil {
		o.Progress = func(done, total int64) { show(sqlite.StepBackup, done, total) }
	}
	done := e.recordBackup(dest, f)
	var r sqlite.BackupReport
	err := sqlite.Attempt(dest, func() (err error) {
		r, err = sqlite.Backup(ctx, e.folder(), dest, o)
		return err
	})
	end()
	done(err)
	if err != nil {
		return err
	}
	return e.printBackup(dest, &r)
}

// recordBackup records a backup in the audit log of the data folder. Call done with the error
// of the backup: a failure is recorded, too. If the record cannot be written, the backup goes
// on, because a folder on a full or broken disk needs it most. A user who can read the folder
// can copy it with other programs anyway.
func (e *env) recordBackup(dest string, f *backupFlags) (done func(error)) {
	action, reason := audit.Backup, "to "+dest
	if f.prune {
		action = audit.Prune
	}
	if f.withoutKeys {
		reason += ", without keys"
	}
	e.recordFolder(e.folder(), action, audit.Allowed, reason)
	return func(err error) {
		if err != nil {
			e.recordFolder(e.folder(), action, audit.Failed, string(tapedeck.KindOf(err)))
		}
	}
}

// recordFolder records what was done with a data folder in its audit log.
func (e *env) recordFolder(dir, action, outcome, reason string) {
	log := audit.Open(dir, audit.Options{})
	defer log.Close()
	err := log.Add(api.AuditRecord{Action: action, Outcome: outcome, Actor: localActor(), Role: audit.RoleLocal, Reason: reason})
	if err != nil {
		e.notice("the audit log of %s does not have this: %v", terminal.Clean(dir), cmp.Or(errors.Unwrap(err), err))
	}
}

func (e *env) printBackup(dest string, r *sqlite.BackupReport) error {
	if e.json {
		if err := e.printJSON(map[string]any{
			"step": "done", "time": r.Time, "new": r.New, "new_events": r.NewEvents, "written": r.Written, "sessions": r.Sessions, "streams": r.Streams,
			"events": r.Events, "bytes": r.Bytes, "moments": r.Points, "removed": r.Forgotten,
			"problems": append([]string{}, r.Found.Problems...), "more_problems": r.Found.More,
		}); err != nil {
			return err
		}
		return foundDamage(&r.Found)
	}
	what := fmt.Sprintf("%s, %s", terminal.Count(int(r.NewEvents), "new event"), terminal.Count(int(r.Written), "byte"))
	if !r.New {
		what = "nothing new"
	}
	_, err := fmt.Fprintf(e.stdout, "%s\n%s, %s, %s at %s; %s in %s\n", what,
		terminal.Count(int(r.Sessions), "session"), terminal.Count(int(r.Streams), "stream"), terminal.Count(int(r.Events), "event"),
		r.Time.Format(time.RFC3339), terminal.Count(r.Points, "moment"), terminal.Clean(dest))
	if err == nil && r.Forgotten > 0 {
		_, err = fmt.Fprintf(e.stdout, "%s removed from the backup\n", terminal.Count(int(r.Forgotten), "event"))
	}
	if err != nil {
		return err
	}
	e.printProblems(&r.Found)
	return foundDamage(&r.Found)
}

// foundDamage returns the error of a backup that has copied damaged events.
func foundDamage(found *store.Report) error {
	n := int64(len(found.Problems)) + found.More
	if n == 0 {
		return nil
	}
	return &exitError{exitFailed, tapedeck.Errorf(tapedeck.Internal, "the backup was made, but the data folder has damaged events, and so has the backup: %d", n).
		WithHint("earlier moments of the backup are as they were, and --prune removes nothing now; `tapedeck verify` names all damage")}
}

func (e *env) verifyBackup(ctx context.Context, dest string) error {
	show, end := e.showSteps()
	var progress func(done, total int64)
	if show != nil {
		progress = func(done, total int64) { show(sqlite.StepCheckBackup, done, total) }
	}
	r, err := sqlite.CheckBackup(ctx, dest, progress)
	end()
	if err != nil {
		return err
	}
	if !e.json {
		fmt.Fprintf(e.stdout, "%s, %s\n", terminal.Count(r.Files, "file"), terminal.Count(len(r.Points), "moment"))
		for i := range r.Points {
			p := &r.Points[i]
			fmt.Fprintf(e.stdout, "  %s  %s, %s\n", p.Time.Format(time.RFC3339), terminal.Count(int(p.Sessions), "session"), terminal.Count(int(p.Events), "event"))
		}
	}
	return e.printReport(&r.Report)
}
