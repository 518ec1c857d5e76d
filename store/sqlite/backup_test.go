package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

// A vault is a data folder in use, and a backup of it.
type vault struct {
	*testing.T
	*sqlite.Store
	clock     *storetest.Clock
	dir, dest string
}

func newVault(t *testing.T) *vault {
	v := &vault{T: t, clock: storetest.NewClock(), dir: filepath.Join(t.TempDir(), "data"), dest: filepath.Join(t.TempDir(), "backup")}
	v.Store = open(t, v.dir, sqlite.Options{Now: v.clock.Now})
	return v
}

func (v *vault) create(spec tapedeck.Spec) {
	v.Helper()
	if spec.Kind == "" {
		spec.Kind = tapedeck.KindSession
	}
	if _, err := v.Create(v.Context(), spec); err != nil {
		v.Fatal(err)
	}
}

// say appends messages with a text and a number to a session.
func (v *vault) say(id, what string, n int) {
	v.Helper()
	a := tapedeck.Append{Session: id}
	for i := range n {
		a.Events = append(a.Events, tapedeck.Event{Type: "message.added", Data: fmt.Appendf(nil, `{"message":{"id":"m%d","role":"user","content":"%s %d"}}`, i, what, i)})
	}
	if _, err := v.Append(v.Context(), a); err != nil {
		v.Fatal(err)
	}
}

func (v *vault) backup(o sqlite.BackupOptions) sqlite.BackupReport {
	v.Helper()
	o.Now = v.clock.Now
	r, err := sqlite.Backup(v.Context(), v.dir, v.dest, o)
	if err != nil {
		v.Fatal(err)
	}
	found, err := sqlite.CheckBackup(v.Context(), v.dest, nil)
	if err != nil || len(found.Problems) > 0 {
		v.Fatal(found.Problems, err)
	}
	return r
}

// restored restores the backup, and opens the result.
func (v *vault) restored(o sqlite.RestoreOptions) *sqlite.Store {
	v.Helper()
	dir := filepath.Join(v.TempDir(), "restored")
	if o.Session == "" {
		o.Before = -1
	}
	if _, err := sqlite.Restore(v.Context(), v.dest, dir, o); err != nil {
		v.Fatal(err, errors.Unwrap(err))
	}
	return open(v.T, dir, sqlite.Options{Now: v.clock.Now})
}

// contents returns the events of a session, the inherited ones, too; nil without the
// session.
func contents(t *testing.T, s *sqlite.Store, id string) []string {
	t.Helper()
	session, err := s.Head(t.Context(), id)
	if err != nil {
		return nil
	}
	all := []string{}
	for from := int64(0); from < session.Head; {
		page, err := s.Read(t.Context(), id, tapedeck.Range{From: from})
		if err != nil || len(page.Records) == 0 {
			t.Fatalf("%s at %d: %v", id, from, err)
		}
		for _, r := range page.Records {
			all = append(all, string(r.Data))
		}
		from += int64(len(page.Records))
	}
	return all
}

// sameSessions compares sessions of two stores, entries and events.
func sameSessions(t *testing.T, was, is *sqlite.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		want, err := was.Head(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := is.Head(t.Context(), id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if got.Gen <= want.Gen {
			t.Errorf("%s has the gen %d after %d", id, got.Gen, want.Gen)
		}
		got.Gen = want.Gen
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", id, d)
		}
		if d := cmp.Diff(contents(t, was, id), contents(t, is, id)); d != "" {
			t.Errorf("%s: %s", id, d)
		}
	}
}

