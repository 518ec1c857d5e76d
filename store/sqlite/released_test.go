package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/store/sqlite"
	"github.com/tapedeck/tapedeck/store/storetest"
)

var keep = flag.Bool("keep", false, "keep a data folder of the current schema in testdata/released; once for each schema, before its release")

// releasedSessions are in each kept folder.
var releasedSessions = []string{"talk", "fork", "stream/lines"}

// TestReleased opens a copy of a folder kept from each released schema: its tables are
// updated, it is sound, and it has the same events. testdata/released has the folders, as
// SQL, and what was in them.
func TestReleased(t *testing.T) {
	if *keep {
		keepFolder(t)
	}
	dumps, err := filepath.Glob("testdata/released/*.sql")
	if err != nil || len(dumps) == 0 {
		t.Fatal("no folder is kept", err)
	}
	newest := filepath.Join("testdata", "released", fmt.Sprintf("%04d.sql", sqlite.KnownVersion()))
	if !slices.Contains(dumps, newest) {
		t.Errorf("no folder of the current schema is kept; run: go test ./store/sqlite -run TestReleased -keep")
	}
	for _, dump := range dumps {
		t.Run(filepath.Base(dump), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			loadDump(t, dir, dump)
			s := open(t, dir, sqlite.Options{})
			r, err := s.Verify(t.Context(), nil)
			if err != nil || len(r.Problems) > 0 {
				t.Error(r.Problems, err)
			}
			want := map[string][]string{}
			b, err := os.ReadFile(strings.TrimSuffix(dump, ".sql") + ".json")
			if err != nil || json.Unmarshal(b, &want) != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, everything(t, s)); d != "" {
				t.Error(d)
			}
			if _, err := s.Append(t.Context(), tapedeck.Append{Session: "talk", Events: []tapedeck.Event{{Type: "session.renamed", Data: []byte(`{"title":"Later"}`)}}}); err != nil {
				t.Error("it cannot be written:", err)
			}
		})
	}
}

// everything returns the events of the kept sessions.
func everything(t *testing.T, s *sqlite.Store) map[string][]string {
	all := map[string][]string{}
	for _, id := range releasedSessions {
		all[id] = contents(t, s, id)
	}
	return all
}

// keepFolder creates the files of the current schema.
func keepFolder(t *testing.T) {
	dir, clock := filepath.Join(t.TempDir(), "data"), storetest.NewClock()
	s := open(t, dir, sqlite.Options{Now: clock.Now})
	event := func(kind, data string) tapedeck.Event {
		return tapedeck.Event{Type: kind, Invocation: "i", Data: []byte(data)}
	}
	for _, spec := range []tapedeck.Spec{
		{ID: "talk", Kind: tapedeck.KindSession, Events: []tapedeck.Event{
			{Type: "session.created", Data: []byte(`{"title":"A talk"}`)}, event("RUN_STARTED", `{"threadId":"main","runId":"i"}`),
			event("TEXT_MESSAGE_START", `{"messageId":"m","role":"assistant"}`), event("TEXT_MESSAGE_CONTENT", `{"messageId":"m","delta":"Grüße"}`),
		}},
		{ID: "fork", Kind: tapedeck.KindSession, Parent: "talk"},
		{ID: "stream/lines", Kind: tapedeck.KindStream, ContentType: "text/plain", Chunks: [][]byte{[]byte("one"), {}, {0, 1}}},
	} {
		if _, err := s.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	p := &tapedeck.Producer{ID: "p", Epoch: 1}
	if _, err := s.Append(t.Context(), tapedeck.Append{Session: "fork", Producer: p, Events: []tapedeck.Event{{Type: "message.added", Data: []byte(`{"message":{"id":"u","role":"user","content":"Hello"}}`)}}}); err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(everything(t, s), "", " ")
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	base := filepath.Join("testdata", "released", fmt.Sprintf("%04d", sqlite.KnownVersion()))
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{base + ".json": append(b, '\n'), base + ".sql": []byte(dump(t, dir))} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func connect(t *testing.T, dir string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "tapedeck.db"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// dump returns the statements that create the database of a folder, one a line of JSON.
func dump(t *testing.T, dir string) string {
	db := connect(t, dir)
	rows := func(query string) (all []string) {
		r, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		for r.Next() {
			var s string
			if err := r.Scan(&s); err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	out := rows(`SELECT 'PRAGMA application_id = ' || application_id FROM pragma_application_id`)
	out = append(out, rows(`SELECT sql FROM sqlite_schema WHERE sql <> '' AND name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY type = 'table' DESC, rowid`)...)
	for _, table := range rows(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_stat1'`) {
		columns := rows(`SELECT name FROM pragma_table_info('` + table + `')`)
		out = append(out, rows(`SELECT 'INSERT INTO `+table+` VALUES (' || quote("`+strings.Join(columns, `") || ', ' || quote("`)+`") || ')' FROM `+table)...)
	}
	var b strings.Builder
	for _, s := range out {
		line, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// loadDump creates a folder from a dump.
func loadDump(t *testing.T, dir, dump string) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	db := connect(t, dir)
	for line := range strings.Lines(string(b)) {
		var statement string
		if err := json.Unmarshal([]byte(line), &statement); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDevelopmentBuild opens databases that builds from before the first release have
// written. They are named as such, and stay as they are.
func TestDevelopmentBuild(t *testing.T) {
	const app = `PRAGMA application_id = 1414546507;`
	for name, statements := range map[string]string{
		"without migrations": app + `CREATE TABLE sessions (gen INTEGER PRIMARY KEY, id TEXT); CREATE TABLE events (session, offset, event)`,
		"other columns":      app + `CREATE TABLE migrations (version_id INTEGER, is_applied INTEGER); INSERT INTO migrations VALUES (0, 1), (1, 1), (2, 1); CREATE TABLE sessions (gen INTEGER PRIMARY KEY, id TEXT); CREATE TABLE heads (x); CREATE TABLE events (x); CREATE TABLE places (x); CREATE TABLE facts (x)`,
		"fewer tables":       app + `CREATE TABLE migrations (version_id INTEGER, is_applied INTEGER); INSERT INTO migrations VALUES (0, 1), (1, 1); CREATE TABLE sessions (gen INTEGER PRIMARY KEY, id TEXT); CREATE TABLE events (x)`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := connect(t, dir)
			if _, err := db.Exec(statements); err != nil {
				t.Fatal(err)
			}
			_ = db.Close()
			before, _ := os.ReadFile(filepath.Join(dir, "tapedeck.db"))
			_, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
			if tapedeck.KindOf(err) != tapedeck.Conflict || !strings.Contains(err.Error(), "was written by a development build") {
				t.Error(err)
			}
			_, err = sqlite.Backup(t.Context(), dir, filepath.Join(t.TempDir(), "b"), sqlite.BackupOptions{})
			if err == nil || !strings.Contains(err.Error(), "was written by a development build") {
				t.Error("backup:", err)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, "tapedeck.db")); string(after) != string(before) {
				t.Error("the database has changed")
			}
		})
	}
}

// TestColumnsOf compares the columns that a folder must have with those that the migrations
// create.
func TestColumnsOf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := open(t, dir, sqlite.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := connect(t, dir).Query(`SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name <> 'migrations' AND t.name NOT LIKE 'sqlite^_%' ESCAPE '^'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		found = append(found, column)
	}
	known := sqlite.ColumnsOf(sqlite.KnownVersion())
	slices.Sort(found)
	slices.Sort(known)
	if d := cmp.Diff(found, known); d != "" || rows.Err() != nil {
		t.Error("(-created +known)", d, rows.Err())
	}
}
