package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
	"github.com/tapedeck/tapedeck/internal/ownfile"
	"github.com/tapedeck/tapedeck/store"
)

// RestoreOptions are the options of a restore. The zero value restores everything.
type RestoreOptions struct {
	At       time.Time // leave out what was stored later; zero for nothing
	Session  string    // restore only this session
	Before   int64     // of Session, only the events before this offset; negative for all
	Files    bool      // restore keys and settings, too
	Damaged  bool      // restore also if events are damaged. They stay damaged: no read returns them
	Progress func(step string, done, total int64)
	Now      func() time.Time // nil for [time.Now]
}

// A RestoreReport says what a restore has created. It has problems only with Damaged.
type RestoreReport struct {
	store.Report
	Point   Point // that was used
	LeftOut int64 // events of the restored sessions that came later
	Missing int64 // events of the restored sessions that cannot be read; only with Damaged
}

// The steps of a backup and of a restore, for progress.
const (
	StepBackup      = "backup"
	StepCheckBackup = "check_backup"
	StepRestore     = "restore"
	StepVerify      = "verify"
)

// restoringName is the database of a restore that is not complete. No server opens it.
const restoringName = "restoring.db"

// Restore creates the data folder dir from the backup dest. It checks the backup first, and
// the result at the end, as [Store.Verify] does.
//
// The folder has a history of its own from then on. So every session gets a new gen, which
// no session of the folder that was copied ever had.
func Restore(ctx context.Context, dest, dir string, o RestoreOptions) (RestoreReport, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	if o.Damaged && (!o.At.IsZero() || o.Session != "" && o.Before >= 0) {
		return RestoreReport{}, tapedeck.Errorf(tapedeck.Invalid, "a damaged backup is restored with all its events, not up to a moment or an offset")
	}
	r := &restore{RestoreOptions: o, dest: dest}
	report, err := r.run(ctx, dir)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return report, err
}

// A restore is the creation of a folder from a backup.
type restore struct {
	RestoreOptions
	dest, file string
	m          *manifest
	point      *Point
	before     int64    // position up to which everything was stored before At
	timeline   int64    // see sqlTimeline
	shift      int64    // what is added to each gen
	cut        []string // ids of the sessions that have lost events
	damaged    store.Report
	conn       *conn
	report     RestoreReport
}

func (r *restore) run(ctx context.Context, dir string) (RestoreReport, error) {
	release, err := r.openBackup()
	if err != nil {
		return r.report, backupError(r.dest, err)
	}
	defer release()
	check := func(done, total int64) { r.Progress(StepCheckBackup, done, total) }
	found, err := checkBackup(ctx, r.dest, r.m, false, check)
	if err == nil && (!r.Damaged || !found.onlyEvents) {
		err = found.problems(r.dest)
	}
	if err != nil {
		return r.report, backupError(r.dest, err)
	}
	if err := r.choose(); err != nil {
		return r.report, err
	}
	if r.file, err = filepath.Abs(filepath.Join(dir, restoringName)); err != nil {
		return r.report, err
	}
	if err := apart(dir, r.dest); err != nil {
		return r.report, err
	}
	lock, err := emptyFolder(dir)
	if err != nil {
		return r.report, err
	}
	defer lock.Release()
	if err := r.create(ctx); err != nil {
		removeDatabase(r.file)
		return r.report, restoreError(dir, err)
	}
	return r.report, restoreError(dir, r.finish(dir))
}

// openBackup reads and locks the backup.
func (r *restore) openBackup() (release func(), err error) {
	if r.m, err = readManifest(r.dest); errors.Is(err, fs.ErrNotExist) {
		return nil, tapedeck.Errorf(tapedeck.NotFound, "there is no backup in %s", r.dest).
			WithHint("name a folder that `tapedeck backup` has made; it has a file %s", manifestName)
	}
	if err != nil {
		return nil, err
	}
	if len(r.m.Points) == 0 {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the first backup to %s was interrupted", r.dest).WithHint("run `tapedeck backup` again")
	}
	if r.dest, err = filepath.Abs(r.dest); err != nil {
		return nil, err
	}
	return lockBackup(r.dest)
}

// choose chooses the point to restore from: the first one after At.
func (r *restore) choose() error {
	r.point = r.m.last()
	if !r.At.IsZero() {
		if r.At.After(r.point.Time) {
			return tapedeck.Errorf(tapedeck.Invalid, "the backup was made at %s, before %s", r.point.Time.Format(time.RFC3339), r.At.UTC().Format(time.RFC3339)).
				WithHint("leave out --at to restore all of it, or make a newer backup first")
		}
		for i := len(r.m.Points) - 1; i >= 0 && !r.m.Points[i].Time.Before(r.At); i-- {
			r.point = &r.m.Points[i]
		}
		for i := range r.m.Points {
			if p := &r.m.Points[i]; p.Chain == r.point.Chain && !p.Time.After(r.At) {
				r.before = p.Pos
			}
		}
	}
	if known := knownVersion(); r.point.Schema > known {
		return tapedeck.Errorf(tapedeck.Conflict, "the backup %s has data of a newer Tapedeck (its schema is number %d, this program knows %d)", r.dest, r.point.Schema, known).
			WithHint("use that version or a later one")
	}
	return nil
}

