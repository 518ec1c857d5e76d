package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/tapedeck/tapedeck/store/sqlite"
)

// TestFolderWithoutSubscriptions opens a folder of a Tapedeck that had no subscriptions,
// no push notification configs, and no inputs, questions and orders in its catalogue.
func TestFolderWithoutSubscriptions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, sqlite.Options{})
	create(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"activity", "title_key", "tokens", "cost", "duration", "failures"} {
		tamper(t, filepath.Join(dir, "tapedeck.db"), "DROP INDEX sessions_by_"+column)
		tamper(t, filepath.Join(dir, "tapedeck.db"), "ALTER TABLE sessions DROP COLUMN "+column)
	}
	for _, column := range []string{"active", "totals_at", "totals"} {
		tamper(t, filepath.Join(dir, "tapedeck.db"), "ALTER TABLE sessions DROP COLUMN "+column)
	}
	for _, statement := range []string{"DROP INDEX sessions_encrypted", "ALTER TABLE sessions DROP COLUMN key", "ALTER TABLE sessions DROP COLUMN sealed", "ALTER TABLE sessions DROP COLUMN sealed_totals", "ALTER TABLE purges DROP COLUMN key", "ALTER TABLE events DROP COLUMN sum", "ALTER TABLE heads DROP COLUMN link", "DROP TABLE spending", "ALTER TABLE sessions DROP COLUMN spent", "ALTER TABLE sessions DROP COLUMN budget", "DROP INDEX sessions_asking", "ALTER TABLE sessions DROP COLUMN waiting", "DROP INDEX sessions_waiting", "ALTER TABLE sessions DROP COLUMN inputs", "DROP TABLE subscriptions", "DROP TABLE acks", "DROP TABLE push_configs", "DROP TABLE workflows", "DELETE FROM migrations WHERE version_id > 1"} {
		tamper(t, filepath.Join(dir, "tapedeck.db"), statement)
	}
	s = open(t, dir, sqlite.Options{})
	head, err := s.Head(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Subscriptions().Put(t.Context(), "s", []byte("{}"), map[int64]int64{head.Gen: head.Head}); err != nil {
		t.Fatal(err)
	}
	if at, ok, err := s.Subscriptions().Acked(t.Context(), "s", head.Gen); at != head.Head || !ok || err != nil {
		t.Errorf("got %d, %t, %v", at, ok, err)
	}
}