func TestBackup(t *testing.T) {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{"title":"A talk"}`)}}})
	v.say("a", "one", 20)
	v.create(tapedeck.Spec{ID: "fork", Parent: "a", ForkAt: new(int64(10))})
	v.create(tapedeck.Spec{ID: "stream/x", Kind: tapedeck.KindStream, ContentType: "text/plain", Chunks: [][]byte{[]byte("x"), {}}})
	v.create(tapedeck.Spec{ID: "view/x", Kind: tapedeck.KindView, Chunks: [][]byte{[]byte("a checkpoint")}})
	r := v.backup(sqlite.BackupOptions{})
	if !r.New || r.Sessions != 2 || r.Streams != 1 || r.NewEvents != 23 {
		t.Errorf("%+v", r)
	}
	if r := v.backup(sqlite.BackupOptions{}); r.New || r.NewEvents != 0 || r.Written != 0 || r.Points != 1 {
		t.Errorf("nothing is new, but: %+v", r)
	}
	v.say("fork", "two", 3)
	v.say("a", "three", 1)
	if r := v.backup(sqlite.BackupOptions{}); r.NewEvents != 4 || r.Points != 2 {
		t.Errorf("%+v", r)
	}
	s := v.restored(sqlite.RestoreOptions{})
	sameSessions(t, v.Store, s, "a", "fork", "stream/x")
	if _, err := s.Head(t.Context(), "view/x"); tapedeck.KindOf(err) != tapedeck.NotFound {
		t.Error("a checkpoint of a view was restored:", err)
	}
	// A new session has a gen that no other ever had.
	newest, err := s.Create(t.Context(), tapedeck.Spec{ID: "new", Kind: tapedeck.KindSession})
	if a, _ := s.Head(t.Context(), "fork"); err != nil || newest.Session.Gen <= a.Gen {
		t.Error(newest.Session.Gen, a.Gen, err)
	}
	for _, root := range []string{v.dest, s.Dir()} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if info, _ := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestoreAt restores to moments between and at backups.
func TestRestoreAt(t *testing.T) {
	v := newVault(t)
	begin := v.clock.Now()
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{"title":"A"}`)}}})
	v.create(tapedeck.Spec{ID: "stream/s", Kind: tapedeck.KindStream, ContentType: "text/plain", Chunks: [][]byte{[]byte("early")}})
	v.clock.Advance(time.Minute)
	v.backup(sqlite.BackupOptions{})
	v.clock.Advance(time.Minute)
	if _, err := v.Append(t.Context(), tapedeck.Append{Session: "a", Producer: &tapedeck.Producer{ID: "p"}, Events: []tapedeck.Event{
		{Type: "RUN_STARTED", Invocation: "i", Data: []byte(`{"threadId":"main","runId":"i"}`)}}}); err != nil {
		t.Fatal(err)
	}
	early, _ := v.Head(t.Context(), "a")
	at := v.clock.Now()
	v.clock.Advance(time.Minute)
	for _, e := range []tapedeck.Event{
		{Type: "RUN_FINISHED", Invocation: "i", Data: []byte(`{"threadId":"main","runId":"i"}`)}, {Type: "session.renamed", Data: []byte(`{"title":"B"}`)},
	} {
		if _, err := v.Append(t.Context(), tapedeck.Append{Session: "a", Events: []tapedeck.Event{e}, Producer: &tapedeck.Producer{ID: "p", Seq: map[string]int64{"RUN_FINISHED": 1, "session.renamed": 2}[e.Type]}}); err != nil {
			t.Fatal(err)
		}
	}
	v.create(tapedeck.Spec{ID: "later", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.create(tapedeck.Spec{ID: "fork", Parent: "a"})
	if _, err := v.Append(t.Context(), tapedeck.Append{Session: "stream/s", Chunks: [][]byte{[]byte("late")}, Close: true}); err != nil {
		t.Fatal(err)
	}
	v.backup(sqlite.BackupOptions{})
	all := contents(t, v.Store, "a")

	s := v.restored(sqlite.RestoreOptions{At: at})
	got, err := s.Head(t.Context(), "a")
	if err != nil || got.Status != tapedeck.StatusRunning || got.Head != 2 || got.Title != "A" {
		t.Errorf("%+v %v", got, err)
	}
	if got.Gen = early.Gen; !got.Updated.Equal(early.Updated) || cmp.Diff(early.Runs, got.Runs) != "" {
		t.Error(cmp.Diff(early, got))
	}
	if d := cmp.Diff(all[:2], contents(t, s, "a")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"early"}, contents(t, s, "stream/s")); d != "" {
		t.Error(d)
	}
	if stream, _ := s.Head(t.Context(), "stream/s"); stream.Closed {
		t.Error("the stream was closed later, but is closed")
	}
	for _, id := range []string{"later", "fork"} {
		if _, err := s.Head(t.Context(), id); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("%s was made later, but: %v", id, err)
		}
	}
	// A producer whose newest append is left out is refused, not taken for a duplicate.
	_, err = s.Append(t.Context(), tapedeck.Append{Session: "a", Producer: &tapedeck.Producer{ID: "p", Seq: 2}, Events: []tapedeck.Event{{Type: "x"}}})
	if err == nil {
		t.Error("an append of the other history is a duplicate")
	}

	if _, err := sqlite.Restore(t.Context(), v.dest, t.TempDir(), sqlite.RestoreOptions{At: v.clock.Now().Add(time.Hour), Before: -1}); tapedeck.KindOf(err) != tapedeck.Invalid {
		t.Error("a moment after the backup:", err)
	}
	for _, session := range []string{"", "a"} {
		o := sqlite.RestoreOptions{At: begin.Add(-time.Minute), Session: session, Before: -1}
		_, err := sqlite.Restore(t.Context(), v.dest, t.TempDir(), o)
		if tapedeck.KindOf(err) != tapedeck.NotFound || !strings.Contains(err.Error(), "is from "+begin.UTC().Format(time.RFC3339Nano)) {
			t.Errorf("a moment before the session %q: %v", session, err)
		}
	}
	if s := v.restored(sqlite.RestoreOptions{At: begin}); len(contents(t, s, "a")) != 1 {
		t.Error("the oldest moment, which the error names, has no session")
	}
	if s := v.restored(sqlite.RestoreOptions{At: at.Add(-time.Minute)}); len(contents(t, s, "a")) != 1 {
		t.Error("the moment of the first backup has other events")
	}
}

