package sqlite

import (
	"database/sql/driver"
	"errors"
	"os"
)

// maxLog is the size in bytes that the write-ahead log may reach by being read
// all the time.
const maxLog = 256 << 20

// limitLog starts the write-ahead log over if it has become too large. SQLite
// does so by itself whenever nobody reads; but with many readers there may never
// be such a moment. So they are made to pause. If something else reads, such as
// Verify, the log grows on, and the writer tries again later.
func (w *writer) limitLog(group []*request) {
	for _, r := range group {
		w.logged += int64(r.size)
	}
	if w.logged < w.maxLog/4 {
		return
	}
	w.logged = 0
	info, err := os.Stat(w.store.file + "-wal")
	if err != nil || info.Size() < w.maxLog {
		return
	}
	if err := w.truncateLog(); err != nil {
		w.store.options.Logger.Warn("the write-ahead log could not be started over", "error", err)
	}
}

// errRead means that a log could not be emptied because somebody reads from it.
var errRead = errors.New("somebody reads the database all the time")

// truncateLog moves all of the write-ahead log into the database, and empties
// it, while nobody reads.
func (w *writer) truncateLog() error {
	err := w.connect()
	if err != nil {
		return err
	}
	pools := []*pool{w.store.readers}
	if x := w.store.search.Load(); x != nil {
		pools = append(pools, x.readers.Load()) // it reads the database, too
	}
	if !w.store.pauses.during(func() { err = w.conn.emptyLog() }, pools...) {
		return errRead
	}
	return err
}

// emptyLog moves the write-ahead log into the database. It does not wait for
// readers: with them, SQLite leaves the log as it is and reports no error.
func (c *conn) emptyLog() (err error) {
	if err := c.exec("PRAGMA busy_timeout(0)"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.exec("PRAGMA busy_timeout(10000)")) }()
	return c.query(func(row []driver.Value) error {
		if integer(row[0]) != 0 {
			return errRead
		}
		return nil
	}, "PRAGMA wal_checkpoint(TRUNCATE)")
}

// Sizes in a write-ahead log, which begins with a header and has frames of a
// header and a page each.
const (
	logHeader   = 32
	frameHeader = 24
)

// cutLog removes what a commit that failed has left at the end of the
// write-ahead log. The commit may be complete there, only not synced: then it
// would be read after a crash, though its callers were told that it failed. An
// error means that it may still be there.
func (w *writer) cutLog() error {
	if err := w.connect(); err != nil {
		return err
	}
	frames, err := w.conn.committed()
	if err != nil {
		return err
	}
	size, err := w.conn.number(sqlPageSize)
	if err != nil {
		return err
	}
	end := int64(0)
	if frames > 0 {
		end = logHeader + frames*(frameHeader+size)
	}
	f, err := os.OpenFile(w.store.file+"-wal", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if info, statErr := f.Stat(); statErr != nil || info.Size() > end {
		err = errors.Join(statErr, f.Truncate(end))
	}
	if err == nil {
		err = f.Sync() // else the disk may still have it
	}
	return errors.Join(err, f.Close())
}

// committed returns how many frames of the write-ahead log are committed. It
// changes nothing.
func (c *conn) committed() (frames int64, err error) {
	err = c.query(func(row []driver.Value) error {
		if frames = integer(row[1]); frames < 0 {
			return errors.New("there is no write-ahead log")
		}
		return nil
	}, "PRAGMA wal_checkpoint(NOOP)")
	return frames, err
}
