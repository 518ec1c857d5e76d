package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck/audit"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// restoreFlags are the flags of restore.
type restoreFlags struct {
	to, at, session string
	before          int64
	withoutKeys     bool
	damaged         bool
}

func newRestore(e *env) *cobra.Command {
	var f restoreFlags
	c := &cobra.Command{
		Use:   "restore DEST --to FOLDER",
		Short: "Create a data folder from a backup, as of now or of an earlier moment",
		Long: `Restore creates the data folder FOLDER from a backup. FOLDER must be new or empty.
Restore checks the backup first, the checksum of each event, and the result at the
end, as verify does. A damaged event is named with its session and offset, and nothing
is restored. With --damaged it restores what can be read. Damaged events stay damaged:
verify names them and no read returns them. ` + "`tapedeck salvage`" + ` then makes a sound folder
of the rest.

With --at it leaves out everything that was stored after that moment: events,
sessions, and what the catalogue says of them. A run that was open then is ended as
interrupted when a server starts. A session that was deleted after that moment is
there if a backup was made between the moment and the deletion.

With --session it restores one session, and with --before only its events before an
offset. The sessions that it was forked from are stored, but hidden. To bring it
into another folder, export it from FOLDER and import it there.

The restored folder has a history of its own: an entity tag from before does not match
any more, and a stream refuses the cursor of a client. A client that goes on from an
offset alone must begin again.`,
		Example: `  tapedeck restore /backup/tapedeck --to ./restored
  tapedeck restore /backup/tapedeck --to ./restored --at 2026-01-05T12:00:00Z
  tapedeck restore /backup/tapedeck --to ./restored --session notes --before 120`,
		Args: oneBackup,
		RunE: func(c *cobra.Command, args []string) error {
			o, err := f.options(c, e)
			if err != nil {
				return err
			}
			return e.restore(c.Context(), args[0], f.to, o)
		},
	}
	c.Flags().StringVar(&f.to, "to", "", "the folder to create")
	c.Flags().StringVar(&f.at, "at", "", "the moment: a day such as 2026-01-31, a time such as 2026-01-31T12:00:00Z, or an age such as 12h")
	c.Flags().StringVar(&f.session, "session", "", "restore only this session")
	c.Flags().Int64Var(&f.before, "before", -1, "with --session: restore only the events before this offset")
	c.Flags().BoolVar(&f.damaged, "damaged", false, "restore also if events are damaged; these are not served")
	c.Flags().BoolVar(&f.withoutKeys, "without-keys", false, "restore sessions only, without keys and settings")
	return c
}

// options returns the options of the restore that the flags describe.
func (f *restoreFlags) options(c *cobra.Command, e *env) (o sqlite.RestoreOptions, err error) {
	switch {
	case e.data != "" || e.url != "":
		return o, usageError("restore creates the folder that --to names, so neither --data nor --url can be used with it")
	case f.to == "":
		return o, usageError("restore needs --to FOLDER, the folder to create")
	case c.Flags().Changed("before") && f.session == "":
		return o, usageError("--before is for --session")
	case c.Flags().Changed("before") && f.before < 0:
		return o, usageError("--before takes an offset, not %d", f.before)
	case f.damaged && (c.Flags().Changed("at") || c.Flags().Changed("before")):
		return o, usageError("--damaged restores all that can be read, so --at and --before cannot be used with it")
	case c.Flags().Changed("session") && f.session == "":
		return o, usageError("--session names no session")
	}
	at, err := parseTime(f.at, time.Now())
	if err != nil || c.Flags().Changed("at") && at.IsZero() {
		return o, usageError("--at: %q is not a day such as 2026-01-31, a time, or an age such as 12h", f.at)
	}
	return sqlite.RestoreOptions{At: at, Session: f.session, Before: f.before, Files: !f.withoutKeys, Damaged: f.damaged}, nil
}

func (e *env) restore(ctx context.Context, dest, to string, o sqlite.RestoreOptions) error {
	show, end := e.showSteps()
	if show != nil {
		o.Progress = show
	}
	var r sqlite.RestoreReport
	err := sqlite.Attempt(to, func() (err error) {
		r, err = sqlite.Restore(ctx, dest, to, o)
		return err
	})
	end()
	if err != nil {
		return err
	}
	e.recordFolder(to, audit.Restore, audit.Allowed, "from "+dest+", as of "+r.Point.Time.Format(time.RFC3339))
	if e.json {
		return e.printJSON(map[string]any{
			"step": "done", "backup_time": r.Point.Time, "sessions": r.Sessions, "streams": r.Streams, "events": r.Events, "bytes": r.Bytes, "left_out": r.LeftOut, "missing": r.Missing,
			"problems": append([]string{}, r.Problems...), "more_problems": r.More,
		})
	}
	e.printProblems(&r.Report)
	left := terminal.Count(int(r.LeftOut), "event") + " left out"
	if o.Damaged {
		left = terminal.Count(int(r.Missing), "event") + " missing"
	}
	_, err = fmt.Fprintf(e.stdout, "%s, %s, %s restored to %s and checked; %s\nTo serve it: tapedeck serve --data %s\n",
		terminal.Count(int(r.Sessions), "session"), terminal.Count(int(r.Streams), "stream"), terminal.Count(int(r.Events), "event"),
		terminal.Clean(to), left, terminal.Clean(to))
	return err
}
