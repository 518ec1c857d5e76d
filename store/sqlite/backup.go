package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	codes "modernc.org/sqlite/lib"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// BackupOptions are the options of a backup. The zero value is ready to use.
type BackupOptions struct {
	Files    []string                // names of files of the data folder that the backup gets, too, if they exist
	Progress func(done, total int64) // called now and then with positions of events; nil for none
	Prune    bool                    // forget what the folder no longer has
	Keep     time.Duration           // with Prune: restores to this far back stay possible
	Now      func() time.Time        // nil for [time.Now]
}

// A BackupReport says what a backup did.
type BackupReport struct {
	Point
	New       bool  // there was something new
	NewEvents int64 // events that this backup has copied
	Written   int64 // bytes of new files
	Bytes     int64 // bytes of all files of the backup
	Points    int   // moments to which the backup can restore
	Forgotten int64 // events that Prune has removed from the backup or replaced there

	// Found has what is wrong with the events that this backup has copied: they are damaged
	// in the data folder. If there is something, Prune was not done, because earlier moments
	// may have the same events as they were.
	Found store.Report
}

// partSize is the size in bytes from which on a part is complete, and partStep the number
// of positions that one transaction copies. Short transactions let the server of the folder
// move its write-ahead log.
var (
	partSize int64 = 64 << 20
	partStep int64 = 4096
)

// Backup copies what is new in the data folder dir to the folder dest. A server may use the
// data folder meanwhile. A backup that is interrupted, in whatever way, leaves in dest what
// was there, and the next one continues.
func Backup(ctx context.Context, dir, dest string, o BackupOptions) (BackupReport, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	b := &backup{BackupOptions: o, dir: dir}
	err := b.open(ctx, dest)
	if b.release != nil {
		defer b.release()
	}
	if err == nil {
		err = b.run(ctx)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return b.report, backupError(dest, b.atFault(err))
}

// A backup is the copying of a folder.
type backup struct {
	BackupOptions
	dir, file string // of the data
	dest      string
	release   func()
	m         *manifest
	had       []backupFile // what the manifest named at the beginning
	schema    int64
	report    BackupReport
}

// atFault returns the error for users when the source cannot be read.
func (b *backup) atFault(err error) error {
	switch code(err) {
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB, codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return unsound(b.file, err)
	}
	return err
}

// open opens the backup, and creates it if there is none.
func (b *backup) open(ctx context.Context, dest string) (err error) {
	if b.file, err = filepath.Abs(filepath.Join(b.dir, databaseName)); err != nil {
		return err
	}
	if err := Find(b.dir); err != nil {
		return err
	}
	if b.dest, err = filepath.Abs(dest); err != nil {
		return err
	}
	if within(dest, b.dir) {
		return tapedeck.Errorf(tapedeck.Invalid, "the backup %s is in the data folder %s, and would be lost with it", dest, b.dir).
			WithHint("name a folder elsewhere, best on another disk")
	}
	if err := b.openFolder(); err != nil {
		return err
	}
	if b.release, err = lockBackup(b.dest); err != nil {
		return err
	}
	switch b.m, err = readManifest(b.dest); {
	case errors.Is(err, fs.ErrNotExist):
		b.m = &manifest{Format: backupFormat, Next: 1}
	case err != nil:
		return err
	}
	b.had = b.m.all()
	if err := b.clean(); err != nil {
		return err
	}
	return b.examine(ctx)
}

// connect connects to the data. The connection only reads it, but may write to databases
// that are attached.
func (b *backup) connect(ctx context.Context) (*conn, error) {
	// If it were opened for reading only, the files of the write-ahead log would stay
	// behind in a folder that no server uses.
	c, err := dial(dataSource(b.file, "rw", []string{"busy_timeout(10000)", "wal_autocheckpoint(0)", "mmap_size(0)", "trusted_schema(0)"}))
	if err != nil {
		return nil, unsound(b.file, err)
	}
	c.ctx = ctx
	return c, nil
}

const (
	// sqlTimeline is a number that a restore gives to the folder that it creates. Its
	// history is another one than that of the folder which was copied.
	sqlTimeline = `SELECT coalesce((SELECT value FROM facts WHERE name = 'timeline'), 0)`
	sqlLastPos  = `SELECT coalesce(max(pos), 0) FROM events`
)

// examine checks that the source can be copied, and that it is the one that the backup is
// of.
func (b *backup) examine(ctx context.Context) error {
	c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	if b.schema, err = recognise(c, b.file); err != nil {
		return err
	}
	if err := checkMark(c, b.file); err != nil {
		return err
	}
	timeline, err := c.number(sqlTimeline)
	if err != nil {
		return err
	}
	last := b.m.last()
	if last == nil && len(b.m.Parts) == 0 {
		b.m.Timeline = timeline
		return nil
	}
	pos, err := c.number(sqlNewestPos)
	if err != nil {
		return err
	}
	gen, err := c.number(sqlNewestGen)
	if err != nil {
		return err
	}
	other := timeline != b.m.Timeline
	if last != nil && !other {
		other = pos < last.Pos || gen < last.Gen
		if !other {
			other, err = b.isOther(c, last)
		}
	}
	if err == nil && other {
		return tapedeck.Errorf(tapedeck.Conflict, "the backup %s is of another folder or of another history than %s has", b.dest, b.dir).
			WithHint("make the backup in a new folder, and keep this one as long as you need it")
	}
	return err
}

// isOther reports whether a gen means another session in the source than in a point.
func (b *backup) isOther(c *conn, p *Point) (bool, error) {
	if err := attachRead(c, "catalogue", filepath.Join(b.dest, p.Catalogue.Name)); err != nil {
		return false, err
	}
	n, err := c.number(`SELECT EXISTS (SELECT 1 FROM main.sessions s JOIN catalogue.sessions c ON c.gen = s.gen WHERE c.id <> s.id OR c.created <> s.created)`)
	return n != 0, err
}

// run makes the backup.
func (b *backup) run(ctx context.Context) error {
	if err := b.bulk(ctx); err != nil {
		return err
	}
	if err := b.point(ctx); err != nil {
		return err
	}
	if err := b.copyFiles(ctx); err != nil {
		return err
	}
	if err := b.m.write(b.dest); err != nil {
		return err
	}
	if b.Prune && len(b.report.Found.Problems) == 0 {
		if err := b.prune(ctx); err != nil {
			return err
		}
	}
	if err := b.clean(); err != nil {
		return err
	}
	b.report.Point, b.report.Points = *b.m.last(), len(b.m.Points)
	for _, f := range b.m.all() {
		b.report.Bytes += f.Bytes
	}
	return nil
}

// number returns the next number of a file. It leaves out those of files of others.
func (b *backup) number() int64 {
	for {
		n := b.m.Next
		b.m.Next++
		if missing(filepath.Join(b.dest, eventsName(n))) && missing(filepath.Join(b.dest, catalogueName(n))) {
			return n
		}
	}
}

// at returns up to which position the parts of the current chain have events.
func (b *backup) at() int64 {
	chain, to := b.currentChain(), int64(0)
	for _, p := range b.m.Parts {
		if p.Chain == chain {
			to = p.To
		}
	}
	return to
}

// currentChain returns the chain of the schema that the source has. Another schema may
// have changed every event, so everything is copied again.
func (b *backup) currentChain() int64 {
	last, chain := b.m.last(), int64(1)
	if last != nil {
		chain = last.Chain
		if last.Schema != b.schema {
			chain++
		}
	}
	return chain
}
