package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/keyfile"
)

// attachPragmas are set on a new file of a backup. It is synced as a whole before the
// manifest names it. The id comes to the disk first.
var attachPragmas = [...]string{"journal_mode = OFF", "synchronous = OFF", fmt.Sprint("application_id = ", backupID)}

// attachNew creates a file of the backup, which only its owner can read, and attaches it.
func (b *backup) attachNew(c *conn, as, name string) error {
	path := filepath.Join(b.dest, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := c.exec(`ATTACH ? AS `+as, path); err != nil {
		return err
	}
	for _, p := range attachPragmas {
		if err := c.query(func([]driver.Value) error { return nil }, `PRAGMA `+as+`.`+p); err != nil {
			return err
		}
	}
	return nil
}

// finished syncs a new file, and returns it with its checksum, as it can be read again.
func (b *backup) finished(ctx context.Context, name string) (backupFile, error) {
	if err := syncFile(filepath.Join(b.dest, name)); err != nil {
		return backupFile{}, err
	}
	if err := checkDatabase(ctx, filepath.Join(b.dest, name)); err != nil {
		return backupFile{}, err
	}
	f, err := describe(ctx, b.dest, name)
	b.report.Written += f.Bytes
	return f, err
}

// checkDatabase lets SQLite check a file of a backup.
func checkDatabase(ctx context.Context, file string) error {
	c, err := dial(dataSource(file, "ro", []string{"query_only(1)"}))
	if err != nil {
		return err
	}
	c.ctx = ctx
	defer func() { _ = c.close() }()
	return quickCheck(c, file)
}

// columns returns the names of the columns of the source's table of events, quoted.
func columns(c *conn) (string, error) {
	var names []string
	err := c.query(func(row []driver.Value) error {
		names = append(names, quoted(text(row[0])))
		return nil
	}, `SELECT name FROM pragma_table_info('events', 'main')`)
	return strings.Join(names, ", "), err
}

// createEvents creates a table as that of the events in an attached file. A file has all
// columns of the source, whatever its schema is.
func createEvents(c *conn, where string) error {
	names, err := columns(c)
	if err != nil {
		return err
	}
	return c.exec(`CREATE TABLE ` + where + ` (` + strings.Replace(names, `"pos"`, `"pos" INTEGER PRIMARY KEY`, 1) + `)`)
}

// sqlOfSessions selects the events that a backup has: not those of checkpoints of views,
// which can be created again, and not those that remain of deleted sessions.
const sqlOfSessions = ` FROM main.events e WHERE e.pos > ? AND e.pos <= ? AND EXISTS (SELECT 1 FROM main.sessions s WHERE s.gen = e.session AND s.kind <> 'view')`

// copyEvents copies the events after a position to an attached file.
func copyEvents(c *conn, after, to int64) error {
	names, err := columns(c)
	if err != nil {
		return err
	}
	return c.exec(`INSERT INTO part.events (`+names+`) SELECT `+names+sqlOfSessions, after, to)
}

// bulk copies most of the new events, a part at a time. What comes meanwhile is copied in
// one transaction with the catalogue: writers may be faster than bulk, so it ends at what is
// there when it begins.
func (b *backup) bulk(ctx context.Context) error {
	c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	end, err := c.number(sqlLastPos)
	if err = errors.Join(err, c.close()); err != nil {
		return err
	}
	for err == nil && end-b.at() >= 4*partStep {
		err = b.bulkPart(ctx, end)
	}
	return err
}

func (b *backup) bulkPart(ctx context.Context, end int64) error {
	c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	from := b.at()
	p := part{Chain: b.currentChain(), From: from, To: from}
	name := eventsName(b.number())
	if err := b.attachNew(c, "part", name); err != nil {
		return err
	}
	if err := createEvents(c, "part.events"); err != nil {
		return err
	}
	for size := int64(0); p.To < end && size < partSize; {
		to := min(p.To+partStep, end)
		if err := copyEvents(c, p.To, to); err != nil {
			return err
		}
		p.To = to
		b.Progress(p.To, end)
		if size, err = c.number(`SELECT (SELECT page_count FROM pragma_page_count('part')) * (SELECT page_size FROM pragma_page_size('part'))`); err != nil {
			return err
		}
	}
	if err := b.endPart(ctx, c, &p, name); err != nil {
		return err
	}
	return b.m.write(b.dest) // the next backup continues here
}

// endPart completes a part, and adds it to the manifest. It closes the connection.
func (b *backup) endPart(ctx context.Context, c *conn, p *part, name string) (err error) {
	if p.Events, err = c.number(`SELECT count(*) FROM part.events`); err != nil {
		return err
	}
	if err := b.checkCopied(c); err != nil {
		return err
	}
	if err := c.exec(`DETACH part`); err != nil {
		return err
	}
	if p.backupFile, err = b.finished(ctx, name); err != nil {
		return err
	}
	b.report.NewEvents += p.Events
	b.m.Parts = append(b.m.Parts, *p)
	return nil
}

// point copies the rest of the events and the catalogue in one transaction, and adds the
// point to the manifest.
func (b *backup) point(ctx context.Context) error {
	c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	n := b.number()
	p := Point{Number: n, Schema: b.schema, Chain: b.currentChain()}
	events, catalogue := eventsName(n), catalogueName(n)
	if err := errors.Join(b.attachNew(c, "part", events), b.attachNew(c, "catalogue", catalogue)); err != nil {
		return err
	}
	rest := part{Chain: p.Chain, From: b.at()}
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	if rest.To, err = c.number(sqlLastPos); err != nil { // from here on, the transaction sees one state
		return err
	}
	p.Time = b.Now().UTC()
	rest.To = max(rest.To, rest.From)
	p.Pos = rest.To
	if err := createEvents(c, "part.events"); err != nil {
		return err
	}
	if err := copyEvents(c, rest.From, rest.To); err != nil {
		return err
	}
	if err := b.copyCatalogue(c, &p, rest.From); err != nil {
		return err
	}
	if err := c.exec("COMMIT"); err != nil {
		return err
	}
	b.Progress(p.Pos, p.Pos)
	if rest.From < rest.To {
		err = b.endPart(ctx, c, &rest, events)
	} else {
		err = errors.Join(c.exec(`DETACH part`), os.Remove(filepath.Join(b.dest, events)))
	}
	if err != nil {
		return err
	}
	if err := c.exec(`DETACH catalogue`); err != nil {
		return err
	}
	if p.Catalogue, err = b.finished(ctx, catalogue); err != nil {
		return err
	}
	return b.addPoint(&p)
}

// addPoint adds a point. If nothing has changed, it moves the time of the newest one.
func (b *backup) addPoint(p *Point) error {
	last := b.m.last()
	if last != nil && last.Pos == p.Pos && last.Chain == p.Chain && last.Catalogue.SHA256 == p.Catalogue.SHA256 {
		b.report.Written -= p.Catalogue.Bytes
		last.Time = p.Time
		return os.Remove(filepath.Join(b.dest, p.Catalogue.Name))
	}
	b.m.Points = append(b.m.Points, *p)
	b.report.New = true
	return nil
}

// notInCatalogue are tables that a restore creates from the others.
var notInCatalogue = map[string]bool{versionTable: true, "events": true, "places": true, "purges": true, "transfer": true}

// copyCatalogue copies all tables but the events to the attached file, and the events up
// to a position that were erased since the last point.
func (b *backup) copyCatalogue(c *conn, p *Point, before int64) (err error) {
	if err := c.exec(`CREATE TABLE catalogue.sessions AS SELECT * FROM main.sessions WHERE kind <> 'view'`); err != nil {
		return err
	}
	keys := map[string]bool{} // tables, and whether they have a column session
	err = c.query(func(row []driver.Value) error {
		if name := text(row[0]); !notInCatalogue[name] && name != "sessions" {
			keys[name] = integer(row[1]) != 0
		}
		return nil
	}, `SELECT name, EXISTS (SELECT 1 FROM pragma_table_info(t.name) c WHERE c.name = 'session') FROM main.sqlite_schema t WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^'`)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		statement := `CREATE TABLE catalogue.` + quoted(name) + ` AS SELECT * FROM main.` + quoted(name)
		if keys[name] {
			statement += ` WHERE session IN (SELECT gen FROM catalogue.sessions)`
		}
		if err := c.exec(statement); err != nil {
			return err
		}
	}
	for _, q := range []struct {
		into  *int64
		query string
	}{
		{&p.Gen, sqlNewestGen},
		{&p.Erased, `SELECT coalesce((` + sqlErased + `), 0)`},
		{&p.Sessions, `SELECT count(*) FROM catalogue.sessions WHERE kind = 'session' AND deleted IS NULL`},
		{&p.Streams, `SELECT count(*) FROM catalogue.sessions WHERE kind = 'stream' AND deleted IS NULL`},
		{&p.Events, `SELECT coalesce(sum(h.head - s.fork_at), 0) FROM catalogue.sessions s JOIN catalogue.heads h ON h.session = s.gen`},
	} {
		if *q.into, err = c.number(q.query); err != nil {
			return err
		}
	}
	return b.copyErased(c, p, before)
}

