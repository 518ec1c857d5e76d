package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/ownfile"
)

// Names of the files in a data folder.
const (
	databaseName = "tapedeck.db"
	lockName     = "lock"
)

// makeFolder creates the data folder with access for its owner only, and returns
// the path of the database file in it.
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

// Find returns an error unless there is a database in the data folder dir: a
// [tapedeck.NotFound] if there is none, another kind if that cannot be told.
func Find(dir string) error {
	switch _, err := os.Stat(filepath.Join(dir, databaseName)); {
	case errors.Is(err, fs.ErrNotExist):
		return tapedeck.Errorf(tapedeck.NotFound, "there are no sessions in %s", dir).
			WithHint("name a data folder, which has a file %s", databaseName).Because(err)
	case err != nil:
		return folderError(dir, err)
	}
	return nil
}

func folderError(dir string, err error) error {
	var known *tapedeck.Error
	if errors.As(err, &known) {
		return err
	}
	reason := "cannot be used"
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrPermission):
		reason = "cannot be used: permission denied"
	case isInTheWay(err):
		reason = "cannot be used: " + inTheWay(dir)
	case errors.As(err, &path):
		reason = "cannot be used: " + path.Err.Error()
	}
	return tapedeck.Errorf(tapedeck.Invalid, "the data folder %s %s", dir, reason).Because(err)
}

// isInTheWay reports whether something in a path is not a folder.
func isInTheWay(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR)
}

// inTheWay says what in the path of a folder is not a folder.
func inTheWay(dir string) string {
	for p := dir; ; p = filepath.Dir(p) {
		info, err := os.Lstat(p)
		switch {
		case err != nil && p != filepath.Dir(p):
			continue // it is deeper than what is in the way
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			return p + " is a link, and what it names is no folder"
		}
		return p + " is no folder"
	}
}

// A Lock keeps other processes out of a data folder. The system releases it when
// the process ends, for whatever reason.
type Lock struct {
	flock *flock.Flock
	path  *pathLock // nil if the folder for temporary files cannot be used
	once  sync.Once // for Release
}

// TakeLock creates the data folder dir if it does not exist, and takes its lock. If
// another process holds the lock, the error is a [tapedeck.Conflict]. [Options.Lock]
// passes the lock to a store.
func TakeLock(dir string) (*Lock, error) {
	if _, err := makeFolder(dir, false); err != nil {
		return nil, err
	}
	return takeLock(dir)
}

// A holder is the content of a lock file: the process that holds the lock.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`

	URL      string `json:"url,omitempty"` // the address at which it serves the folder
	Instance string `json:"instance,omitempty"`
}

// holderSize is the smallest size of a lock file, in bytes. A short content is filled with
// spaces. A later and longer content then fits into the file, also on a full disk.
const holderSize = 1024

// write writes the holder to the lock file. It overwrites the file in place, because
// a full disk has no space for another one.
func (h holder) write(path string) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if n := holderSize - 1 - len(b); n > 0 {
		b = append(b, bytes.Repeat([]byte(" "), n)...)
	}
	b = append(b, '\n')
	f, err := os.OpenFile(path, os.O_WRONLY|ownfile.NoFollow, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Truncate(int64(len(b))), f.Close())
}

// lockForm is the form of a lock file. Its end may be that of an earlier holder while another
// process writes it.
var lockForm = regexp.MustCompile(`^\{"pid":\d+,"command":"`)

// isLock reports whether a file that begins so is a lock file.
func isLock(beginning []byte) bool { return lockForm.Match(beginning) }

func readHolder(path string) (holder, bool) {
	var h holder
	b, err := os.ReadFile(path)
	return h, err == nil && json.Unmarshal(b, &h) == nil && h.PID > 0
}

// Announce writes to the lock file at which URL this process serves the folder, and
// as which instance. [ServedAt] reads it.
func (l *Lock) Announce(url, instance string) error {
	h, _ := readHolder(l.flock.Path())
	h.PID, h.URL, h.Instance = os.Getpid(), url, instance
	return h.write(l.flock.Path())
}

// ServedAt returns the URL and the instance that [Lock.Announce] wrote. They are
// stale if no process holds the lock.
func ServedAt(dir string) (url, instance string, ok bool) {
	h, ok := readHolder(filepath.Join(dir, lockName))
	return h.URL, h.Instance, ok && h.URL != "" && h.Instance != ""
}

func takeLock(dir string) (*Lock, error) {
	path := filepath.Join(dir, lockName)
	f := ownfile.Lock(path)
	for begin := time.Now(); ; <-time.After(5 * time.Millisecond) {
		// Beside a database the lock is ours, also if a disk has damaged it.
		ours := func(beginning []byte) bool { return isLock(beginning) || !missing(filepath.Join(dir, databaseName)) }
		if err := ownfile.Check(path, ours); err != nil {
			return nil, folderError(dir, err)
		}
		ok, err := f.TryLock()
		if ok && isAt(f, path) {
			break
		}
		removed := ok || errors.Is(err, fs.ErrNotExist) // by [Attempt] of another process
		if removed {
			_ = f.Close()
			err = os.MkdirAll(dir, 0o700)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) && missing(dir) { // removed again meanwhile
				err = nil
			}
		}
		if err != nil {
			return nil, folderError(dir, err)
		}
		if time.Since(begin) > lockPatience || !removed && !holderIsGone(path) {
			return nil, inUse(dir, path)
		}
	}
	byPath, err := takePathLock(dir)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// It may fail: it only improves the error that other processes report.
	_ = holder{PID: os.Getpid(), Command: command(), Since: time.Now().UTC().Truncate(time.Second)}.write(path)
	return &Lock{flock: f, path: byPath}, nil
}

// lockPatience is how long to wait for the lock of a process that has ended. A process
// that is killed while it starts a child leaves the lock to the child. The child releases
// it when it executes its own program.
const lockPatience = 5 * time.Second

// holderIsGone reports whether the process named in the lock file has ended.
func holderIsGone(path string) bool {
	h, ok := readHolder(path)
	if !ok {
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
	if h, ok := readHolder(path); ok {
		e = tapedeck.Errorf(tapedeck.Conflict, "the data folder %s is in use by process %d (%s)", dir, h.PID, h.Command)
	}
	return e.WithHint("stop that process, use it through its address, or choose another folder")
}

// command returns the name of the program and its first word. The words after that
// may be secret.
func command() string {
	name := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		name += " " + os.Args[1]
	}
	return name
}

// Release releases the lock, if there is one. The file stays: other processes may be about
// to lock it.
func (l *Lock) Release() {
	if l == nil {
		return
	}
	l.once.Do(func() {
		l.path.release()
		_ = l.flock.Close()
	})
}
