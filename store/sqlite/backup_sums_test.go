package sqlite_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// sound checks that a store has nothing but sound events with sums.
func sound(t *testing.T, s *sqlite.Store, when string) {
	t.Helper()
	r, err := s.Verify(t.Context(), nil)
	if err != nil || len(r.Problems) > 0 || r.Unsummed > 0 {
		t.Errorf("%s: %v %v, %d without a checksum", when, r.Problems, err, r.Unsummed)
	}
}

// written creates sessions whose sums have all forms: forks of forks, with and without events
// of their own, of a deleted parent, and erased events.
func (v *vault) written() (ids []string) {
	v.Helper()
	created := []tapedeck.Event{{Type: "session.created", Data: []byte(`{"title":"A"}`)}}
	v.create(tapedeck.Spec{ID: "a", Events: created})
	v.say("a", "first", 9)
	v.create(tapedeck.Spec{ID: "fork", Parent: "a", ForkAt: new(int64(7))})
	v.create(tapedeck.Spec{ID: "parent", Events: created})
	v.say("parent", "lost", 4)
	v.create(tapedeck.Spec{ID: "empty", Parent: "parent"})
	v.say("fork", "second", 5)
	v.create(tapedeck.Spec{ID: "fork-fork", Parent: "fork", ForkAt: new(int64(7))})
	v.say("fork-fork", "third", 2)
	v.create(tapedeck.Spec{ID: "stream/x", Kind: tapedeck.KindStream, ContentType: "text/plain", Chunks: [][]byte{[]byte("x"), {}, {0, 255}}})
	if err := v.Delete(v.Context(), "parent"); err != nil {
		v.Fatal(err)
	}
	_, err := v.Erase(v.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: 5, To: 7}}, Events: []tapedeck.Event{{Type: tapedeck.SessionRedacted, Data: []byte(`{"ranges":[[5,7]]}`)}}})
	if err != nil {
		v.Fatal(err)
	}
	return []string{"a", "fork", "fork-fork", "empty", "stream/x"}
}

// TestRestoreSums: the sessions of a restore have other gens, and sound sums all the same:
// after each kind of restore, after appends to each session and after new forks.
func TestRestoreSums(t *testing.T) {
	v := newVault(t)
	ids := v.written()
	v.backup(sqlite.BackupOptions{})
	v.clock.Advance(time.Minute)
	at := v.clock.Now()
	v.clock.Advance(time.Minute)
	for _, id := range []string{"a", "fork", "empty"} {
		v.say(id, "later", 3)
	}
	v.create(tapedeck.Spec{ID: "new", Parent: "fork"})
	v.backup(sqlite.BackupOptions{})
	sound(t, v.Store, "before")
	for name, o := range map[string]sqlite.RestoreOptions{
		"all": {}, "a moment": {At: at}, "a session": {Session: "fork-fork", Before: -1},
		"a fork without events": {Session: "new", Before: -1}, "before an offset": {Session: "fork", Before: 9},
	} {
		s := v.restored(o)
		sound(t, s, name)
		for _, id := range append(ids, "new") {
			if _, err := s.Head(t.Context(), id); err != nil { // it is not restored, or only for its forks
				continue
			}
			a, kind := tapedeck.Append{Session: id, Events: []tapedeck.Event{{Type: "x"}}}, tapedeck.KindSession
			if strings.HasPrefix(id, "stream/") {
				a.Events, a.Chunks, kind = nil, [][]byte{[]byte("more")}, tapedeck.KindStream
			}
			if _, err := s.Append(t.Context(), a); err != nil {
				t.Errorf("%s: %s: %v", name, id, err)
			}
			if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id + "-later", Kind: kind, Parent: id}); err != nil {
				t.Errorf("%s: %s: %v", name, id, err)
			}
		}
		sound(t, s, name+", appended")
	}
}

// TestRestoreAgain backs up and restores what was restored.
func TestRestoreAgain(t *testing.T) {
	v := newVault(t)
	ids := v.written()
	v.backup(sqlite.BackupOptions{})
	again := &vault{T: t, clock: v.clock, dest: filepath.Join(t.TempDir(), "backup")}
	again.Store = v.restored(sqlite.RestoreOptions{})
	again.dir = again.Dir()
	again.say("fork", "again", 2)
	again.backup(sqlite.BackupOptions{})
	s := again.restored(sqlite.RestoreOptions{})
	sound(t, s, "restored twice")
	sameSessions(t, again.Store, s, ids...)
}

