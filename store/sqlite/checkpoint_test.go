package sqlite

import (
	"bytes"
	"testing"

	"github.com/tapedeck/tapedeck"
)

// TestTheLogBeginsAgain: the pages of a long write-ahead log are moved while the writer
// continues. The writer moves the rest, and the log begins again at its start.
func TestTheLogBeginsAgain(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	add := func(size int) (frames int64) {
		t.Helper()
		data := append(append([]byte(`{"a":"`), bytes.Repeat([]byte("a"), size)...), `"}`...)
		if _, err := s.Append(t.Context(), tapedeck.Append{Session: "s", Events: []tapedeck.Event{{Type: "test", Data: data}}}); err != nil {
			t.Fatal(err)
		}
		s.writer.writing.Lock() // the writer has looked at the log
		defer s.writer.writing.Unlock()
		s.checkpoints.running.Wait()
		if frames, err = s.writer.conn.committed(); err != nil {
			t.Fatal(err)
		}
		return frames
	}
	if _, err := s.Create(t.Context(), tapedeck.Spec{ID: "s", Kind: tapedeck.KindSession}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		reader := <-s.readers.free // while it reads, later pages stay in the log, as do those of commits during the move
		for _, sql := range []string{"BEGIN", "SELECT count(*) FROM sessions"} {
			if err := reader.exec(sql); err != nil {
				t.Fatal(err)
			}
		}
		frames := add(5 << 20)
		if err := reader.exec("COMMIT"); err != nil {
			t.Fatal(err)
		}
		s.readers.free <- reader
		if frames < fullLog {
			t.Fatalf("the log has %d pages, the test needs %d", frames, fullLog)
		}
		if got := s.checkpoints.state.Load(); got != checkpointMoved {
			t.Fatalf("the state is %d: the pages were not moved", got)
		}
		add(1)
		if frames := add(1); frames > 100 {
			t.Errorf("the log has %d pages: it has not begun again at its start", frames)
		}
	}
}

// TestManySmallGroupsFillTheLog: the writer also looks at the log after many small groups.
func TestManySmallGroupsFillTheLog(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.writer.writing.Lock()
	defer s.writer.writing.Unlock()
	for _, sql := range []string{"CREATE TABLE filler (b)", "INSERT INTO filler VALUES (zeroblob(5000000))"} {
		if err := s.writer.conn.exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; s.checkpoints.state.Load() == checkpointIdle; n++ {
		if n > lookGroups {
			t.Fatalf("after %d groups the pages are not being moved", n)
		}
		s.writer.checkpoint(1)
	}
}
