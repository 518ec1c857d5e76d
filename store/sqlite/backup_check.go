package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
)

// A BackupCheck is what a check of a backup finds.
type BackupCheck struct {
	store.Report
	Files  int     // number of files
	Points []Point // moments to which it can restore, oldest first

	onlyEvents bool // there is no damage but to the files of events
}

// CheckBackup reads all of a backup, and compares it with its checksums. It checks the
// databases, that the newest point has every event of every session, and that each event is
// the one that was appended.
func CheckBackup(ctx context.Context, dest string, progress func(done, total int64)) (BackupCheck, error) {
	r := &restore{dest: dest}
	release, err := r.openBackup()
	if err != nil {
		return BackupCheck{}, backupError(dest, err)
	}
	defer release()
	if progress == nil {
		progress = func(int64, int64) {}
	}
	found, err := checkBackup(ctx, r.dest, r.m, true, progress)
	return found, backupError(dest, err)
}

// checkBackup calls progress with bytes. It names the damaged events of files that are
// damaged, and with sums compares the sums of all events.
func checkBackup(ctx context.Context, dest string, m *manifest, sums bool, progress func(done, total int64)) (BackupCheck, error) {
	all := m.all()
	c := BackupCheck{Files: len(all), Points: m.Points}
	total := int64(0)
	for _, f := range all {
		total += f.Bytes
	}
	damaged := map[string]bool{}
	for _, want := range all {
		problem, err := checkFile(ctx, dest, want)
		if err != nil {
			return c, err
		}
		if problem != "" {
			c.Problem("%s", problem)
			damaged[want.Name] = true
		}
		c.Bytes += want.Bytes
		progress(c.Bytes, total)
	}
	last := m.last()
	c.onlyEvents = true
	for _, f := range slices.Concat(m.Files, m.catalogues()) {
		c.onlyEvents = c.onlyEvents && !damaged[f.Name]
	}
	if len(damaged) > 0 {
		if !damaged[last.Catalogue.Name] {
			c.nameEvents(ctx, dest, m, last)
		}
		return c, ctx.Err()
	}
	c.Sessions, c.Streams, c.Events = last.Sessions, last.Streams, last.Events
	return c, c.checkPoint(ctx, dest, m, last, sums)
}

// checkFile compares a file with its checksum. It returns what is wrong, "" if nothing is.
func checkFile(ctx context.Context, dest string, want backupFile) (problem string, err error) {
	switch f, err := describe(ctx, dest, want.Name); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the file %s is missing", want.Name), nil
	case err != nil && ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return fmt.Sprintf("the file %s cannot be read: %v", want.Name, err), nil
	case f != want:
		return fmt.Sprintf("the file %s is damaged: it has other bytes than those that were backed up", want.Name), nil
	}
	return "", nil
}

// nameEvents names the damaged events of a backup with damaged files, as far as they can be
// read. It does not fail: there is a problem already.
func (c *BackupCheck) nameEvents(ctx context.Context, dest string, m *manifest, p *Point) {
	db, err := openCatalogue(ctx, dest, p)
	if err != nil {
		return
	}
	defer func() { _ = db.close() }()
	check, err := newSumCheck(db, "main")
	if err != nil {
		return
	}
	for _, x := range m.chain(p) {
		if attachRead(db, "part", filepath.Join(dest, x.Name)) != nil {
			continue
		}
		gaps, err := check.part(db, "part", p.Pos, c.Problem)
		if len(gaps) > 0 || err != nil {
			c.Problem("some events in the file %s cannot be read", x.Name)
		}
		_ = db.exec(`DETACH part`)
	}
}

// openCatalogue opens the catalogue of a point for reading. The connection can have
// temporary tables.
func openCatalogue(ctx context.Context, dest string, p *Point) (*conn, error) {
	db, err := dial(source(filepath.Join(dest, p.Catalogue.Name), "ro", []string{"query_only(0)"}, "1"))
	if err != nil {
		return nil, err
	}
	db.ctx = ctx
	return db, nil
}

// checkPoint checks that a point has as many events of each session as its catalogue says,
// and with sums that they have their sums.
func (c *BackupCheck) checkPoint(ctx context.Context, dest string, m *manifest, p *Point, sums bool) error {
	db, err := openCatalogue(ctx, dest, p)
	if err != nil {
		return err
	}
	defer func() { _ = db.close() }()
	if err := db.exec(`CREATE TEMP TABLE held (session INTEGER, events INTEGER)`); err != nil {
		return err
	}
	check, err := newSumCheck(db, "main")
	if err != nil {
		return err
	}
	for _, x := range m.chain(p) {
		if err := attachRead(db, "part", filepath.Join(dest, x.Name)); err != nil {
			return err
		}
		if sums {
			if _, err := check.part(db, "part", p.Pos, c.Problem); err != nil {
				return err
			}
		}
		if err := db.exec(`INSERT INTO temp.held SELECT session, count(*) FROM part.events WHERE pos <= ? GROUP BY session`, p.Pos); err != nil {
			return err
		}
		if err := db.exec(`DETACH part`); err != nil {
			return err
		}
	}
	c.Unsummed = check.unsummed
	return db.query(func(row []driver.Value) error {
		c.Problem("session %q has %d events of its own, but the backup has %d of them", text(row[0]), integer(row[1]), integer(row[2]))
		return nil
	}, `SELECT s.id, h.head - s.fork_at, coalesce(n.held, 0) FROM main.sessions s JOIN main.heads h ON h.session = s.gen
		LEFT JOIN (SELECT session, sum(events) AS held FROM temp.held GROUP BY session) n ON n.session = s.gen
		WHERE coalesce(n.held, 0) <> h.head - s.fork_at`)
}

// problems returns the error for a backup that is damaged.
func (c *BackupCheck) problems(dest string) error {
	if len(c.Problems) == 0 {
		return nil
	}
	first := c.Problems[:min(2, len(c.Problems))] // a file, and perhaps an event in it
	return tapedeck.Errorf(tapedeck.Conflict, "the backup %s is damaged: %s", dest, strings.Join(first, "; ")).
		WithHint("`tapedeck backup %s --verify` names all damage; restore from another backup, or with --damaged what can be read", dest)
}