// TestRestoreOlderSchema restores backups of a folder from before there were sums: made
// before the tables were updated, and after.
func TestRestoreOlderSchema(t *testing.T) {
	v := newVault(t)
	v.Close()
	v.dir = filepath.Join(t.TempDir(), "older")
	loadDump(t, v.dir, "testdata/released/0008.sql")
	v.backup(sqlite.BackupOptions{})
	check := func(s *sqlite.Store, head, unsummed int64) {
		t.Helper()
		r, err := s.Verify(t.Context(), nil)
		if got, _ := s.Head(t.Context(), "talk"); err != nil || len(r.Problems) > 0 || r.Unsummed != unsummed || got.Head != head {
			t.Errorf("%+v %v %d", r, err, got.Head)
		}
	}
	check(v.restored(sqlite.RestoreOptions{}), 4, 8)
	check(v.restored(sqlite.RestoreOptions{Session: "talk", Before: 3}), 3, 3)
	v.Store = open(t, v.dir, sqlite.Options{Now: v.clock.Now})
	v.say("talk", "with a sum", 2)
	v.backup(sqlite.BackupOptions{})
	check(v.restored(sqlite.RestoreOptions{}), 6, 8)
	check(v.restored(sqlite.RestoreOptions{Session: "talk", Before: 5}), 5, 4)
	check(v.restored(sqlite.RestoreOptions{Session: "talk", Before: 3}), 3, 3)
}

