package sqlite

import (
	"context"
	"sync"
	"sync/atomic"
)

// A checkpoint moves the pages of the write-ahead log into the database, so that the log
// begins again at its start and stays small. SQLite would do it in the COMMIT that makes
// the log too large, and the callers of that commit, and all who come after them, would
// wait for it: 60 ms for 16 MB. So another connection moves the pages while the writer
// continues. What is committed meanwhile is moved by the writer. That is little, and the
// log is then as the database for a moment, so that SQLite begins it again at its start.

const (
	// fullLog is how many pages the log has when a checkpoint begins. While the moved pages
	// are synced, the disk makes the syncs of commits wait, and longer for more pages: with
	// 4,000 of them, the slowest hundredth of commits takes twice as long.
	fullLog = 1000

	// lookGroups and lookBytes are how many groups, and how many bytes, are written before
	// the writer looks at the size of the log again.
	lookGroups = 16
	lookBytes  = 1 << 20
)

// checkpointPragmas are set on the connection that moves pages.
var checkpointPragmas = []string{
	"busy_timeout(10000)",
	"synchronous(full)",
	"checkpoint_fullfsync(1)",
	"wal_autocheckpoint(0)",
	"mmap_size(0)",
	"trusted_schema(0)",
}

// A checkpointer moves pages on a connection of its own.
type checkpointer struct {
	pool  *pool // of one connection, so that a pause excludes it as it does readers
	state atomic.Int32

	running sync.WaitGroup
}

// The states of a checkpointer.
const (
	checkpointIdle    int32 = iota
	checkpointRunning       // pages are being moved
	checkpointMoved         // the writer moves the rest
)

func newCheckpointer(file string) (*checkpointer, error) {
	p, err := newPool(1, dataSource(file, "rw", checkpointPragmas))
	return &checkpointer{pool: p}, err
}

// start moves the pages in the background, unless that is being done.
func (c *checkpointer) start() {
	if !c.state.CompareAndSwap(checkpointIdle, checkpointRunning) {
		return
	}
	c.running.Go(func() {
		next := checkpointMoved
		// A failure, such as a full disk, loses nothing: the writer begins again later.
		if err := c.pool.use(context.Background(), (*conn).movePages); err != nil {
			next = checkpointIdle
		}
		c.state.Store(next)
	})
}

// movePages moves the pages of the write-ahead log into the database, as far as no reader
// needs them in the log. It waits for nobody.
func (c *conn) movePages() error { return c.exec("PRAGMA wal_checkpoint(PASSIVE)") }

// checkpoint keeps the write-ahead log small. The writer calls it when the callers of a
// group have their answers. bytes is the size of the group.
func (w *writer) checkpoint(bytes int) {
	if w.conn == nil || w.store.checkpoints == nil || w.store.lost.Load() != nil {
		return
	}
	if w.store.checkpoints.state.CompareAndSwap(checkpointMoved, checkpointIdle) {
		_ = w.conn.movePages() // the rest; a failure loses nothing
		return
	}
	w.unlooked.groups++
	w.unlooked.bytes += bytes
	if w.unlooked.groups < lookGroups && w.unlooked.bytes < lookBytes {
		return
	}
	w.unlooked.groups, w.unlooked.bytes = 0, 0
	if pages, err := w.conn.unmoved(); err == nil && pages >= fullLog {
		w.store.checkpoints.start()
	}
}
