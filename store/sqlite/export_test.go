package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
)

// Dir returns the data folder.
func (s *Store) Dir() string { return filepath.Dir(s.file) }

// WaitQueued waits until n requests wait for the writer.
func (s *Store) WaitQueued(n int) {
	for s.writer.queue.Len() < n {
		runtime.Gosched()
	}
}

// Number returns the integer that a query results in.
func (s *Store) Number(query string) (n int64, err error) {
	err = s.readers.use(context.Background(), func(c *conn) (err error) {
		n, err = c.number(query)
		return err
	})
	return n, err
}

// KeepFresh sets the number of events whose positions are only in memory.
func (s *Store) KeepFresh(n int) {
	s.writer.writing.Lock()
	defer s.writer.writing.Unlock()
	s.writer.maxFresh = n
}

// Unclean returns how many erasures may have left copies.
func (s *Store) Unclean() (int64, error) { return s.Number(sqlUnclean) }

// SkipCleaning makes every cleaning fail.
func (s *Store) SkipCleaning() { s.skipCleaning = true }

// WaitClean waits until all erasures are clean.
func (s *Store) WaitClean() {
	for {
		if n, err := s.Number(sqlUnclean); err != nil || n == 0 {
			return
		}
		runtime.Gosched()
	}
}

// WaitIdle waits until no goroutine writes.
func (s *Store) WaitIdle() {
	s.writer.writing.Lock()
	s.writer.writing.Unlock() //nolint:staticcheck // nothing is to be done in between
}

// StartLogOver empties the write-ahead log.
func (s *Store) StartLogOver() {
	s.writer.writing.Lock()
	defer s.writer.writing.Unlock()
	_ = s.writer.truncateLog()
}

// Vacuum rewrites the file of the index, which changes the version of its schema.
func (x *Index) Vacuum() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conn.exec("VACUUM")
}

// BackupSizes sets the size of the parts of a backup and of the steps in which they are
// copied, for a test.
func BackupSizes(t interface{ Cleanup(func()) }, size, step int64) {
	oldSize, oldStep := partSize, partStep
	partSize, partStep = size, step
	t.Cleanup(func() { partSize, partStep = oldSize, oldStep })
}

// KnownVersion returns the number of the newest schema.
func KnownVersion() int64 { return knownVersion() }

// ColumnsOf returns the columns that the schemas up to a version have.
func ColumnsOf(version int64) (all []string) {
	for _, columns := range columnsOf[:version+1] {
		all = append(all, strings.Fields(columns)...)
	}
	return all
}
