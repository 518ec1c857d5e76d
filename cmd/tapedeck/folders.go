package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tapedeck/tapedeck"
)

// workName is the folder that has those of the sessions, in that of [workPlace].
const workName = "work"

// goneName begins the name that a folder gets when its session was deleted, until
// all of it is removed. No id of a session begins with a dot.
const goneName = ".gone_"

// folders makes the folders in which agents work.
type folders struct {
	mu   sync.Mutex
	data string // see [workPlace]; "" for one that goes again at the end
	temp bool

	named []string // those that the configuration names
}

// remove removes what is not to be kept.
func (f *folders) remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.temp {
		return nil
	}
	return os.RemoveAll(f.data)
}

// root returns the folder that has workName.
func (f *folders) root() (_ string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.data == "" {
		f.temp = true
		f.data, err = os.MkdirTemp("", "tapedeck-")
		return f.data, err
	}
	return filepath.Abs(f.data)
}

// of returns what makes the folder of an agent: "session", or no word of it, for
// one of each session, "" for none, else a path, from the folder here on.
func (f *folders) of(cwd *string, here string) func(string) (string, error) {
	switch {
	case cwd == nil || *cwd == "session":
		return f.session
	case *cwd == "":
		return nil
	}
	path := *cwd
	if !filepath.IsAbs(path) {
		path = filepath.Join(here, path)
	}
	f.named = append(f.named, path)
	return func(string) (string, error) {
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return "", tapedeck.Errorf(tapedeck.Unavailable, "the folder in which the agent works is not there").Because(err)
		}
		return path, nil
	}
}

// session makes the folder of a session. The id of a session is no path.
func (f *folders) session(id string) (string, error) {
	if err := tapedeck.CheckID("the session id", id); err != nil {
		return "", err
	}
	data, err := f.root()
	path := filepath.Join(data, workName, id)
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err != nil {
		return "", tapedeck.Errorf(tapedeck.Unavailable, "the folder of the session cannot be made").Because(err)
	}
	return path, nil
}

// discard takes the folder of a session that was deleted out of the way, so that
// another session of the same id does not find it, and returns what removes it.
// Whatever leads out of the folder of all of them, by a link too, is left alone.
func (f *folders) discard(id string) (remove func() error, err error) {
	nothing := func() error { return nil }
	if err := tapedeck.CheckID("the session id", id); err != nil {
		return nothing, err
	}
	data, err := f.made()
	if err != nil || data == "" || f.isNamed(filepath.Join(data, workName, id)) {
		return nothing, err
	}
	root, err := os.OpenRoot(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, nil // no agent has worked yet
	}
	if err != nil {
		return nothing, err
	}
	gone := filepath.Join(workName, tapedeck.NewID(goneName))
	if err := root.Rename(filepath.Join(workName, id), gone); err != nil {
		_ = root.Close()
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // no agent has worked in it
		}
		return nothing, err
	}
	return func() error { return errors.Join(root.RemoveAll(gone), root.Close()) }, nil
}

// made returns the folder that has workName, "" if there is none yet.
func (f *folders) made() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.data == "" {
		return "", nil
	}
	return filepath.Abs(f.data)
}

// isNamed reports whether a folder is one that the configuration names, is in
// one, or has one in it.
func (f *folders) isNamed(path string) bool {
	path = resolved(path)
	for _, named := range f.named {
		named = resolved(named)
		if isIn(named, path) || isIn(path, named) {
			return true
		}
	}
	return false
}

// resolved returns a path without links, as far as that can be told.
func resolved(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// isIn reports whether a path is a folder or in it, in any case of its letters.
func isIn(path, folder string) bool {
	rest, found := strings.CutPrefix(strings.ToLower(path), strings.ToLower(folder))
	return found && (rest == "" || rest[0] == filepath.Separator)
}

// sweep removes what an earlier process has not come to remove.
func (f *folders) sweep(l *slog.Logger) {
	data, err := f.made()
	if err != nil || data == "" {
		return
	}
	root, err := os.OpenRoot(data)
	if err != nil {
		return // no agent has worked yet
	}
	defer func() { _ = root.Close() }()
	left, _ := fs.Glob(root.FS(), workName+"/"+goneName+"*")
	for _, path := range left {
		if err := root.RemoveAll(path); err != nil {
			l.Warn("the folder of a deleted session could not be removed", "folder", path, "error", err)
		}
	}
}
