package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// stays checks that a file is as [put] has written it.
func stays(t *testing.T, path, content string) {
	t.Helper()
	if b, err := os.ReadFile(path); string(b) != content {
		t.Errorf("%s is %.40q: %v", path, b, err)
	}
}

// one returns a vault with one session and a key.
func one(t *testing.T) *vault {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("a", "one", 3)
	put(t, filepath.Join(v.dir, "access.key"), "secret")
	return v
}

// TestBackupAndFilesOfOthers: a backup removes what a killed one has left, and no file of
// others that is in its folder, or behind a link there.
func TestBackupAndFilesOfOthers(t *testing.T) {
	v := one(t)
	o := sqlite.BackupOptions{Files: []string{"access.key"}, Now: v.clock.Now}
	for _, name := range []string{"events-1.db", "catalogue-2.db", "manifest.json.tmp", "manifest.json.12", "files/notes.txt"} {
		dest := t.TempDir()
		put(t, filepath.Join(dest, name), "of others")
		if _, err := sqlite.Backup(t.Context(), v.dir, dest, o); err == nil || !strings.Contains(err.Error(), "has other files") {
			t.Errorf("%s: %v", name, err)
		}
		stays(t, filepath.Join(dest, name), "of others")
	}

	v.backup(o)
	at := func(name string) string { return filepath.Join(v.dest, name) }
	part, err := os.ReadFile(at("events-1.db"))
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"events-2.db", "catalogue-3.db", "manifest.json.tmp", "manifest.json.12", "notes.txt", "files/notes.txt", "files/9-mine.key"}
	left := map[string]string{"events-7.db": string(part), "events-8.db": "", "manifest.json.13": "{\n \"format\": 1,\n", "files/9-access.key": "secret", "files/9-access.key.123": "sec"}
	for _, name := range others {
		put(t, at(name), "of others")
	}
	for name, content := range left {
		put(t, at(name), content)
	}
	v.say("a", "two", 3)
	v.backup(o)
	for _, name := range others {
		stays(t, at(name), "of others")
	}
	for name := range left {
		if _, err := os.Lstat(at(name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	sameSessions(t, v.Store, v.restored(sqlite.RestoreOptions{}), "a")
}

// TestBackupAndLinks: a backup with a link is refused before anything changes.
func TestBackupAndLinks(t *testing.T) {
	v := one(t)
	o := sqlite.BackupOptions{Files: []string{"access.key"}, Now: v.clock.Now}
	v.backup(o)
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "1-access.key"), "of others")
	put(t, filepath.Join(elsewhere, "x"), "of others")
	for _, c := range [][2]string{{"files", elsewhere}, {"events-2.db", filepath.Join(elsewhere, "x")}, {"catalogue-3.db", filepath.Join(elsewhere, "nothing")}, {"manifest.json", filepath.Join(elsewhere, "x")}} {
		path := filepath.Join(v.dest, c[0])
		was := filepath.Join(t.TempDir(), "was")
		if err := os.Rename(path, was); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(c[1], path); err != nil {
			t.Skip(err) // only administrators may on Windows
		}
		if _, err := sqlite.Backup(t.Context(), v.dir, v.dest, o); err == nil || !strings.Contains(err.Error(), "is a link") {
			t.Errorf("%s: %v", c[0], err)
		}
		if to, err := os.Readlink(path); to != c[1] || err != nil {
			t.Errorf("%s leads to %q, %v", c[0], to, err)
		}
		_ = os.Remove(path)
		_ = os.Rename(was, path)
	}
	entries, err := os.ReadDir(elsewhere)
	if len(entries) != 2 || err != nil {
		t.Errorf("elsewhere are %v, %v", entries, err)
	}
	stays(t, filepath.Join(elsewhere, "x"), "of others")
	v.backup(o)
}
