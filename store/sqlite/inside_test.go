package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck/tapedeck"
)

func TestMigrationNames(t *testing.T) {
	// A released migration must keep its name and its text. Migrations of other
	// databases have the same names.
	want := []string{"migration/0001_log.sql", "migration/0002_subscriptions.sql", "migration/0003_push_configs.sql", "migration/0004_workflows.sql", "migration/0005_inputs.sql", "migration/0006_waiting.sql", "migration/0007_sort.sql", "migration/0008_spending.sql", "migration/0009_sums.sql", "migration/0010_keys.sql", "migration/0011_address.sql", "migration/0012_words.sql"}
	got, err := fs.Glob(migrations, "migration/*")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestPragmas asks every connection for its settings.
func TestPragmas(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{Readers: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	common := map[string]int64{"synchronous": 2, "busy_timeout": 10000, "mmap_size": 0, "trusted_schema": 0, "page_size": 4096, "application_id": applicationID}
	check := func(name string, c *conn, more map[string]int64) {
		t.Helper()
		mode := ""
		_ = c.query(func(row []driver.Value) error { mode = text(row[0]); return nil }, "PRAGMA journal_mode")
		if mode != "wal" {
			t.Errorf("%s: the journal mode is %q", name, mode)
		}
		for _, pragmas := range []map[string]int64{common, more} {
			for pragma, want := range pragmas {
				if got, err := c.number("PRAGMA " + pragma); err != nil || got != want {
					t.Errorf("%s: %s is %d, want %d (%v)", name, pragma, got, want, err)
				}
			}
		}
	}
	writer := map[string]int64{"query_only": 0, "wal_autocheckpoint": 0, "fullfsync": 1, "checkpoint_fullfsync": 1, "journal_size_limit": 64 << 20, "secure_delete": 1}
	check("writer", s.writer.conn, writer)
	var lent []*conn
	for i := range 3 {
		c := <-s.readers.free
		lent = append(lent, c)
		check(fmt.Sprint("reader ", i), c, map[string]int64{"query_only": 1})
	}
	for _, c := range lent {
		s.readers.free <- c
	}
}

// TestWriterReconnects: after a failed commit the writer has another connection with
// the same settings.
func TestWriterReconnects(t *testing.T) {
	fail := false
	s, err := Open(t.Context(), t.TempDir(), Options{Commit: func(commit func() error) error {
		if fail {
			return fmt.Errorf("the commit fails")
		}
		return commit()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := s.writer.conn
	fail = true
	if err := s.writer.submit(context.Background(), ending{}, 0); err == nil {
		t.Error("the commit did not fail")
	}
	fail = false
	if err := s.writer.submit(context.Background(), ending{}, 0); err != nil {
		t.Error(err)
	}
	if s.writer.conn == before {
		t.Error("the connection is the one of the failed commit")
	}
	if n, err := s.writer.conn.number("PRAGMA synchronous"); err != nil || n != 2 {
		t.Errorf("synchronous is %d (%v)", n, err)
	}
}

func TestReadersCannotWrite(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, statement := range []string{
		"DELETE FROM events", "INSERT INTO purges VALUES (1)", "CREATE TABLE x (y)", "PRAGMA application_id = 7",
		"PRAGMA query_only = 0; DELETE FROM facts", // without query_only the file is still open only for reading
	} {
		_ = s.readers.use(t.Context(), func(c *conn) error {
			if err := c.exec(statement); err == nil {
				t.Errorf("%s: it worked", statement)
			}
			return nil
		})
	}
	if n, err := s.writer.conn.number("SELECT count(*) FROM facts"); err != nil || n != 3 {
		t.Errorf("%d facts are left (%v)", n, err)
	}
}

// TestLogIsStartedOver appends while there is always a reader.
func TestLogIsStartedOver(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const limit = 4 << 20
	s.writer.maxLog = limit // before the writer has anything to do
	ctx := context.Background()
	if _, err := s.Create(ctx, tapedeck.Spec{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = s.Read(ctx, "a", tapedeck.Range{From: -1, Reverse: true})
				}
			}
		})
	}
	data, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", 100_000)})
	size := int64(0)
	for range 200 {
		if _, err := s.Append(ctx, tapedeck.Append{Session: "a", Events: []tapedeck.Event{{Type: "CUSTOM", Data: data}}}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(s.file + "-wal"); err == nil {
			size = max(size, info.Size())
		}
	}
	close(stop)
	wg.Wait()
	if size > 3*limit {
		t.Errorf("the log became %d bytes long, of %d written", size, 200*100_000)
	}
}
