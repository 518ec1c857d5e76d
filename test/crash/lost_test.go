package crash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/client"
	"github.com/tapedeck/tapedeck/internal/testserver"
)

// TestLostFolderEndsTheServer: the server prints an error and ends when its data folder
// is moved away. It does not touch a new folder in its place. The moved folder has all
// acknowledged events.
func TestLostFolderEndsTheServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	away := data + ".away"
	s := testserver.Start(t, data)
	c, err := client.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), api.NewSession{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	head := int64(1)
	for i := 0; err == nil; i++ {
		if i == 20 {
			if err := os.Rename(data, away); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(data, os.DirFS(away)); err != nil {
				t.Fatal(err)
			}
		}
		var done tapedeck.Appended
		if done, err = c.Append(t.Context(), "s", strings.NewReader(`{"type":"test.note"}`), client.AppendOptions{}); err == nil {
			head = done.Next
		}
	}
	if code := s.Ended(t); code != 1 || !strings.Contains(s.Log(), "the data folder "+data+" was deleted, moved or replaced") {
		t.Errorf("it ended with %d and printed\n%s", code, s.Log())
	}
	if _, err := os.Stat(filepath.Join(data, "server.json")); err != nil {
		t.Errorf("it has changed the other folder: %v", err)
	}
	s = testserver.Start(t, away)
	if c, err = client.New(s.URL); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Page(t.Context(), "s", client.PageOptions{}); err != nil || p.Head < head {
		t.Errorf("%d events were acknowledged, %d exist, %v", head, p.Head, err)
	}
}