// TestRestoreSession restores one session, also before an offset.
func TestRestoreSession(t *testing.T) {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{"title":"A"}`)}}})
	v.say("a", "one", 9)
	v.create(tapedeck.Spec{ID: "b", Parent: "a", ForkAt: new(int64(5))})
	v.say("b", "two", 4)
	v.create(tapedeck.Spec{ID: "other"})
	v.backup(sqlite.BackupOptions{})
	all := contents(t, v.Store, "b")
	s := v.restored(sqlite.RestoreOptions{Session: "b", Before: -1})
	sameSessions(t, v.Store, s, "b")
	if list, err := s.List(t.Context(), tapedeck.Filter{}); err != nil || len(list.Sessions) != 1 {
		t.Error("there are other sessions:", list.Sessions, err)
	}
	s = v.restored(sqlite.RestoreOptions{Session: "b", Before: 7})
	if d := cmp.Diff(all[:7], contents(t, s, "b")); d != "" {
		t.Error(d)
	}
	for want, o := range map[string]sqlite.RestoreOptions{
		"has no session":             {Session: "nobody", Before: -1},
		"so --before 10 is too high": {Session: "b", Before: 10},
		"inherits the events before": {Session: "b", Before: 5},
		"leaves nothing":             {Session: "a", Before: 0},
	} {
		dir := filepath.Join(t.TempDir(), "r")
		if _, err := sqlite.Restore(t.Context(), v.dest, dir, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "tapedeck.db")); err == nil {
			t.Error("a refused restore leaves a database")
		}
	}
}

// holds reports whether a file of a folder has a text.
func holds(t *testing.T, dir, what string) bool {
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, err := os.ReadFile(path)
			found = found || bytes.Contains(b, []byte(what))
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestBackupForgets erases and deletes between backups. Later moments do not have what was
// erased, earlier ones do, and after a prune no file has it.
func TestBackupForgets(t *testing.T) {
	v := newVault(t)
	for _, id := range []string{"a", "gone"} {
		v.create(tapedeck.Spec{ID: id, Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	}
	v.say("a", "canary", 5)
	v.say("gone", "goner", 5)
	v.say("a", "rest", 5)
	v.backup(sqlite.BackupOptions{})
	first := v.clock.Now()
	whole := contents(t, v.Store, "a")
	v.clock.Advance(time.Hour)
	_, err := v.Erase(t.Context(), tapedeck.Erasure{Session: "a", Ranges: []tapedeck.OffsetRange{{From: 1, To: 6}}, Events: []tapedeck.Event{{Type: tapedeck.SessionRedacted, Data: []byte(`{"ranges":[[1,6]]}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if r := v.backup(sqlite.BackupOptions{}); r.NewEvents != 1 {
		t.Errorf("%+v", r)
	}
	sameSessions(t, v.Store, v.restored(sqlite.RestoreOptions{}), "a")
	if s := v.restored(sqlite.RestoreOptions{}); holds(t, s.Dir(), "canary") || holds(t, s.Dir(), "goner") {
		t.Error("a later moment has what was erased or deleted")
	}
	if d := cmp.Diff(whole, contents(t, v.restored(sqlite.RestoreOptions{At: first}), "a")); d != "" {
		t.Error(d)
	}
	if s := v.restored(sqlite.RestoreOptions{At: first}); len(contents(t, s, "gone")) != 6 {
		t.Error("a session that was deleted later is not there")
	}
	v.clock.Advance(time.Hour)
	if r := v.backup(sqlite.BackupOptions{Prune: true, Keep: 3 * time.Hour}); r.Forgotten != 0 || !holds(t, v.dest, "canary") {
		t.Errorf("it has removed what is to be kept: %+v", r)
	}
	if r := v.backup(sqlite.BackupOptions{Prune: true}); r.Points != 1 || r.Forgotten != 11 {
		t.Errorf("%+v", r)
	}
	for _, secret := range []string{"canary", "goner"} {
		if holds(t, v.dest, secret) {
			t.Errorf("the backup still has %q", secret)
		}
	}
	sameSessions(t, v.Store, v.restored(sqlite.RestoreOptions{}), "a")
}

