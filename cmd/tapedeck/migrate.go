package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/cmd/tapedeck/internal/terminal"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/postgres"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func newMigrate(e *env) *cobra.Command {
	var from, to []string
	c := &cobra.Command{
		Use:   "migrate --from sqlite:FOLDER --to postgres://…",
		Short: "Copy all sessions from a data folder to PostgreSQL, or back",
		Long: `Migrate copies everything that a data folder or a PostgreSQL database has to an empty
one of the other kind: sessions, streams, forks, erased events, deadlines, producers,
subscriptions and workflows, with the same ids, offsets and times. A fork stays a
reference to the session that it was forked from. The search index is created again
by the server that opens the target.

The source stays as it is. Stop its server first. Migrate checks the source as verify
does, copies, and at the end compares each row and each event of both sides. Until
then no server opens the target.

If migrate is interrupted, in whatever way, run the same command again: it continues
where it stopped. It refuses to continue if the source has changed meanwhile.

The keys and the folders of agents are files of the data folder, which migrate does
not copy; docs/postgres.md says how to keep them.`,
		Example: `  tapedeck migrate --from sqlite:/var/lib/tapedeck --to postgres://tapedeck@db.example/tapedeck
  PGPASSWORD=secret tapedeck migrate --from postgres://tapedeck@db.example/tapedeck --to sqlite:./tapedeck-data`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if e.url != "" || e.data != "" {
				return usageError("migrate takes its data from --from and --to, so neither --data nor --url can be used with it")
			}
			if len(from) > 1 || len(to) > 1 {
				return usageError("migrate copies one folder or one database, not several databases; copy single sessions with tapedeck export and tapedeck import")
			}
			return e.migrate(c.Context(), strings.Join(from, ""), strings.Join(to, ""))
		},
	}
	c.Flags().StringArrayVar(&from, "from", nil, "the data folder (sqlite:FOLDER) or the database (postgres://…, see serve) to copy")
	c.Flags().StringArrayVar(&to, "to", nil, "the empty data folder or database to copy to")
	return c
}

const (
	folderScheme = "sqlite:"
	placeUsage   = "sqlite:FOLDER or postgres://user@host/database"
)

// isDatabase reports whether a place of migrate is a database; otherwise folder is the data
// folder.
func isDatabase(flag, place string) (database bool, folder string, err error) {
	switch path, isFolder := strings.CutPrefix(place, folderScheme); {
	case place == "":
		return false, "", usageError("migrate needs --%s %s", flag, placeUsage)
	case isFolder && path == "":
		return false, "", usageError("--%s names no folder; it takes %s", flag, placeUsage)
	case isFolder:
		return false, path, nil
	case strings.HasPrefix(place, "postgres://"), strings.HasPrefix(place, "postgresql://"):
		return true, "", nil
	}
	return false, "", usageError("--%s takes %s, not %q", flag, placeUsage, withoutPassword(place))
}

// withoutPassword returns the beginning of an argument that may have a password.
func withoutPassword(s string) string {
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		return scheme + "://…"
	}
	return s
}

func (e *env) migrate(ctx context.Context, from, to string) error {
	fromDatabase, fromFolder, err := isDatabase("from", from)
	if err != nil {
		return err
	}
	toDatabase, toFolder, err := isDatabase("to", to)
	switch {
	case err != nil:
		return err
	case fromDatabase && toDatabase:
		return usageError("migrate copies between a data folder and a database; to copy a database use pg_dump")
	case !fromDatabase && !toDatabase:
		return usageError("migrate copies between a data folder and a database; to copy a folder see docs/storage.md")
	case toDatabase:
		return e.migrateToDatabase(ctx, fromFolder, postgres.Options{URL: to})
	}
	return sqlite.Attempt(toFolder, func() error { return e.migrateToFolder(ctx, postgres.Options{URL: from}, toFolder) })
}

