package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// lockName is the file that processes lock while they change the others.
const lockName = "lock"

// lockWait is how long a process waits for that lock. Another one holds it for the time of
// a write, unless it was stopped meanwhile.
const lockWait = 5 * time.Second

// file returns the name of a file of a strand: 0 is the one that grows, higher numbers are
// older.
func (s *strand) file(dir string, n int) string {
	if n == 0 {
		return filepath.Join(dir, s.name+".jsonl")
	}
	return filepath.Join(dir, fmt.Sprintf("%s.%d.jsonl", s.name, n))
}

// lockFolder locks the folder of a log against other processes.
func lockFolder(dir string) (unlock func(), err error) {
	f := ownfile.Lock(filepath.Join(dir, lockName))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := f.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("another process holds %s: %w", f.Path(), err)
	}
	return func() { _ = f.Close() }, nil
}

// append writes entries to the end of a strand, all of them or none.
func (l *Log) append(s *strand, entries []*entry) error {
	var lines bytes.Buffer
	for _, e := range entries {
		l.stamp(&e.record)
		clean(&e.record)
		b, err := json.Marshal(&e.record) // it escapes line breaks
		if err != nil {
			return err
		}
		lines.Write(append(b, '\n'))
	}
	// Not with its parents: a data folder that was moved must not come back.
	if err := os.Mkdir(l.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := ownfile.CheckFolder(l.dir); err != nil {
		return err
	}
	unlock, err := lockFolder(l.dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.rotate(l.dir, int64(lines.Len())); err != nil {
		return err
	}
	return s.extend(l.dir, lines.Bytes())
}

// extend writes lines to the file that grows.
func (s *strand) extend(dir string, lines []byte) (err error) {
	f, err := os.OpenFile(s.file(dir, 0), os.O_RDWR|os.O_CREATE|os.O_APPEND|ownfile.NoFollow, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' { // a crash has cut the line off; it stays a line of its own
			lines = append([]byte{'\n'}, lines...)
		}
	}
	if _, err = f.Write(lines); err == nil && s.sync {
		if err = f.Sync(); err == nil && size == 0 {
			err = errors.Join(syncFolder(dir), syncFolder(filepath.Dir(dir))) // the names, too
		}
	}
	if err != nil { // who waits gets an error, so no part may stay
		return errors.Join(err, f.Truncate(size))
	}
	return nil
}

// rotate makes room for more bytes: if the file would become too large, it becomes an older
// one, and the oldest is removed.
func (s *strand) rotate(dir string, more int64) error {
	info, err := os.Stat(s.file(dir, 0))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Size()+more <= s.size || info.Size() == 0:
		return nil
	}
	for n := s.files - 2; n >= 0; n-- { // the rename replaces the oldest
		if err := os.Rename(s.file(dir, n), s.file(dir, n+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncFolder makes the names in a folder durable. A system that cannot is one where names
// need no sync.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = f.Sync()
	return f.Close()
}
