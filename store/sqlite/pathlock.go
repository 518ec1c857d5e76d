package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// A pathLock locks the path of a data folder. If the folder is moved, the lock
// inside moves with it, and until this process notices that, a second process could
// serve another folder under the same path. The lock is a file in the system's
// folder for temporary files. It is only a help: if that folder cannot be used,
// there is no such lock.
type pathLock struct{ flock *flock.Flock }

// takePathLock returns nil if the folder for temporary files cannot be used.
func takePathLock(dir string) (*pathLock, error) {
	path, err := pathLockFile(dir)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // see above
	}
	for range 10 {
		f := ownfile.Lock(path)
		switch ok, err := f.TryLock(); {
		case err != nil:
			return nil, nil //nolint:nilerr,nilnil // see above
		case !ok:
			return nil, displaced(dir)
		case isAt(f, path):
			return &pathLock{f}, nil
		}
		_ = f.Close() // its last holder removed the file meanwhile
	}
	return nil, displaced(dir)
}

func displaced(dir string) error {
	return tapedeck.Errorf(tapedeck.Conflict, "another process serves a data folder that was at %s before", dir).
		WithHint("it notices within a second that the folder was moved or replaced; try again then")
}

// isAt reports whether a locked file is still the file at a path.
func isAt(f *flock.Flock, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && os.SameFile(held, info)
}

// pathLockFile returns the name of the lock file for the path of a data folder.
func pathLockFile(dir string) (string, error) {
	dir, err := filepath.Abs(dir) // relative paths of processes in different folders are different
	if err != nil {
		return "", err
	}
	if whole, err := filepath.EvalSymlinks(dir); err == nil {
		dir = whole
	}
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("tapedeck-%d", os.Getuid()))
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !isOurs(info) {
		return "", fs.ErrPermission
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(folder, hex.EncodeToString(sum[:16])+".lock"), nil
}

// release removes the file while it is still locked, and then unlocks it.
func (l *pathLock) release() {
	if l == nil {
		return
	}
	_ = os.Remove(l.flock.Path())
	_ = l.flock.Close()
}