// copyFiles copies keys and settings. The backup has the newest ones only.
func (b *backup) copyFiles(ctx context.Context) error {
	var files []backupFile
	for _, name := range b.Files {
		content, err := os.ReadFile(filepath.Join(b.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return tapedeck.Errorf(tapedeck.Invalid, "the file %s of the data folder cannot be read", name).Because(err)
		}
		f, err := b.copyFile(ctx, name, content)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	b.m.Files = files
	return nil
}

// copyFile stores a file, unless the backup has it already.
func (b *backup) copyFile(ctx context.Context, name string, content []byte) (backupFile, error) {
	sum := sha256.Sum256(content)
	for _, f := range b.m.Files {
		if originalName(f.Name) == name && f.SHA256 == hex.EncodeToString(sum[:]) {
			return f, nil
		}
	}
	if err := os.MkdirAll(filepath.Join(b.dest, backupFiles), 0o700); err != nil {
		return backupFile{}, err
	}
	to := fmt.Sprintf("%s/%d-%s", backupFiles, b.number(), name)
	if err := keyfile.Write(filepath.Join(b.dest, to), content); err != nil {
		return backupFile{}, err
	}
	return describe(ctx, b.dest, to)
}

// originalName returns the name that a file of a backup has in the data folder.
func originalName(name string) string {
	_, original, _ := strings.Cut(strings.TrimPrefix(name, backupFiles+"/"), "-")
	return original
}
