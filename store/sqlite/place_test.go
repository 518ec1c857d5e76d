package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// lossOf are the ways in which a store loses its data folder.
var lossOf = map[string]func(t *testing.T, dir string){
	"deleted": func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
	"moved":   func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".away")) },
	"replaced by a copy": func(t *testing.T, dir string) {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.CopyFS(dir, os.DirFS(dir+".away")))
	},
	"the database is replaced": func(t *testing.T, dir string) {
		b, err := os.ReadFile(filepath.Join(dir, "tapedeck.db"))
		must(t, err)
		must(t, os.Remove(filepath.Join(dir, "tapedeck.db")))
		write(t, filepath.Join(dir, "tapedeck.db"), string(b))
	},
	"the log is deleted":  func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "tapedeck.db-wal"))) },
	"the lock is deleted": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "lock"))) },
}

// TestLostFolder: when the folder is lost, the store acknowledges no append any more,
// calls OnLost, and does not touch the files that are at its path now.
func TestLostFolder(t *testing.T) {
	for name, lose := range lossOf {
		t.Run(name, func(t *testing.T) {
			dir, lost := filepath.Join(t.TempDir(), "data"), make(chan error, 2)
			s := open(t, dir, sqlite.Options{OnLost: func(err error) { lost <- err }})
			create(t, s, "a")
			add(t, s, "a", 3)
			lose(t, dir)
			if name == "the lock is deleted" || name == "the database is replaced" { // a commit does not look at these
				lost <- <-lost
			}
			for i := range 3 {
				_, err := s.Append(t.Context(), tapedeck.Append{Session: "a", Events: chunks(1)})
				if tapedeck.KindOf(err) != tapedeck.Unavailable || !strings.Contains(err.Error(), "deleted, moved or replaced") {
					t.Errorf("append %d: %v", i, err)
				}
			}
			if err := <-lost; err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("OnLost receives %v", err)
			}
			before := listing(t, dir)
			_ = s.Close() // it fails, because it cannot save the state in memory
			if after := listing(t, dir); after != before {
				t.Errorf("closing it made %s of %s", after, before)
			}
			if len(lost) > 0 {
				t.Error("OnLost is called twice")
			}
		})
	}
}

// TestLostFolderIsNoticed: the store notices a lost folder without a write.
func TestLostFolderIsNoticed(t *testing.T) {
	dir, lost := filepath.Join(t.TempDir(), "data"), make(chan error, 1)
	open(t, dir, sqlite.Options{OnLost: func(err error) { lost <- err }})
	must(t, os.Rename(dir, dir+".away"))
	<-lost
}

// TestSecondFolderUnderOnePath replaces a folder that is being served by another. A
// second store cannot open it while the first has not noticed that.
func TestSecondFolderUnderOnePath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := open(t, dir, sqlite.Options{})
	must(t, os.Rename(dir, dir+".away"))
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); tapedeck.KindOf(err) != tapedeck.Conflict {
		t.Fatalf("a second store: %v", err)
	}
	_ = first.Close() // it fails, because it cannot save the state in memory
	open(t, dir, sqlite.Options{})
}

// listing returns the names of the files of a folder, with their times.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, _ := os.ReadDir(dir) // there may be none
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		b.WriteString(e.Name() + " " + info.ModTime().String() + "\n")
	}
	return b.String()
}
