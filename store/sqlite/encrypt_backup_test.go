package sqlite_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/sessionkeys"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/store/sqlite"
)

// canary is what no file of an encrypted folder may have.
const canary = "kanarienvogel"

// plant creates a session, a stream, a checkpoint and a fork, with the canary in each kind of
// content that a store has.
func plant(t *testing.T, s *sqlite.Store, x *sqlite.Index, id string) {
	t.Helper()
	ctx := t.Context()
	say := func(typ, data string) tapedeck.Event {
		return tapedeck.Event{Type: typ, Data: json.RawMessage(strings.ReplaceAll(data, "CANARY", canary)), Invocation: "inv_1"}
	}
	made, err := s.Create(ctx, tapedeck.Spec{ID: id, Events: []tapedeck.Event{
		say(tapedeck.SessionCreated, `{"title":"Title CANARY","labels":{"topic":"CANARY"}}`),
		say(tapedeck.MessageAdded, `{"message":{"id":"m1","role":"user","content":"hello CANARY"}}`),
		say(tapedeck.RunStarted, `{"threadId":"main","runId":"inv_1"}`),
		say(tapedeck.PermissionRequested, `{"request_id":"q1","title":"May I CANARY?","options":[{"option_id":"yes","name":"Yes CANARY","kind":"allow_once"}]}`),
		say("input.queued", `{"input_id":"in_1","text":"later CANARY","message":{"id":"m2","role":"user","content":"later CANARY"}}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	made.Session.Totals = tapedeck.Totals{At: 3, Row: []byte(`{"last":"` + canary + `"}`)}
	if err := s.SaveTotals(ctx, []tapedeck.Session{made.Session}); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []tapedeck.Spec{
		{ID: "stream/" + id, Kind: tapedeck.KindStream, ContentType: "text/plain", Chunks: [][]byte{[]byte("stream " + canary)}},
		{ID: viewOf(id, made.Session.Gen), Kind: tapedeck.KindView, Chunks: [][]byte{[]byte("view " + canary)}},
		{ID: id + "-fork", Parent: id, Events: []tapedeck.Event{say(tapedeck.SessionForked, `{"title":"Fork CANARY"}`)}},
	} {
		if _, err := s.Create(ctx, spec); err != nil {
			t.Fatal(err)
		}
	}
	err = x.Index(ctx, search.Batch{Session: id, Gen: made.Session.Gen, Seen: made.Session.Head, Documents: []search.Document{
		{Kind: search.DocTitle, Text: "Title " + canary}, {Offset: 1, Kind: "message", Role: "user", Text: "hello " + canary},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func viewOf(id string, gen int64) string {
	return "view/fold/" + id + "/" + string(json.Number(jsonNumber(gen))) + "/standing.1/3"
}

func jsonNumber(n int64) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// filesWith returns the files below folders that have the canary.
func filesWith(t *testing.T, folders ...string) (found []string) {
	t.Helper()
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(bytes.ToLower(b), []byte(canary)) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// allOf returns all that can be read of a store, as text.
func allOf(t *testing.T, s *sqlite.Store) string {
	t.Helper()
	var out strings.Builder
	for _, kind := range []tapedeck.SessionKind{tapedeck.KindSession, tapedeck.KindStream} {
		page, err := s.List(t.Context(), tapedeck.Filter{Kind: kind, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Sessions {
			v := &page.Sessions[i]
			b, _ := json.Marshal(v)
			out.WriteString(string(b) + string(v.Totals.Row) + "\n")
			events, err := s.Read(t.Context(), v.ID, tapedeck.Range{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range events.Records {
				out.WriteString(string(r.Data) + "\n")
			}
		}
	}
	return out.String()
}

// TestEncryptedFolder plants a canary in every kind of content, in a folder with encryption
// and in one without. No file of the first has it, also while it is open; both give the same
// answers.
func TestEncryptedFolder(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var answers []string
	for _, key := range [][]byte{nil, masterKey} {
		dir := t.TempDir()
		o := sqlite.Options{Key: key, Now: func() time.Time { return now }}
		s := open(t, dir, o)
		plant(t, s, openIndex(t, s), "a")
		if found := filesWith(t, dir); (len(found) == 0) != (key != nil) {
			t.Errorf("with the key %v, these files of the open folder have the canary: %v", key, found)
		}
		hits, err := openIndex(t, s).Search(t.Context(), search.Query{Text: canary, Limit: 10})
		if err != nil || len(hits.Hits) != 2 {
			t.Errorf("search: %v, %v", hits, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if found := filesWith(t, dir); key != nil && len(found) > 0 {
			t.Errorf("these files of the closed folder have the canary: %v", found)
		}
		s = open(t, dir, o)
		answers = append(answers, allOf(t, s))
		page, err := s.Read(t.Context(), viewOf("a", 1), tapedeck.Range{})
		if err != nil || string(page.Records[0].Data) != "view "+canary {
			t.Error("the checkpoint:", page, err)
		}
		report, err := s.Verify(t.Context(), nil)
		if err != nil || len(report.Problems) > 0 || report.Encrypted > 0 {
			t.Error(report, err)
		}
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], canary) {
		t.Errorf("without encryption:\n%s\nwith it:\n%s", answers[0], answers[1])
	}
}

// TestDeletedInEveryBackup: a session is backed up and then deleted. Its key is not in the
// folder any more, and a restore of the older backup with the keys of today does not bring
// the session back. Other sessions are there as before.
func TestDeletedInEveryBackup(t *testing.T) {
	dir, backup, restored := t.TempDir(), filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	s := open(t, dir, sqlite.Options{Key: masterKey})
	x := openIndex(t, s)
	plant(t, s, x, "a")
	plant(t, s, x, "b")
	before := allOf(t, s)
	keysBefore, err := os.ReadFile(filepath.Join(dir, sessionkeys.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Backup(t.Context(), dir, backup, sqlite.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a"); err != nil { // its fork still needs its key
		t.Fatal(err)
	}
	if page, err := s.Read(t.Context(), "a-fork", tapedeck.Range{}); err != nil || len(page.Records) != 6 {
		t.Fatal("the fork of a deleted session:", page, err)
	}
	for _, id := range []string{"a-fork", "stream/a"} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := os.ReadFile(filepath.Join(dir, sessionkeys.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if erased := slotsThatDiffer(keysBefore, keys); erased != 3 {
		t.Errorf("%d keys were erased, want those of the session, its fork and its stream", erased)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []sqlite.RestoreOptions{{Session: "b", Before: 2}, {At: time.Now().Add(-time.Minute), Before: -1}} {
		to := filepath.Join(t.TempDir(), "cut")
		if _, err := sqlite.Restore(t.Context(), backup, to, o); tapedeck.KindOf(err) != tapedeck.Conflict || !strings.Contains(err.Error(), "encrypted sessions") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := sqlite.Restore(t.Context(), backup, restored, sqlite.RestoreOptions{Before: -1}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(restored, sessionkeys.FileName), keys, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, restored, backup, dir); len(found) > 0 {
		t.Error("these files have the canary:", found)
	}
	s = open(t, restored, sqlite.Options{Key: masterKey})
	after := allOf(t, s)
	if strings.Contains(after, `"id":"a"`) || !strings.Contains(after, `"id":"b"`) || !strings.Contains(before, `"id":"a"`) {
		t.Errorf("the restored folder has:\n%s", after)
	}
	for _, id := range []string{"a", "a-fork", "stream/a"} {
		if _, err := s.Head(t.Context(), id); tapedeck.KindOf(err) != tapedeck.NotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 {
		t.Error(report, err)
	}
}

// slotsThatDiffer counts the slots in which two files of keys differ.
func slotsThatDiffer(a, b []byte) (n int) {
	const size = 80
	left, right := slices.Collect(slices.Chunk(a, size)), slices.Collect(slices.Chunk(b, size))
	for i := range min(len(left), len(right)) {
		if !bytes.Equal(left[i], right[i]) {
			n++
		}
	}
	return n
}

// TestWithoutKey: without the key, with a wrong one, and without the file of keys, a folder
// is refused and nothing in it changes. To verify it needs no key.
func TestWithoutKey(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{Key: masterKey})
	plant(t, s, openIndex(t, s), "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, sessionkeys.FileName)
	refused := func(what string, key []byte, kind tapedeck.Kind, words string) {
		t.Helper()
		before, _ := os.ReadFile(filepath.Join(dir, "tapedeck.db"))
		s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Key: key})
		if err == nil {
			_ = s.Close()
		}
		if tapedeck.KindOf(err) != kind || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", what, err)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, "tapedeck.db")); !bytes.Equal(before, after) {
			t.Errorf("%s: the database has changed", what)
		}
	}
	refused("no key", nil, tapedeck.Forbidden, "encrypted, and no key was given")
	refused("a wrong key", bytes.Repeat([]byte{8}, 32), tapedeck.Forbidden, "is not the encryption key")
	refused("half a key", masterKey[:16], tapedeck.Invalid, "32 random bytes")
	s = open(t, dir, sqlite.Options{WithoutKeys: true})
	report, err := s.Verify(t.Context(), nil)
	if err != nil || len(report.Problems) > 0 || report.Encrypted == 0 {
		t.Error(report, err)
	}
	if _, err := s.Read(t.Context(), "a", tapedeck.Range{}); err == nil {
		t.Error("events were read without the key")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.OpenSource(t.Context(), dir); tapedeck.KindOf(err) != tapedeck.Conflict || !strings.Contains(err.Error(), "encrypted") {
		t.Error("a copy to PostgreSQL:", err)
	}
	if err := os.Rename(keys, keys+".away"); err != nil {
		t.Fatal(err)
	}
	refused("no file of keys", masterKey, tapedeck.Conflict, "keys are not there")
	refused("neither", nil, tapedeck.Forbidden, "no key was given")
	other := t.TempDir()
	o := open(t, other, sqlite.Options{Key: masterKey})
	_ = o.Close()
	b, err := os.ReadFile(filepath.Join(other, sessionkeys.FileName))
	if err == nil {
		err = os.WriteFile(keys, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused("the keys of another folder", masterKey, tapedeck.Conflict, "does not have the keys of")
}

// TestSalvageEncrypted: a damaged folder is salvaged with its key, and the result is
// encrypted.
func TestSalvageEncrypted(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "salvaged")
	s := open(t, dir, sqlite.Options{Key: masterKey})
	plant(t, s, openIndex(t, s), "a")
	want := len(allOf(t, s))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Salvage(t.Context(), dir, to, nil); tapedeck.KindOf(err) != tapedeck.Forbidden {
		t.Error("without the key:", err)
	}
	got, err := sqlite.Salvage(t.Context(), dir, to, masterKey)
	if err != nil || got.Sessions != 2 || got.Streams != 1 || got.Whole != 3 {
		t.Fatal(got, err)
	}
	if found := filesWith(t, to); len(found) > 0 {
		t.Error("these files have the canary:", found)
	}
	s = open(t, to, sqlite.Options{Key: masterKey})
	if have := allOf(t, s); !strings.Contains(have, canary) || len(have) < want/2 {
		t.Error(have)
	}
}

// TestExchangedEvents: the bytes of an encrypted event at the place of another one, with a
// checksum that fits, are not served.
func TestExchangedEvents(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{Key: masterKey})
	for _, id := range []string{"a", "b"} {
		if _, err := s.Create(t.Context(), tapedeck.Spec{ID: id, Events: []tapedeck.Event{{Type: tapedeck.SessionCreated}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tamper(t, filepath.Join(dir, "tapedeck.db"), "UPDATE events SET sum = NULL, event = (SELECT event FROM events WHERE pos = 2) WHERE pos = 1")
	s = open(t, dir, sqlite.Options{Key: masterKey})
	if page, err := s.Read(t.Context(), "a", tapedeck.Range{}); tapedeck.KindOf(err) != tapedeck.Internal {
		t.Error(page, err)
	}
	report, err := s.Verify(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(report.Problems, func(p string) bool { return strings.Contains(p, "cannot be decrypted") }) {
		t.Error(report, err)
	}
}

// TestKeyErasedLater: if the process dies after the commit of a delete and before the key is
// erased, the key is erased when the folder is opened.
func TestKeyErasedLater(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{Key: masterKey})
	plant(t, s, openIndex(t, s), "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"INSERT INTO purges (session, key) SELECT gen, key FROM sessions WHERE id = 'stream/a'", "DELETE FROM sessions WHERE id = 'stream/a'",
	} {
		tamper(t, filepath.Join(dir, "tapedeck.db"), statement) // what the commit has done
	}
	path := filepath.Join(dir, sessionkeys.FileName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, sqlite.Options{Key: masterKey})
	if err := s.Delete(t.Context(), "a-fork"); err != nil { // a write, after which pending keys are erased
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if n := slotsThatDiffer(before, after); n != 2 || err != nil {
		t.Errorf("%d keys were erased, want that of the stream and of the fork; %v", n, err)
	}
}
