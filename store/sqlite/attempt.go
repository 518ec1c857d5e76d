package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck/tapedeck/internal/sessionkeys"
)

// Attempt calls do, which may create the data folder dir. If do fails, Attempt removes what do
// has made there, so that a mistake in a command leaves nothing behind. A database that has
// something stays, or a folder with files that are not those of an empty data folder, and so
// does everything that was there before.
func Attempt(dir string, do func() error) error {
	absent := absentFrom(dir)
	err := do()
	if err != nil {
		absent.remove()
	}
	return err
}

// An absence has what was not there before an attempt.
type absence struct {
	file           string   // the database
	files, folders []string // the inner ones first
}

// absentFrom returns what is not there of a data folder, nothing if it has a database.
func absentFrom(dir string) (a absence) {
	dir, err := filepath.Abs(dir)
	if err != nil || !missing(filepath.Join(dir, databaseName)) {
		return a
	}
	a.file = filepath.Join(dir, databaseName)
	for _, name := range [...]string{databaseName, indexName, sessionkeys.FileName, lockName} {
		for _, end := range databaseEnds {
			if path := filepath.Join(dir, name) + end; missing(path) {
				a.files = append(a.files, path)
			}
		}
	}
	for at := dir; missing(at); at = filepath.Dir(at) {
		a.folders = append(a.folders, at)
	}
	return a
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// remove removes what is there now. The lock keeps other processes out meanwhile. Its file is
// removed while it is locked: a process that locks it later notices that, see takeLock.
func (a *absence) remove() {
	if !slices.ContainsFunc(append(a.folders, a.files...), func(path string) bool { return !missing(path) }) {
		return
	}
	files := a.files
	if dir := filepath.Dir(a.file); missing(dir) {
		files = nil // what is there by now is of another process
	} else {
		if len(a.folders) > 0 && a.hasMore(dir) {
			return
		}
		lock, err := takeLock(dir)
		if err != nil || !unused(a.file) { // another process uses it, or has used it
			lock.Release()
			return
		}
		defer lock.Release()
	}
	for _, path := range files {
		_ = os.Remove(path)
	}
	for _, path := range a.folders {
		if os.Remove(path) != nil { // it is not empty
			return
		}
	}
}

// hasMore reports whether a folder that was not there has something that is not removed.
func (a *absence) hasMore(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(a.files, filepath.Join(dir, e.Name())) })
}

// unused reports whether a database has nothing: no session, no stream, no diagram.
func unused(file string) bool {
	if missing(file) {
		return true
	}
	// As in backup.connect, it is not opened for reading only.
	c, err := dial(dataSource(file, "rw", []string{"busy_timeout(10000)", "trusted_schema(0)"}))
	if err != nil {
		return false
	}
	t := &Transfer{dir: filepath.Dir(file), file: file, conn: c}
	return errors.Join(t.empty(), c.close()) == nil
}