// TestBackupUnderLoad backs up while writers append. Every event that was acknowledged
// before is there, at its offset, and each session is a prefix of what it is.
func TestBackupUnderLoad(t *testing.T) {
	sqlite.BackupSizes(t, 16<<10, 64)
	v := newVault(t)
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	written := make(chan struct{}, 20)
	for w := range 4 {
		id := fmt.Sprintf("w%d", w)
		v.create(tapedeck.Spec{ID: id, Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
		wait.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				v.say(id, fmt.Sprintf("m%d_", i), 10)
				select {
				case written <- struct{}{}: // a backup that is slow must not meet millions of events
				case <-ctx.Done():
				}
			}
		})
	}
	for round := range 4 {
		for range 40 {
			<-written
		}
		acked := map[string]int64{}
		for w := range 4 {
			s, err := v.Head(t.Context(), fmt.Sprintf("w%d", w))
			if err != nil {
				t.Fatal(err)
			}
			acked[s.ID] = s.Head
		}
		if r := v.backup(sqlite.BackupOptions{}); r.Points != round+1 {
			t.Errorf("%+v", r)
		}
		s := v.restored(sqlite.RestoreOptions{})
		for id, head := range acked {
			have, want := contents(t, s, id), contents(t, v.Store, id)
			if int64(len(have)) < head {
				t.Errorf("%s had %d events before the backup, which has %d", id, head, len(have))
			}
			if d := cmp.Diff(want[:len(have)], have); d != "" {
				t.Errorf("%s: %s", id, d)
			}
		}
	}
	stop()
	wait.Wait()
}

