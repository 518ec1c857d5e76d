package engine_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
	"github.com/tapedeck/tapedeck/engine"
)

// shelf has the folders of sessions.
type shelf struct {
	there, removed []string
	fails          bool
}

func (s *shelf) folder(session, _ string) (string, error) {
	if !slices.Contains(s.there, session) {
		s.there = append(s.there, session)
	}
	return "/work/" + session, nil
}

func (s *shelf) discard(session string) (func() error, error) {
	if s.fails {
		return nil, errors.New("the disk is read only")
	}
	s.there = slices.DeleteFunc(s.there, func(id string) bool { return id == session })
	return func() error { s.removed = append(s.removed, session); return errors.New("a file cannot be removed") }, nil
}

func TestDiscard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shelf
		w := newWorld(t, silent, func(o *engine.Options) {
			o.Agents[0].Folder, o.Discard = s.folder, s.discard
		})
		w.create("s")
		w.turn("s", "bot", "")
		w.must(w.Delete(t.Context(), "s")) // that a file stays does not keep the session
		if len(s.there) != 0 || !slices.Equal(s.removed, []string{"s"}) {
			t.Errorf("there are %q, removed were %q", s.there, s.removed)
		}

		w.create("held")
		w.turn("held", "bot", "")
		_, err := w.Fork(t.Context(), api.Fork{ID: "fork", Parent: "held"})
		w.must(err)
		w.must(w.Delete(t.Context(), "held"))
		if !slices.Equal(s.there, []string{"held"}) {
			t.Errorf("there are %q: a fork needs the events of that session", s.there)
		}
		s.fails = true
		w.must(w.Delete(t.Context(), "fork"))
		refuses(t, w.Delete(t.Context(), "fork"), tapedeck.NotFound, "no session")
	})
}

// If the first task cannot start, its session and the folder are deleted again.
func TestDiscardOfWhatDidNotBegin(t *testing.T) {
	var s shelf
	w := newWorld(t, silent, func(o *engine.Options) {
		o.Agents[0].Folder, o.Discard = s.folder, s.discard
		o.Agents[0].Folder = func(session, _ string) (string, error) {
			_, _ = s.folder(session, "")
			return "", errors.New("it cannot be furnished")
		}
	})
	if _, err := w.Start(t.Context(), api.Task{Text: "go"}); err == nil || len(s.there) != 0 || len(s.removed) != 1 {
		t.Errorf("%v: there are %q, removed were %q", err, s.there, s.removed)
	}
}

// A session that is created with the id of one that is being deleted, and gets a
// task, must not get the old folder.
func TestDiscardMeetsStart(t *testing.T) {
	var s shelf
	var discarding atomic.Bool
	started := make(chan error)
	var w *world
	w = newWorld(t, silent, func(o *engine.Options) {
		o.Agents[0].Folder = func(session, _ string) (string, error) {
			if discarding.Load() {
				t.Error("the folder is that of the session that was deleted")
			}
			return s.folder(session, "")
		}
		o.Discard = func(session string) (func() error, error) {
			discarding.Store(true)
			defer discarding.Store(false)
			w.create(session)
			go func() {
				_, err := w.Start(context.Background(), api.Task{Session: session, Text: "go"})
				started <- err
			}()
			for range 1000 {
				runtime.Gosched() // give the run every chance to get on
			}
			return s.discard(session)
		}
	})
	w.create("s")
	w.must(w.Delete(t.Context(), "s"))
	w.must(<-started)
	if !slices.Equal(s.there, []string{"s"}) {
		t.Errorf("there are %q", s.there)
	}
}
