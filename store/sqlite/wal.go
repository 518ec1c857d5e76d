package sqlite

import "os"

// maxLog is the size in bytes that the write-ahead log may reach by being read
// all the time.
const maxLog = 256 << 20

// limitLog starts the write-ahead log over if it has become too large. SQLite
// does so by itself whenever nobody reads; but with many readers there may never
// be such a moment. So they are made to pause. If something else reads, such as
// Verify, the log grows on, and it is tried again later.
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
	w.truncateLog()
}

// truncateLog moves all of the write-ahead log into the database, and empties
// it, while nobody reads.
func (w *writer) truncateLog() {
	if w.connect() != nil {
		return // the next group says so
	}
	pause := w.store.readers.pause
	if x := w.store.search.Load(); x != nil { // it reads, too
		pause = func(f func()) { w.store.readers.pause(func() { x.pause(f) }) }
	}
	pause(func() {
		for _, statement := range [...]string{"PRAGMA busy_timeout(0)", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA busy_timeout(10000)"} {
			if err := w.conn.exec(statement); err != nil {
				w.store.options.Logger.Warn("the write-ahead log could not be started over", "error", err)
			}
		}
	})
}
