package sqlite

import (
	"context"
	"database/sql/driver"
	"path/filepath"

	"github.com/tapedeck/tapedeck"
)

const (
	// sqlReceipts finds sessions with receipts of erasures; it may find more.
	sqlReceipts = `SELECT DISTINCT session FROM main.events WHERE pos > ? AND typeof(event) = 'text' AND instr(event, '` + tapedeck.SessionRedacted + `') > 0`

	// sqlErasedOf selects the erased events of a session among the events of the source.
	sqlErasedOf = ` FROM (SELECT j.value AS at FROM main.places p, json_each(p.pos) j WHERE p.session = ?1
	UNION SELECT pos FROM main.events WHERE pos > (SELECT value FROM main.facts WHERE name = 'placed') AND session = ?1)
	CROSS JOIN main.events e ON e.pos = at AND e.session = ?1 WHERE e.pos <= ?2 AND instr(e.event, '"erased":true') > 0`
)

// copyErased copies to the table changed the events up to a position that the parts may
// have with a payload that was erased since. Receipts say in which sessions these are.
func (b *backup) copyErased(c *conn, p *Point, before int64) error {
	if err := createEvents(c, "catalogue.changed"); err != nil {
		return err
	}
	since := int64(0)
	if last := b.m.last(); last != nil && last.Chain == p.Chain {
		if since = last.Pos; last.Erased == p.Erased {
			return nil
		}
	}
	if before == 0 || p.Erased == 0 {
		return nil
	}
	names, err := columns(c)
	if err != nil {
		return err
	}
	var gens []int64
	err = c.query(func(row []driver.Value) error {
		gens = append(gens, integer(row[0]))
		return nil
	}, sqlReceipts, since)
	for _, gen := range gens {
		if err != nil {
			return err
		}
		err = c.exec(`INSERT OR REPLACE INTO catalogue.changed (`+names+`) SELECT `+names+sqlErasedOf, gen, before)
	}
	return err
}

// prune removes the points that are not needed to restore to any moment within Keep. Then
// it removes from the parts what the oldest point that is left does not have: sessions that
// were deleted, and payloads that were erased.
func (b *backup) prune(ctx context.Context) error {
	first, limit := 0, b.Now().Add(-b.Keep)
	for i := range b.m.Points {
		if b.Keep == 0 || !b.m.Points[i].Time.After(limit) {
			first = i
		}
	}
	base, kept := &b.m.Points[first], []part(nil)
	var overlays []string
	for i := range b.m.Points[:first+1] {
		if p := &b.m.Points[i]; p.Chain == base.Chain {
			overlays = append(overlays, filepath.Join(b.dest, p.Catalogue.Name))
		}
	}
	for _, p := range b.m.Parts {
		if p.Chain < base.Chain {
			b.report.Forgotten += p.Events // they are in a later chain, too, unless they were deleted
			continue
		}
		if p.Chain == base.Chain && p.To <= base.Pos {
			if err := b.forget(ctx, &p, filepath.Join(b.dest, base.Catalogue.Name), overlays); err != nil {
				return err
			}
		}
		kept = append(kept, p)
	}
	b.m.Parts, b.m.Points = kept, b.m.Points[first:]
	return b.m.write(b.dest)
}

// forget replaces a part by one without the events of sessions that a catalogue does not
// have, and with the erased form of events in overlays. A part that has none stays.
func (b *backup) forget(ctx context.Context, p *part, catalogue string, overlays []string) error {
	c, err := dial(dataSource(filepath.Join(b.dest, p.Name), "ro", []string{"query_only(0)"}))
	if err != nil {
		return err
	}
	c.ctx = ctx
	defer func() { _ = c.close() }()
	if err := attachRead(c, "catalogue", catalogue); err != nil {
		return err
	}
	if err := collect(c, overlays, p.From, p.To); err != nil {
		return err
	}
	stale, err := c.number(`SELECT (SELECT count(*) FROM main.events WHERE session NOT IN (SELECT gen FROM catalogue.sessions))
		+ (SELECT count(*) FROM temp.changed h JOIN main.events e ON e.pos = h.pos AND e.event IS NOT h.event AND e.session IN (SELECT gen FROM catalogue.sessions))`)
	if err != nil || stale == 0 {
		return err
	}
	name := eventsName(b.number())
	if err := b.attachNew(c, "part", name); err != nil {
		return err
	}
	names, err := columns(c)
	if err == nil {
		err = createEvents(c, "part.events")
	}
	if err != nil {
		return err
	}
	for _, statement := range [...]string{
		`INSERT INTO part.events (` + names + `) SELECT ` + names + ` FROM main.events WHERE session IN (SELECT gen FROM catalogue.sessions) AND pos NOT IN (SELECT pos FROM temp.changed)`,
		`INSERT INTO part.events (` + names + `) SELECT ` + names + ` FROM temp.changed WHERE pos IN (SELECT pos FROM main.events) AND session IN (SELECT gen FROM catalogue.sessions)`,
	} {
		if err := c.exec(statement); err != nil {
			return err
		}
	}
	if p.Events, err = c.number(`SELECT count(*) FROM part.events`); err != nil {
		return err
	}
	if err := c.exec(`DETACH part`); err != nil {
		return err
	}
	b.report.Forgotten += stale
	p.backupFile, err = b.finished(ctx, name)
	return err
}

// collect fills the table temp.changed with the erased events after a position, up to
// another, of catalogues. A later catalogue replaces an earlier one.
func collect(c *conn, catalogues []string, after, to int64) error {
	names, err := columns(c)
	if err == nil {
		err = createEvents(c, "temp.changed")
	}
	for _, file := range catalogues {
		if err != nil {
			return err
		}
		if err = attachRead(c, "overlay", file); err == nil {
			err = c.exec(`INSERT OR REPLACE INTO temp.changed (`+names+`) SELECT `+names+` FROM overlay.changed WHERE pos > ? AND pos <= ?`, after, to)
		}
		if err == nil {
			err = c.exec(`DETACH overlay`)
		}
	}
	return err
}