func (e *env) migrateToDatabase(ctx context.Context, folder string, o postgres.Options) (err error) {
	source, err := sqlite.OpenSource(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := postgres.OpenTarget(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := e.transfer(ctx, source, target); err != nil || e.json {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s\n", terminal.Clean("The folder "+folder+" is unchanged. To serve the database with the keys of this folder, move its tapedeck.db away and start: tapedeck serve --data "+folder+" --postgres URL"))
	return err
}

func (e *env) migrateToFolder(ctx context.Context, o postgres.Options, folder string) (err error) {
	source, err := postgres.OpenSource(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if other := databaseOf(folder); other != "" && other != source.Where() {
		return tapedeck.Errorf(tapedeck.Conflict, "the sessions of the folder %s are in another database: %s", folder, other).
			WithHint("name another folder")
	}
	target, err := sqlite.OpenTarget(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := e.transfer(ctx, source, target); err != nil {
		return err
	}
	// The folder has said that its sessions are in the database.
	if err := os.Remove(filepath.Join(folder, placeName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tapedeck.Errorf(tapedeck.Invalid, "all sessions are in %s, but its file %s cannot be removed", folder, placeName).
			WithHint("remove it, so that a server can start on the folder").Because(err)
	}
	if e.json {
		return nil
	}
	_, err = fmt.Fprintf(e.stdout, "%s\n", terminal.Clean("The database is unchanged. To serve the folder: tapedeck serve --data "+folder))
	return err
}

// transfer copies, and prints what was copied.
func (e *env) transfer(ctx context.Context, from store.TransferSource, to store.TransferTarget) error {
	progress, end := e.showSteps()
	r, err := store.Transfer(ctx, from, to, progress)
	end()
	switch {
	case err != nil && r.Begun && tapedeck.KindOf(err) != tapedeck.Internal || r.Begun && ctx.Err() != nil:
		e.notice("the migration is not complete; run the same command again to continue it")
		return err
	case err != nil:
		return err
	case e.json:
		return e.printJSON(map[string]any{
			"step": "done", "sessions": r.Sessions, "streams": r.Streams, "events": r.Events, "bytes": r.Bytes, "rows": r.Rows, "resumed": r.Resumed,
		})
	}
	_, err = fmt.Fprintf(e.stdout, "%s, %s, %s, %s: copied from %s to %s and compared\n",
		terminal.Count(int(r.Sessions), "session"), terminal.Count(int(r.Streams), "stream"), terminal.Count(int(r.Events), "event"),
		terminal.Count(int(r.Bytes), "byte"), terminal.Clean(from.Where()), terminal.Clean(to.Where()))
	return err
}

// stepTexts say what each step of a transfer does.
var stepTexts = map[string]string{
	store.StepCheck: "checking the source: %d of %d events", store.StepSessions: "copying: %d of %d sessions",
	store.StepEvents: "copying: %d of %d events", store.StepCompare: "comparing: %d of %d events",
	sqlite.StepBackup: "copying: up to position %d of %d", sqlite.StepCheckBackup: "checking the backup: %d of %d bytes",
	sqlite.StepRestore: "restoring: up to position %d of %d", sqlite.StepVerify: "checking the result: %d of %d events",
}

// stepEvery is the time between two lines of progress.
const stepEvery = time.Second

// showSteps returns a function that shows progress: on a terminal in one line, and as JSON
// with --json; and a function that removes that line.
func (e *env) showSteps() (show func(step string, done, total int64), end func()) {
	if !e.json && !e.color(e.stderr) {
		return nil, func() {}
	}
	var shown string
	var last time.Time
	show = func(step string, done, total int64) {
		if step == shown && time.Since(last) < stepEvery {
			return
		}
		shown, last = step, time.Now()
		if e.json {
			_ = e.printJSON(map[string]any{"step": step, "done": done, "total": total})
			return
		}
		fmt.Fprintf(e.stderr, "\r\x1b[K"+stepTexts[step], done, total)
	}
	if e.json {
		return show, func() {}
	}
	return show, func() { fmt.Fprint(e.stderr, "\r\x1b[K") }
}
