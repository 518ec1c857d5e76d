package sqlite

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/tapedeck/tapedeck"
)

// Names of the files in a data folder.
const (
	databaseName = "tapedeck.db"
	lockName     = "lock"
)

// makeFolder makes the data folder, for its owner only, and returns the path of
// the database file in it.
func makeFolder(dir string, allowNetwork bool) (file string, err error) {
	if dir == "" {
		return "", tapedeck.Errorf(tapedeck.Invalid, "no data folder is given")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", folderError(dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", folderError(dir, err)
	}
	if kind := networkKind(dir); kind != "" && !allowNetwork {
		return "", tapedeck.Errorf(tapedeck.Invalid, "the data folder %s is on a network file system (%s)", dir, kind).
			WithHint("choose a folder on a local disk: over a network neither locks nor fsync can be relied on")
	}
	return filepath.Join(dir, databaseName), nil
}

func folderError(dir string, err error) error {
	reason := "cannot be used"
	switch {
	case errors.Is(err, fs.ErrPermission):
		reason = "cannot be used: permission denied"
	case errors.Is(err, fs.ErrExist), strings.Contains(err.Error(), "not a directory"):
		reason = "cannot be used: there is a file of that name"
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the data folder %s %s", dir, reason).Because(err)
}

// A Lock keeps other processes out of a data folder. It ends with the process
// that holds it, however that ends.
type Lock struct {
	flock *flock.Flock
	path  *pathLock // nil if there is no place for one
}

// TakeLock makes the data folder dir if there is none and takes its lock. If
// another process holds it, the error is a [tapedeck.Conflict]. [Options.Lock]
// passes the lock to the store that is opened next.
func TakeLock(dir string) (*Lock, error) {
	if _, err := makeFolder(dir, false); err != nil {
		return nil, err
	}
	return takeLock(dir)
}

// A holder is what the lock file says of the process that holds it.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

func takeLock(dir string) (*Lock, error) {
	path := filepath.Join(dir, lockName)
	f := flock.New(path, flock.SetPermissions(0o600))
	for begin := time.Now(); ; <-time.After(5 * time.Millisecond) {
		ok, err := f.TryLock()
		if err != nil {
			return nil, folderError(dir, err)
		}
		if ok {
			break
		}
		if time.Since(begin) > lockPatience || !holderIsGone(path) {
			return nil, inUse(dir, path)
		}
	}
	byPath, err := takePathLock(dir)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b, _ := json.Marshal(holder{os.Getpid(), command(), time.Now().UTC().Truncate(time.Second)})
	// It only makes the message of others better, so it may fail.
	_ = os.WriteFile(path, append(b, '\n'), 0o600)
	return &Lock{f, byPath}, nil
}

// lockPatience is how long the lock of a process that is gone is waited for. A
// process that was killed while it started another has passed its lock on, until
// the other executes its program.
const lockPatience = 5 * time.Second

// holderIsGone reports whether the process that took the lock last has ended.
func holderIsGone(path string) bool {
	var h holder
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &h) != nil || h.PID <= 0 {
		return false
	}
	p, err := os.FindProcess(h.PID)
	if err != nil {
		return true
	}
	defer func() { _ = p.Release() }()
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func inUse(dir, path string) error {
	e := tapedeck.Errorf(tapedeck.Conflict, "the data folder %s is in use by another process", dir)
	var h holder
	if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &h) == nil && h.PID != 0 {
		e = tapedeck.Errorf(tapedeck.Conflict, "the data folder %s is in use by process %d (%s)", dir, h.PID, h.Command)
	}
	return e.WithHint("stop that process, use it through its address, or choose another folder")
}

// command returns the name of the program and its first word, without what
// follows, which may be secret.
func command() string {
	name := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		name += " " + os.Args[1]
	}
	return name
}

// Release lets other processes in. The file stays: removing it would let two
// processes lock two files of that name.
func (l *Lock) Release() {
	l.path.release()
	_ = l.flock.Close()
}
