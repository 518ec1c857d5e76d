package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// tamper changes a database behind the store's back.
func tamper(t testing.TB, file string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestFolder(t *testing.T) {
	for _, name := range []string{"plain", "with a blank/and below", "a?b#c%41&d=e'f", "ä日本"} {
		dir := filepath.Join(t.TempDir(), name)
		s := open(t, dir, sqlite.Options{})
		create(t, s, "a")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 { // a clean close removes the log
			t.Errorf("%s: there are %v (%v)", name, entries, err)
		}
		for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "lock"): 0o600, filepath.Join(dir, "tapedeck.db"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("the mode of %s is %v (%v)", path, info.Mode(), err)
			}
		}
		if _, err := open(t, dir, sqlite.Options{}).Head(t.Context(), "a"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenAgain: opening a database with the current schema changes nothing in it.
func TestOpenAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	add(t, s, "a", 5)
	_ = s.Close()
	before, err := os.ReadFile(filepath.Join(dir, "tapedeck.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir, sqlite.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "tapedeck.db"))
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d bytes became %d (%v)", len(before), len(after), err)
	}
	// Page 1 has the change counter; another page has the fact that the folder is in use.
	pages := 0
	for at := 4096; at < len(before); at += 4096 {
		if !bytes.Equal(before[at:at+4096], after[at:at+4096]) {
			pages++
		}
	}
	if pages > 1 {
		t.Errorf("%d pages changed", pages)
	}
}

func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, file string)
		options sqlite.Options
		kind    tapedeck.Kind
		words   string
		changed bool
	}{
		"a text": {
			prepare: func(t *testing.T, file string) { write(t, file, strings.Repeat("no database\n", 1000)) },
			kind:    tapedeck.Conflict, words: "is not a Tapedeck database",
		},
		"a database of others": {
			prepare: func(t *testing.T, file string) { tamper(t, file, "CREATE TABLE sessions (id)") },
			kind:    tapedeck.Conflict, words: "is not a Tapedeck database",
		},
		"the application id of others": {
			prepare: func(t *testing.T, file string) { tamper(t, file, "PRAGMA application_id = 7") },
			kind:    tapedeck.Conflict, words: "is not a Tapedeck database",
		},
		"a newer schema": {
			prepare: func(t *testing.T, file string) {
				_ = open(t, filepath.Dir(file), sqlite.Options{}).Close()
				tamper(t, file, "INSERT INTO migrations (version_id, is_applied) VALUES (99, 1)")
			},
			kind: tapedeck.Conflict, words: "newer Tapedeck (its schema is number 99", changed: true,
		},
		"a folder in its place": {
			prepare: func(t *testing.T, file string) { _ = os.Mkdir(file, 0o700) },
			kind:    tapedeck.Invalid, words: "cannot be opened",
		},
		"damage": {
			prepare: func(t *testing.T, file string) { damage(t, file) },
			kind:    tapedeck.Internal, words: "is damaged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tapedeck.db")
			c.prepare(t, file)
			before, _ := os.ReadFile(file)
			_, err := sqlite.Open(t.Context(), filepath.Dir(file), c.options)
			var e *tapedeck.Error
			if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.words) || e.Hint == "" {
				t.Fatalf("got %v (%+v)", err, e)
			}
			if c.kind == tapedeck.Internal && !strings.Contains(e.Hint, "tapedeck verify") {
				t.Errorf("the hint is %q", e.Hint)
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(before, after) && !c.changed {
				t.Error("the file was changed")
			}
			if _, err := os.Stat(file + "-wal"); err == nil {
				t.Error("a file was left beside it")
			}
		})
	}
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// damage creates a store and overwrites pages in the middle of its file.
func damage(t testing.TB, file string) {
	t.Helper()
	s := open(t, filepath.Dir(file), sqlite.Options{})
	create(t, s, "a")
	add(t, s, "a", 1000)
	_ = s.Close()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[len(b)/2/4096*4096:], bytes.Repeat([]byte{0xa5}, 3*4096))
	write(t, file, string(b))
}

// TestDamage opens a damaged file without the check. Reads of sound parts work, reads
// of other parts return an error that says what to do, and Verify finds the damage.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	damage(t, filepath.Join(dir, "tapedeck.db"))
	s := open(t, dir, sqlite.Options{CheckBelow: -1})
	if _, err := s.Read(t.Context(), "a", tapedeck.Range{Limit: 10}); err != nil {
		t.Error(err)
	}
	var last error
	for _, err := range tapedeck.Events(t.Context(), s, "a", 0) {
		last = err
	}
	var e *tapedeck.Error
	if !errors.As(last, &e) || e.Kind != tapedeck.Internal || !strings.Contains(e.Hint, "tapedeck verify") {
		t.Errorf("reading all of it: %v", last)
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) == 0 {
		t.Errorf("verify finds nothing: %+v, %v", report, err)
	}
}

// An error names what is in the way of a folder, not only the folder.
func TestNoFolder(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	write(t, file, "x")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"":                            "no data folder is given",
		file:                          file + " is no folder",
		filepath.Join(file, "a", "b"): file + " is no folder",
		link:                          link + " is a link, and what it names is no folder",
		filepath.Join(link, "below"):  link + " is a link, and what it names is no folder",
		filepath.Join(dir, "a\x00b"):  "cannot be used",
	} {
		_, err := sqlite.Open(t.Context(), folder, sqlite.Options{})
		if tapedeck.KindOf(err) != tapedeck.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", folder, err, want)
		}
	}
	if _, err := sqlite.CheckBackup(t.Context(), file, nil); err == nil || !strings.Contains(err.Error(), file+" is no folder") {
		t.Errorf("got %v", err)
	}
}
