package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A journal lists the sessions that an import creates. It is written before the first
// of them, and deleting it completes the import. While it exists, a failed import
// deletes the sessions; so does the engine at its next start if the process died.
//
// Each of the sessions names the journal as its [tapedeck.Session.Origin]. The id
// alone is not enough: a session with that id may have existed before.
type journal struct {
	engine  *Engine
	id      string
	exists  bool
	made    []string // sessions that may exist
	unused  []string // ids in the journal that no session has yet
	written int      // how often it was written
}

const (
	journalPrefix = tapedeck.ViewPrefix + "import/"
	journalBatch  = 64 // ids that are listed ahead, to save a commit for each of many small sessions
)

func newJournal(e *Engine) *journal {
	return &journal{engine: e, id: journalPrefix + e.id + "/" + tapedeck.NewID("imp_")}
}

// newID returns a new id that the journal lists.
func (j *journal) newID(ctx context.Context) (string, error) {
	if len(j.unused) == 0 {
		n := journalBatch
		if j.written == 0 {
			n = 1 // most imports create one session
		}
		for range n {
			j.unused = append(j.unused, tapedeck.NewID("ses_"))
		}
		if err := j.write(ctx, j.unused...); err != nil {
			return "", err
		}
	}
	id := j.unused[0]
	j.unused = j.unused[1:]
	return id, nil
}

// write adds ids to the journal, durably.
func (j *journal) write(ctx context.Context, ids ...string) error {
	chunk := []byte(strings.Join(ids, "\n"))
	j.written++
	if j.exists {
		_, err := j.engine.store.Append(ctx, tapedeck.Append{Session: j.id, Chunks: [][]byte{chunk}})
		return err
	}
	j.exists = true // also after an error, because it may have been written
	_, err := j.engine.store.Create(ctx, tapedeck.Spec{
		ID: j.id, Kind: tapedeck.KindView, ContentType: "text/plain", Chunks: [][]byte{chunk},
	})
	return err
}

// createNew creates a session under a new id.
func (j *journal) createNew(ctx context.Context, first tapedeck.Event) (string, error) {
	id, err := j.newID(ctx)
	if err != nil {
		return "", err
	}
	_, err = j.createSession(ctx, id, first)
	return id, err
}

// create creates a session with an id. It reports false if the id is taken, also by a
// deleted session that forks need.
func (j *journal) create(ctx context.Context, id string, first tapedeck.Event) (bool, error) {
	if err := j.write(ctx, id); err != nil {
		return false, err
	}
	made, err := j.createSession(ctx, id, first)
	if tapedeck.KindOf(err) == tapedeck.Conflict {
		return false, nil
	}
	return made, err
}

func (j *journal) createSession(ctx context.Context, id string, first tapedeck.Event) (bool, error) {
	j.made = append(j.made, id) // before the commit, which may succeed although it reports an error
	done, err := j.engine.store.Create(ctx, tapedeck.Spec{
		ID: id, Kind: tapedeck.KindSession, Events: []tapedeck.Event{first}, Origin: j.id,
	})
	return done.New, err
}

// complete deletes the journal and so completes the import.
func (j *journal) complete(ctx context.Context) error {
	if !j.exists {
		return nil
	}
	return j.engine.store.Delete(ctx, j.id)
}

// undo deletes the created sessions, also if the user who imports may no longer do anything. If that
// fails, the next start of the engine does it.
func (j *journal) undo() {
	if !j.exists {
		return
	}
	err := j.engine.undoImport(context.Background(), j.id, j.made)
	if err != nil {
		j.engine.options.Logger.Error("sessions of a failed import could not be deleted; the next start will", "error", err)
	}
}

// undoImport deletes the sessions of an import, and then its journal.
func (e *Engine) undoImport(ctx context.Context, journal string, sessions []string) error {
	var failed error
	for _, id := range sessions {
		err := e.Delete(tapedeck.OnlyIf(ctx, ofImport(journal)), id)
		if err != nil && !absent(err) {
			failed = errors.Join(failed, fmt.Errorf("session %s: %w", id, err))
		}
	}
	if failed != nil {
		return failed
	}
	if err := e.store.Delete(ctx, journal); !absent(err) {
		return err
	}
	return nil
}

func absent(err error) bool {
	k := tapedeck.KindOf(err)
	return k == tapedeck.NotFound || k == tapedeck.Gone
}

// undoImports deletes the sessions of imports that an earlier process did not
// complete.
func (e *Engine) undoImports(ctx context.Context) error {
	var failed error
	for cursor := ""; ; {
		page, err := e.store.List(ctx, tapedeck.Filter{Kind: tapedeck.KindView, Query: journalPrefix, Cursor: cursor})
		if err != nil {
			return errors.Join(failed, err)
		}
		for _, j := range page.Sessions {
			if !strings.HasPrefix(j.ID, journalPrefix) || strings.HasPrefix(j.ID, journalPrefix+e.id+"/") {
				continue // an active import of this engine
			}
			sessions, err := e.named(ctx, j.ID)
			if err == nil {
				err = e.undoImport(ctx, j.ID, sessions)
			}
			failed = errors.Join(failed, err)
		}
		if cursor = page.Next; cursor == "" {
			return failed
		}
	}
}

// named returns the ids that a journal lists.
func (e *Engine) named(ctx context.Context, journal string) ([]string, error) {
	var ids []string
	for from := int64(0); ; {
		p, err := e.store.Read(ctx, journal, tapedeck.Range{From: from})
		if err != nil {
			return nil, err
		}
		for _, rec := range p.Records {
			for id := range bytes.SplitSeq(rec.Data, []byte("\n")) {
				ids = append(ids, string(id))
			}
		}
		if from = p.Next; p.CaughtUp() {
			return ids, nil
		}
	}
}