// TestBackupInterrupted cancels a backup at each step. The earlier moment stays good, and
// the next backup continues with the parts that are complete.
func TestBackupInterrupted(t *testing.T) {
	sqlite.BackupSizes(t, 1, 8)
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("a", "one", 20)
	v.backup(sqlite.BackupOptions{})
	v.say("a", "two", 100)
	for n := 1; n < 5; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		_, err := sqlite.Backup(ctx, v.dir, v.dest, sqlite.BackupOptions{Now: v.clock.Now, Progress: func(int64, int64) {
			if seen++; seen == n {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if s := v.restored(sqlite.RestoreOptions{}); len(contents(t, s, "a")) != 21 {
			t.Error("the earlier moment has changed")
		}
	}
	if r := v.backup(sqlite.BackupOptions{}); r.NewEvents >= 100 {
		t.Errorf("it has begun again: %+v", r)
	}
	sameSessions(t, v.Store, v.restored(sqlite.RestoreOptions{}), "a")
}

// TestBackupRefuses has what must not become a backup, or be restored.
func TestBackupRefuses(t *testing.T) {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	v.say("a", "one", 3)
	v.backup(sqlite.BackupOptions{})
	restored := v.restored(sqlite.RestoreOptions{})
	restored.Close()
	other := newVault(t)
	other.create(tapedeck.Spec{ID: "z", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	other.say("z", "one", 30)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, dest, want string }{
		{restored.Dir(), v.dest, "another history"},
		{other.dir, v.dest, "of another folder"},
		{t.TempDir(), v.dest, "there are no sessions"},
		{v.dir, full, "has other files"},
	} {
		if _, err := sqlite.Backup(t.Context(), c.dir, c.dest, sqlite.BackupOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for _, c := range []struct{ dest, dir, want string }{
		{v.dest, full, "is not empty"}, {full, t.TempDir(), "there is no backup"},
	} {
		if _, err := sqlite.Restore(t.Context(), c.dest, c.dir, sqlite.RestoreOptions{Before: -1}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestBackupDamaged flips one bit in each file of a backup.
func TestBackupDamaged(t *testing.T) {
	v := newVault(t)
	v.create(tapedeck.Spec{ID: "a", Events: []tapedeck.Event{{Type: "session.created", Data: []byte(`{}`)}}})
	if err := os.WriteFile(filepath.Join(v.dir, "access.key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	v.backup(sqlite.BackupOptions{Files: []string{"access.key", "nothing"}})
	if b, err := os.ReadFile(filepath.Join(v.restored(sqlite.RestoreOptions{Files: true}).Dir(), "access.key")); string(b) != "secret" {
		t.Error(string(b), err)
	}
	files, _ := filepath.Glob(filepath.Join(v.dest, "*.db"))
	keys, _ := filepath.Glob(filepath.Join(v.dest, "files", "*"))
	if files = append(files, keys...); len(files) != 3 {
		t.Fatal(files)
	}
	for _, name := range files {
		good, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(good)
		bad[len(bad)/2] ^= 1
		for _, b := range [][]byte{bad, good[:len(good)-1]} {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if r, err := sqlite.CheckBackup(t.Context(), v.dest, nil); err != nil || len(r.Problems) == 0 || !strings.Contains(r.Problems[0], filepath.Base(name)) {
				t.Error(name, r.Problems, err)
			}
			if _, err := sqlite.Restore(t.Context(), v.dest, filepath.Join(t.TempDir(), "r"), sqlite.RestoreOptions{Before: -1}); err == nil || !strings.Contains(err.Error(), "is damaged") {
				t.Error("it was restored:", err)
			}
		}
		if err := os.WriteFile(name, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
