package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A journal says which sessions an import is making. It is there before the
// first of them, and to remove it is what makes the import a fact: as long as it
// is there, the sessions go when the import fails, or when the engine is started
// again after the process died.
//
// A session that an import has made says so in its [tapedeck.Session.Origin].
// The id alone would not do: it may be that of a session which was there before.
type journal struct {
	engine  *Engine
	id      string
	exists  bool
	made    []string // sessions that may be there
	unused  []string // ids that it names
	written int      // times
}

const (
	journalPrefix = tapedeck.ViewPrefix + "import/"
	journalBatch  = 64 // ids that are named ahead, so that many small sessions do not cost a commit more each
)

func newJournal(e *Engine) *journal {
	return &journal{engine: e, id: journalPrefix + e.id + "/" + tapedeck.NewID("imp_")}
}

// newID returns an id that the journal names.
func (j *journal) newID(ctx context.Context) (string, error) {
	if len(j.unused) == 0 {
		n := journalBatch
		if j.written == 0 {
			n = 1 // most imports make one
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

// write names ids, durably.
func (j *journal) write(ctx context.Context, ids ...string) error {
	chunk := []byte(strings.Join(ids, "\n"))
	j.written++
	if j.exists {
		_, err := j.engine.store.Append(ctx, tapedeck.Append{Session: j.id, Chunks: [][]byte{chunk}})
		return err
	}
	j.exists = true // also after an error: it may turn out to be there
	_, _, err := j.engine.store.Create(ctx, tapedeck.Spec{
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

// create creates a session of an id and reports whether it did: the id may be
// taken, also by one that was deleted while forks need it.
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
	j.made = append(j.made, id) // before it is there: a failed commit may turn out to have come through
	_, made, err := j.engine.store.Create(ctx, tapedeck.Spec{
		ID: id, Kind: tapedeck.KindSession, Events: []tapedeck.Event{first}, Origin: j.id,
	})
	return made, err
}

// done makes the import a fact.
func (j *journal) complete(ctx context.Context) error {
	if !j.exists {
		return nil
	}
	return j.engine.store.Delete(ctx, j.id)
}

// undo deletes the sessions that were made. If that fails, the next start of the
// engine does it.
func (j *journal) undo(ctx context.Context) {
	if !j.exists {
		return
	}
	err := j.engine.undoImport(ctx, j.id, j.made)
	if err != nil {
		j.engine.options.Logger.Error("sessions of a failed import could not be deleted; the next start will", "error", err)
	}
}

// undoImport deletes what an import has made, and then its journal.
func (e *Engine) undoImport(ctx context.Context, journal string, sessions []string) error {
	var failed error
	for _, id := range sessions {
		s, err := e.store.Head(ctx, id)
		if err == nil && s.Origin == journal {
			err = e.Delete(ctx, id)
		}
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

// undoImports deletes what imports have made that an earlier process did not
// complete.
func (e *Engine) undoImports(ctx context.Context) error {
	var failed error
	for cursor := ""; ; {
		journals, next, err := e.store.List(ctx, tapedeck.Filter{Kind: tapedeck.KindView, Query: journalPrefix, Cursor: cursor})
		if err != nil {
			return errors.Join(failed, err)
		}
		for _, j := range journals {
			if !strings.HasPrefix(j.ID, journalPrefix) || strings.HasPrefix(j.ID, journalPrefix+e.id+"/") {
				continue // one of ours is under way
			}
			sessions, err := e.named(ctx, j.ID)
			if err == nil {
				err = e.undoImport(ctx, j.ID, sessions)
			}
			failed = errors.Join(failed, err)
		}
		if cursor = next; next == "" {
			return failed
		}
	}
}

// named returns the ids in a journal.
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
