package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// TestAttempt: what fails leaves nothing that it has made, and touches nothing that was there
// or that somebody uses.
func TestAttempt(t *testing.T) {
	failed := errors.New("failed")
	open := func(t *testing.T, dir string) *sqlite.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
		if err == nil {
			_, err = s.OpenIndex()
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write := func(t *testing.T, path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		before, do func(t *testing.T, root, dir string)
		result     error
		left       []string // below the root
	}{
		"nothing was made": {result: failed},
		"only the lock": {result: failed, do: func(t *testing.T, _, dir string) {
			l, err := sqlite.TakeLock(dir)
			if err != nil {
				t.Fatal(err)
			}
			l.Release()
		}},
		"an empty database": {result: failed, do: func(t *testing.T, _, dir string) {
			if err := open(t, dir).Close(); err != nil {
				t.Fatal(err)
			}
		}},
		"an empty database, in a folder that has something": {
			result: failed, left: []string{"a", "a/b", "a/b/tapedeck.toml"},
			before: func(t *testing.T, _, dir string) { write(t, filepath.Join(dir, "tapedeck.toml")) },
			do: func(t *testing.T, _, dir string) {
				if err := open(t, dir).Close(); err != nil {
					t.Fatal(err)
				}
			},
		},
		"an empty database, which was there": {
			result: failed, left: []string{"a", "a/b", "a/b/lock", "a/b/search.db", "a/b/tapedeck.db"},
			before: func(t *testing.T, _, dir string) {
				if err := open(t, dir).Close(); err != nil {
					t.Fatal(err)
				}
			},
		},
		"a database with a session": {
			result: failed, left: []string{"a", "a/b", "a/b/lock", "a/b/search.db", "a/b/tapedeck.db"},
			do: func(t *testing.T, _, dir string) {
				s := open(t, dir)
				_, err := s.Create(t.Context(), tapedeck.Spec{ID: "s", Kind: tapedeck.KindSession, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}}})
				if err := errors.Join(err, s.Close()); err != nil {
					t.Fatal(err)
				}
			},
		},
		"a database with a diagram": {
			result: failed, left: []string{"a", "a/b", "a/b/lock", "a/b/search.db", "a/b/tapedeck.db"},
			do: func(t *testing.T, _, dir string) {
				s := open(t, dir)
				err := s.Workflows().Put(t.Context(), store.Workflow{Name: "w", Digest: "d", Size: 1}, []byte("x"), 1)
				if err := errors.Join(err, s.Close()); err != nil {
					t.Fatal(err)
				}
			},
		},
		"another file": {
			result: failed, left: []string{"a", "a/b", "a/b/other"},
			do: func(t *testing.T, _, dir string) { write(t, filepath.Join(dir, "other")) },
		},
		"a folder in use": {
			result: failed, left: []string{"a", "a/b", "a/b/lock"},
			do: func(t *testing.T, _, dir string) {
				l, err := sqlite.TakeLock(dir)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(l.Release)
			},
		},
		"it did not fail": {
			left: []string{"a", "a/b", "a/b/lock", "a/b/search.db", "a/b/tapedeck.db"},
			do: func(t *testing.T, _, dir string) {
				if err := open(t, dir).Close(); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "a", "b")
			if c.before != nil {
				c.before(t, root, dir)
			}
			err := sqlite.Attempt(dir, func() error {
				if c.do != nil {
					c.do(t, root, dir)
				}
				return c.result
			})
			if !errors.Is(err, c.result) {
				t.Errorf("the error is %v", err)
			}
			var left []string
			err = fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
				if path != "." {
					left = append(left, path)
				}
				return err
			})
			if err != nil || !slices.Equal(left, c.left) {
				t.Errorf("left are %v, %v; want %v", left, err, c.left)
			}
		})
	}
}

// TestAttemptBesideOthers: several processes begin in the same new folder. Those that fail
// remove what they have made; the lock still excludes, and who holds it has a file.
func TestAttemptBesideOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var wg sync.WaitGroup
	var held sync.Mutex
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_ = sqlite.Attempt(dir, func() error {
					l, err := sqlite.TakeLock(dir)
					if err != nil {
						if tapedeck.KindOf(err) != tapedeck.Conflict {
							t.Error(err)
						}
						return err
					}
					defer l.Release()
					if !held.TryLock() {
						t.Error("two hold the lock")
						return err
					}
					defer held.Unlock()
					if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
						t.Error(err)
					}
					return errors.New("failed")
				})
			}
		})
	}
	wg.Wait()
}

// TestFind: that there is no database, and that one cannot look, are two things.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink("loop", filepath.Join(dir, "loop")), os.Mkdir(filepath.Join(dir, "locked"), 0))
	if err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]tapedeck.Kind{
		"none": tapedeck.NotFound, "file": tapedeck.Invalid, "loop": tapedeck.Invalid, "locked": tapedeck.Invalid,
	} {
		if name == "locked" && os.Getuid() == 0 {
			continue // who may read everything
		}
		if err := sqlite.Find(filepath.Join(dir, name)); tapedeck.KindOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := sqlite.Find(filepath.Join(dir, "loop")); !strings.Contains(err.Error(), "too many levels of symbolic links") {
		t.Error("the reason is missing:", err)
	}
}