// emptyFolder creates and locks the folder to restore to. What a restore that was killed
// has left is removed.
func emptyFolder(dir string) (*Lock, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, folderError(dir, err)
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), restoringName)
		if ours := ok && slices.Contains(databaseEnds[:], rest); e.Name() != lockName && !ours {
			return nil, tapedeck.Errorf(tapedeck.Conflict, "the folder %s is not empty", dir).WithHint("name a new folder with --to")
		}
	}
	file := filepath.Join(dir, restoringName)
	if err := cmp.Or(ownfile.Check(file, isSQLite), checkBeside(file, missing(file))); err != nil {
		return nil, err
	}
	lock, err := TakeLock(dir)
	if err == nil {
		removeDatabase(file)
	}
	return lock, err
}

// databaseEnds are the ends of the names of a database's files. They are removed in this
// order: a file beside a database that is not there is not ours, see checkBeside.
var databaseEnds = [...]string{"-journal", "-shm", "-wal", ""}

// removeDatabase removes a database that nobody uses. An error shows when it is created.
func removeDatabase(file string) {
	for _, end := range databaseEnds {
		_ = os.Remove(file + end)
	}
}

func restoreError(dir string, err error) error {
	var known *tapedeck.Error
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case isFull(err):
		return tapedeck.Errorf(tapedeck.Unavailable, "there is no space left in %s", dir).WithHint("make room and run the same command again").Because(err)
	}
	return tapedeck.Errorf(tapedeck.Internal, "the backup cannot be restored to %s", dir).WithHint("check it with `tapedeck backup --verify`").Because(err)
}

// create creates the database under its provisional name, and checks it.
func (r *restore) create(ctx context.Context) (err error) {
	if err := inspect(r.file, 0); err != nil {
		return err
	}
	if err := migrateTo(ctx, r.file, r.point.Schema); err != nil {
		return err
	}
	// It is synced as a whole at the end.
	pragmas := []string{"journal_mode(wal)", "synchronous(off)", "wal_autocheckpoint(4000)", "trusted_schema(0)", "temp_store(1)"}
	if r.conn, err = dial(dataSource(r.file, "rw", pragmas)); err != nil {
		return err
	}
	r.conn.ctx = ctx
	err = r.fill()
	if err = errors.Join(err, r.conn.close()); err != nil {
		return err
	}
	if err := migrate(ctx, r.file); err != nil {
		return err
	}
	c, err := dial(dataSource(r.file, "rw", writerPragmas))
	if err != nil {
		return err
	}
	if err := r.correctEntries(ctx, c); err != nil {
		return errors.Join(err, c.close())
	}
	r.report.Report, err = verify(ctx, c, keyring{}, func(done, total int64) { r.Progress(StepVerify, done, total) })
	if err = errors.Join(err, c.close()); err == nil && len(r.report.Problems) > 0 && !r.Damaged {
		return tapedeck.Errorf(tapedeck.Internal, "the restored sessions are not sound: %s", r.report.Problems[0]).
			WithHint("use another backup, and report this")
	}
	return err
}

