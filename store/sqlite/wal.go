package sqlite

import (
	"database/sql/driver"
	"errors"
	"os"
)

// maxLog is the size in bytes from which on the writer truncates the write-ahead
// log.
const maxLog = 256 << 20

// tendLog keeps the write-ahead log small after a group was written.
func (w *writer) tendLog(group []*request) {
	bytes := 0
	for _, r := range group {
		bytes += r.Size
	}
	w.limitLog(bytes)
	w.checkpoint(bytes)
}

// limitLog truncates the write-ahead log if it is too large. SQLite does that by
// itself at a moment without readers, but with many readers there may be no such
// moment, so limitLog pauses them. If another reader, such as Verify, keeps the log,
// it grows, and the writer tries again later.
func (w *writer) limitLog(bytes int) {
	w.logged += int64(bytes)
	if w.logged < w.maxLog/4 {
		return
	}
	w.logged = 0
	info, err := os.Stat(w.store.file + "-wal")
	if err != nil || info.Size() < w.maxLog {
		return
	}
	if err := w.truncateLog(); err != nil {
		w.store.options.Logger.Warn("the write-ahead log could not be truncated", "error", err)
	}
}

// errRead means that a log could not be emptied because it has a reader.
var errRead = errors.New("the database is being read all the time")

// truncateLog pauses the readers, moves the whole write-ahead log into the database
// and empties it.
func (w *writer) truncateLog() error {
	err := w.connect()
	if err != nil {
		return err
	}
	pools := []*pool{w.store.checkpoints.pool, w.store.readers}
	if x := w.store.search.Load(); x != nil {
		pools = append(pools, x.readers.Load()) // the index reads the database, too
	}
	if !w.store.pauses.during(func() { err = w.conn.emptyLog() }, pools...) {
		return errRead
	}
	return err
}

// emptyLog moves the write-ahead log into the database and empties it. It does not
// wait for readers: if there are any, it returns errRead. SQLite itself reports no
// error then.
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

// Sizes in a write-ahead log. It begins with a header, and each of its frames is a
// header and a page.
const (
	logHeader   = 32
	frameHeader = 24
)

// cutLog removes a failed commit from the end of the write-ahead log. The commit may
// be complete there and only not synced. Then it would take effect after a crash,
// although its callers received an error. If cutLog fails, the commit may still be
// there.
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
		err = f.Sync() // otherwise the disk may still have the commit
	}
	return errors.Join(err, f.Close())
}

// committed returns how many frames of the write-ahead log are committed. It
// changes nothing.
func (c *conn) committed() (frames int64, err error) {
	frames, _, err = c.logFrames()
	return frames, err
}

// unmoved returns how many frames of the write-ahead log are not in the database yet. It
// changes nothing.
func (c *conn) unmoved() (frames int64, err error) {
	frames, moved, err := c.logFrames()
	return frames - moved, err
}

func (c *conn) logFrames() (committed, moved int64, err error) {
	err = c.query(func(row []driver.Value) error {
		if committed, moved = integer(row[1]), integer(row[2]); committed < 0 {
			return errors.New("there is no write-ahead log")
		}
		return nil
	}, "PRAGMA wal_checkpoint(NOOP)")
	return committed, moved, err
}