// damagedFolder has a session of which the event at offset 4 was changed.
func damagedFolder(t *testing.T) *vault {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("a", "one", 9)
	v.create(tapedeck.Spec{ID: "b", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("b", "two", 9)
	v.Close()
	tamper(t, filepath.Join(v.dir, database), `UPDATE events SET event = replace(event, 'one 3', 'ene 3') WHERE offset = 4`)
	return v
}

const damagedAt4 = `session "a": the event at offset 4 is damaged`

// TestBackupOfDamage: a backup of a damaged folder says what is damaged, and so does each
// check of it. A restore refuses it, or restores it without confirming it.
func TestBackupOfDamage(t *testing.T) {
	v := damagedFolder(t)
	r, err := sqlite.Backup(t.Context(), v.dir, v.dest, sqlite.BackupOptions{Prune: true})
	if all := strings.Join(r.Found.Problems, "\n"); err != nil || !strings.HasPrefix(all, damagedAt4) || len(r.Found.Problems) != 1 {
		t.Error(all, err)
	}
	v.refusesDamage(damagedAt4)
	v.restoresDamaged()
}

// refusesDamage checks that the backup is not restored, and that a problem is named.
func (v *vault) refusesDamage(want string) {
	v.Helper()
	found, err := sqlite.CheckBackup(v.Context(), v.dest, nil)
	if all := strings.Join(found.Problems, "\n"); err != nil || !strings.Contains(all, want) {
		v.Errorf("the check finds %q %v", all, err)
	}
	dir := filepath.Join(v.TempDir(), "r")
	_, err = sqlite.Restore(v.Context(), v.dest, dir, sqlite.RestoreOptions{Before: -1})
	if tapedeck.KindOf(err) != tapedeck.Conflict || !strings.Contains(err.Error(), want) {
		v.Error("it is restored:", err)
	}
	if _, err := os.Stat(filepath.Join(dir, database)); err == nil {
		v.Error("a refused restore leaves a database")
	}
	if _, err := sqlite.Restore(v.Context(), v.dest, dir, sqlite.RestoreOptions{Damaged: true, At: time.Now()}); tapedeck.KindOf(err) != tapedeck.Invalid {
		v.Error("to a moment:", err)
	}
}

// restoresDamaged restores what can be read. The damaged event of the session "a" is not
// served, and the rest is.
func (v *vault) restoresDamaged() {
	v.Helper()
	dir := filepath.Join(v.TempDir(), "damaged")
	r, err := sqlite.Restore(v.Context(), v.dest, dir, sqlite.RestoreOptions{Damaged: true})
	if err != nil || len(r.Problems) == 0 || r.Missing != 0 {
		v.Fatal(r.Problems, r.Missing, err)
	}
	s := open(v.T, dir, sqlite.Options{})
	if n, err := readOn(v.T, s, "a", tapedeck.Range{}); n != 4 || !isDamage(err, "a", 4) {
		v.Errorf("%d events and %v", n, err)
	}
	if n, err := readOn(v.T, s, "a", tapedeck.Range{From: 5}); n != 5 || err != nil {
		v.Errorf("%d events and %v after the damage", n, err)
	}
	if n, err := readOn(v.T, s, "b", tapedeck.Range{}); n != 10 || err != nil {
		v.Errorf("%d events and %v in another session", n, err)
	}
	if report, err := s.Verify(v.Context(), nil); err != nil || !cmp.Equal(report.Problems, r.Problems) {
		v.Error(report.Problems, r.Problems, err)
	}
	s.Close()
	if got, records := rescue(v.T, dir); len(records["a"]) != 4 || len(got.Cut) != 1 {
		v.Errorf("%+v %v", got, records)
	}
}

// TestFlippedBackup flips a letter of what somebody has said, in the file of a backup.
func TestFlippedBackup(t *testing.T) {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("a", "one", 9)
	v.create(tapedeck.Spec{ID: "b", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("b", "two", 9)
	v.backup(sqlite.BackupOptions{})
	name := filepath.Join(v.dest, "events-1.db")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("one 3"))
	b[at] ^= 4
	write(t, name, string(b))
	v.refusesDamage(damagedAt4)
	v.restoresDamaged()
}

// TestBackupWithoutPages: what is on pages that are lost is named, and the rest is restored.
func TestBackupWithoutPages(t *testing.T) {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("a", strings.Repeat("one ", 100), 99)
	v.backup(sqlite.BackupOptions{})
	name := filepath.Join(v.dest, "events-1.db")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[5*4096 : 6*4096])
	write(t, name, string(b))
	v.refusesDamage("some events in the file events-1.db cannot be read")
	dir := filepath.Join(t.TempDir(), "damaged")
	r, err := sqlite.Restore(t.Context(), v.dest, dir, sqlite.RestoreOptions{Damaged: true})
	if err != nil || len(r.Problems) == 0 || r.Events < 80 || r.Events >= 100 || r.Events+r.Missing != 100 {
		t.Fatalf("%+v %v %v", r, err, errors.Unwrap(err))
	}
	s := open(t, dir, sqlite.Options{})
	n, err := readOn(t, s, "a", tapedeck.Range{})
	if !isDamage(err, "a", n) {
		t.Error(n, err)
	}
	back, err := readOn(t, s, "a", tapedeck.Range{From: 100, Reverse: true})
	if int64(n+back) != r.Events || err == nil {
		t.Errorf("%d and %d of %d events can be read: %v", n, back, r.Events, err)
	}
}

// TestRestoreOldState restores a folder with an event of another history of the session,
// which is sound by itself.
func TestRestoreOldState(t *testing.T) {
	v, other := newVault(t), newVault(t)
	for v, what := range map[*vault]string{v: "one", other: "two"} {
		v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
		v.say("a", what, 9)
		v.Close()
	}
	tamper(t, filepath.Join(v.dir, database), `ATTACH '`+filepath.Join(other.dir, database)+`' AS older;
		UPDATE events SET (event, sum) = (SELECT event, sum FROM older.events o WHERE o.session = events.session AND o.offset = events.offset) WHERE offset = 5`)
	if r, err := sqlite.Backup(t.Context(), v.dir, v.dest, sqlite.BackupOptions{}); err != nil {
		t.Error(r.Found.Problems, err)
	}
	const want = `session "a": the event at offset 5 was not written after the one before it`
	v.refusesDamage(want)
	r, err := sqlite.Restore(t.Context(), v.dest, filepath.Join(t.TempDir(), "r"), sqlite.RestoreOptions{Damaged: true})
	if err != nil || len(r.Problems) == 0 || !strings.HasPrefix(r.Problems[0], want) {
		t.Error(r.Problems, err)
	}
}
