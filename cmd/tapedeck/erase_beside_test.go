package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/search"
	"github.com/tapedeck/tapedeck/view"
)

// TestEraseBesideDelete erases a session while one of its forks, or the session
// itself, is deleted. If the erasure is acknowledged, no file has the text. If it is
// reported as unfinished, soon no file has the text.
func TestEraseBesideDelete(t *testing.T) {
	dir := t.TempDir()
	a, err := openApp(t.Context(), appOptions{dir: dir, anyHost: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.close() }()
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	erased := 0
	for i := range rounds {
		mark := fmt.Sprintf("xyzzy%03d", i)
		parent, fork := fmt.Sprint("s", i), fmt.Sprint("f", i)
		forked(t, a, parent, fork, mark)
		gone := []string{fork, fork, parent}[i%3]
		var deleting sync.WaitGroup
		deleting.Go(func() {
			if i%2 == 0 { // between the commit of the erasure and the cleaning
				awaitHead(t, a, parent, 102)
			}
			if err := a.Session(gone).Delete(context.Background()); err != nil {
				t.Error(err)
			}
		})
		_, err := a.Session(parent).Erase(t.Context(), api.Erase{All: true})
		copies := marked(t, dir, mark)
		deleting.Wait()
		switch tapedeck.KindOf(err) {
		case "":
			if erased++; copies > 0 {
				t.Fatalf("round %d: the erasure of %s beside the delete of %s is acknowledged, and the text is there %d times", i, parent, gone, copies)
			}
		case tapedeck.Unavailable:
			awaitUnmarked(t, dir, mark)
		case tapedeck.NotFound, tapedeck.Gone:
		default:
			t.Fatal(err)
		}
	}
	if erased < rounds/3 {
		t.Errorf("%d of %d erasures were acknowledged; the test proves little", erased, rounds)
	}
}

// forked creates a session that contains a word many times, and a fork. It then loads
// their views and lets the index catch up.
func forked(t *testing.T, a *app, parent, fork, word string) {
	t.Helper()
	ctx := t.Context()
	if _, err := a.Create(ctx, api.NewSession{ID: parent}); err != nil {
		t.Fatal(err)
	}
	events := make([]tapedeck.Event, 100)
	for i := range events {
		events[i] = payload.NewEvent(payload.MessageAdded{Message: payload.NewMessage(tapedeck.NewID("msg_"), payload.RoleUser, "about "+word)})
	}
	if _, err := a.Append(ctx, tapedeck.Append{Session: parent, Events: events}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Session(parent).Fork(ctx, api.Fork{ID: fork}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{parent, fork} {
		if _, err := a.Session(id).Snapshot(ctx, view.Query{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Search(ctx, search.Query{Text: word}); err != nil {
		t.Fatal(err)
	}
}

// marked counts a mark in the files below a folder.
func marked(t *testing.T, dir, mark string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "-shm") { // closing that would drop the locks of this process
			return err
		}
		b, err := os.ReadFile(path)
		n += strings.Count(string(b), mark)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func awaitHead(t *testing.T, a *app, session string, head int64) {
	for {
		s, err := a.Session(session).Info(context.Background())
		if err != nil {
			t.Error(err)
		}
		if err != nil || s.Head >= head {
			return
		}
		runtime.Gosched()
	}
}

func awaitUnmarked(t *testing.T, dir, mark string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); marked(t, dir, mark) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%s is in the files %d times, a minute after its erasure", mark, marked(t, dir, mark))
		}
		<-time.After(20 * time.Millisecond)
	}
}