// fill copies the rows of the backup.
func (r *restore) fill() error {
	if err := attachRead(r.conn, "catalogue", filepath.Join(r.dest, r.point.Catalogue.Name)); err != nil {
		return err
	}
	for _, step := range [...]func() error{
		r.renumber, r.keepSessions, r.refuseEncrypted, r.copyEvents, r.renewSums, r.cutEnds, r.countMissing, r.copyTables, r.writePlaces, r.correct, r.relink,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return r.conn.exec(`DETACH catalogue`)
}

// attachRead attaches a file of a backup, which may be on a read-only disk.
func attachRead(c *conn, as, file string) error {
	return c.exec(`ATTACH ? AS `+as, source(file, "ro", nil, "1"))
}

// renumber decides which gens the sessions get. The timeline is higher than every gen that
// the folder which was copied had, and than every earlier timeline: it is the time in
// microseconds, and a folder does not get a million sessions in a second.
func (r *restore) renumber() error {
	old, err := r.conn.number(`SELECT coalesce((SELECT value FROM catalogue.facts WHERE name = 'timeline'), 0)`)
	if err != nil {
		return err
	}
	r.timeline = max(r.Now().UnixMicro(), old+1, r.m.last().Gen+1)
	oldest, err := r.conn.number(`SELECT min(gen) FROM catalogue.sessions`)
	r.shift = r.timeline + 1 - oldest
	return err
}

// copyEvents copies the events of the sessions to keep, as they were erased up to the point.
func (r *restore) copyEvents() error {
	names, err := columns(r.conn)
	if err != nil {
		return err
	}
	insert := `INSERT OR REPLACE INTO main.events (` + names + `) SELECT ` + strings.Replace(names, `"session"`, `"session" + ?1`, 1)
	for _, p := range r.m.chain(r.point) {
		if err := attachRead(r.conn, "part", filepath.Join(r.dest, p.Name)); err != nil {
			return err
		}
		if err := r.copyPart(insert); err != nil {
			return err
		}
		if err := r.conn.exec(`DETACH part`); err != nil {
			return err
		}
		r.Progress(StepRestore, p.To, r.point.Pos)
	}
	var overlays []string
	for i := range r.m.Points {
		if p := &r.m.Points[i]; p.Chain == r.point.Chain && p.Number <= r.point.Number {
			overlays = append(overlays, filepath.Join(r.dest, p.Catalogue.Name))
		}
	}
	if err := collect(r.conn, overlays, 0, r.point.Pos); err != nil {
		return err
	}
	return r.conn.exec(insert+` FROM temp.changed WHERE pos IN (SELECT pos FROM main.events)`, r.shift)
}

// copyPart copies the events of the attached part.
func (r *restore) copyPart(insert string) error {
	insert += ` FROM part.events WHERE session + ?1 IN (SELECT gen FROM temp.kept) AND pos `
	if !r.Damaged {
		return r.conn.exec(insert+`<= ?2`, r.shift, r.point.Pos)
	}
	// One by one: a range of those that can be read ends at a page that cannot.
	var all []int64
	w := &walk{conn: r.conn, statement: `SELECT pos, CAST(event AS BLOB) FROM part.events WHERE pos > ? ORDER BY pos`}
	if err := w.run(func(row []driver.Value) { all = append(all, integer(row[0])) }); err != nil {
		return err
	}
	for _, pos := range all {
		if err := r.conn.exec(insert+`= ?2 AND pos <= ?3`, r.shift, pos, r.point.Pos); err != nil {
			return err
		}
	}
	return nil
}

// copyTables copies the rest of the catalogue.
func (r *restore) copyTables() error {
	var tables []string
	err := r.conn.query(func(row []driver.Value) error {
		tables = append(tables, text(row[0]))
		return nil
	}, `SELECT name FROM catalogue.sqlite_schema WHERE type = 'table' AND name NOT IN ('changed', 'facts')`)
	for _, name := range tables {
		if err == nil {
			err = r.copyTable(name)
		}
	}
	return err
}

// copyTable copies the rows of the sessions to keep, and with the whole backup those that
// belong to no session.
func (r *restore) copyTable(name string) error {
	var list, values []string
	key := ""
	err := r.conn.query(func(row []driver.Value) error {
		column := quoted(text(row[0]))
		list = append(list, column)
		switch text(row[0]) {
		case "gen", "session":
			column += ` + ?1`
			key = column
		case "ancestor":
			column += ` + ?1`
		}
		values = append(values, column)
		return nil
	}, `SELECT name FROM pragma_table_info(?, 'catalogue')`, name)
	if err != nil {
		return err
	}
	statement := `INSERT INTO main.` + quoted(name) + ` (` + strings.Join(list, ", ") + `) SELECT ` + strings.Join(values, ", ") + ` FROM catalogue.` + quoted(name)
	switch {
	case key != "":
		return r.conn.exec(statement+` WHERE `+key+` IN (SELECT gen FROM temp.kept)`, r.shift)
	case r.Session != "":
		return nil
	}
	return r.conn.exec(statement)
}

// writePlaces stores where the events of each session are.
func (r *restore) writePlaces() error {
	var gen, first int64
	var pos []int64
	write := func() error {
		if len(pos) == 0 {
			return nil
		}
		err := r.conn.exec(sqlPlace, gen, first, first+int64(len(pos)), encodePlaces(pos))
		pos = pos[:0]
		return err
	}
	if err := r.conn.exec("BEGIN"); err != nil {
		return err
	}
	err := r.conn.query(func(row []driver.Value) error {
		if g, at := integer(row[0]), integer(row[1]); g != gen || len(pos) == maxPlaces || at != first+int64(len(pos)) {
			if err := write(); err != nil {
				return err
			}
			gen, first = g, at
		}
		pos = append(pos, integer(row[2]))
		return nil
	}, `SELECT session, offset, pos FROM main.events ORDER BY session, offset`)
	if err == nil {
		err = write()
	}
	if err == nil {
		err = r.conn.exec(sqlSetPlaced, r.point.Pos)
	}
	if err != nil {
		return err
	}
	return r.conn.exec("COMMIT")
}

// finish restores the files, and gives the database its name.
func (r *restore) finish(dir string) error {
	if r.Files {
		for _, f := range r.m.Files {
			content, err := os.ReadFile(filepath.Join(r.dest, f.Name))
			if err == nil {
				err = keyfile.Write(filepath.Join(dir, originalName(f.Name)), content)
			}
			if err != nil {
				return err
			}
		}
	}
	r.report.Point = *r.point
	if err := syncFile(r.file); err != nil {
		return err
	}
	if err := os.Rename(r.file, filepath.Join(dir, databaseName)); err != nil {
		return err
	}
	if d, err := os.Open(dir); err == nil { // not every system can sync a folder
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}
