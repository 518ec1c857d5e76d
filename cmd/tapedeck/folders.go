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

// workName is the name of the folder with the folders of the sessions, below
// [workPlace].
const workName = "work"

// goneName is the prefix of the name of a folder whose session was deleted, until it is
// removed. No session id begins with a dot.
const goneName = ".gone_"

// A folders creates the folders in which agents work.
type folders struct {
	mu   sync.Mutex
	data string // see [workPlace]; "" for a temporary folder
	temp bool

	named []string // folders that the configuration names
}

// remove removes a temporary folder.
func (f *folders) remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.temp {
		return nil
	}
	return os.RemoveAll(f.data)
}

// root returns the folder that has workName. If data is empty, it creates a temporary
// folder.
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

// of returns the function that opens the folder of an agent, by its setting: nil or
// "session" for a folder of each session, "" for none, otherwise a path, which may be
// relative to base. A session may choose one of choices instead, which are absolute.
func (f *folders) of(cwd *string, choices []string, base string) func(session, chosen string) (string, error) {
	own := func(session, _ string) (string, error) { return f.session(session) }
	switch {
	case cwd == nil || *cwd == "session":
	case *cwd == "":
		own = nil
	default:
		path := *cwd
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		f.named = append(f.named, path)
		own = func(string, string) (string, error) { return openNamed(path) }
	}
	if len(choices) == 0 {
		return own
	}
	f.named = append(f.named, choices...)
	return func(session, chosen string) (string, error) {
		switch {
		case chosen != "":
			return openNamed(chosen)
		case own == nil:
			return "", nil
		}
		return own(session, "")
	}
}

// openNamed returns the absolute path of a folder that the configuration names.
func openNamed(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", tapedeck.Errorf(tapedeck.Unavailable, "the working folder of the agent does not exist").Because(err)
	}
	return path, nil
}

// session creates the folder of a session. It checks the id, which must not be a path.
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
		return "", tapedeck.Errorf(tapedeck.Unavailable, "the folder of the session cannot be created").Because(err)
	}
	return path, nil
}

// discard renames the folder of a deleted session, so that a recreated session cannot
// inherit it, and returns the function that removes it. It never follows a path or a
// link out of the folder of all sessions.
func (f *folders) discard(id string) (remove func() error, err error) {
	nothing := func() error { return nil }
	if err := tapedeck.CheckID("the session id", id); err != nil {
		return nothing, err
	}
	data, err := f.existing()
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

// existing returns the folder that has workName, "" if there is none yet.
func (f *folders) existing() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.data == "" {
		return "", nil
	}
	return filepath.Abs(f.data)
}

// isNamed reports whether a folder is one that the configuration names, is inside one,
// or contains one.
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

// resolved returns an absolute path without links. If the path does not exist, its
// links stay.
func resolved(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// isIn reports whether a path is a folder or inside it. It ignores the case of letters.
func isIn(path, folder string) bool {
	rest, found := strings.CutPrefix(strings.ToLower(path), strings.ToLower(folder))
	return found && (rest == "" || rest[0] == filepath.Separator)
}

// sweep removes the folders that an earlier process renamed but did not remove.
func (f *folders) sweep(l *slog.Logger) {
	data, err := f.existing()
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
