package projection

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// The kinds of checkpoints.
const (
	states     = "standing" // a foldState
	summaries  = "summary"
	indexes    = "index" // the index of the events since the checkpoint before
	wholes     = "whole" // the index of all events
	nameTables = "names" // see nameTable
)

// checkpoints is the prefix of the ids of checkpoints.
const checkpoints = tapedeck.ViewPrefix + "fold/"

// checkpointID returns the id of a checkpoint of a session at an offset. Gen is
// never used twice, so a recreated session cannot inherit a checkpoint.
func checkpointID(s *tapedeck.Session, fold string, at int64) string {
	return fmt.Sprintf("%s%s/%d/%s.%d/%d", checkpoints, s.ID, s.Gen, fold, view.CheckpointForm, at)
}

// save writes a checkpoint. A failure is only logged: a missing checkpoint costs
// time, because the log is folded again.
func (p *Projections) save(ctx context.Context, s *tapedeck.Session, fold string, at int64, records ...[]byte) {
	_, err := p.store.Create(ctx, tapedeck.Spec{
		ID: checkpointID(s, fold, at), Kind: tapedeck.KindView, ContentType: "application/octet-stream", Chunks: records, Closed: true,
	})
	if err != nil {
		p.warnUnsaved(ctx, s, fold, at, err)
	}
}

func (p *Projections) warnUnsaved(ctx context.Context, s *tapedeck.Session, fold string, at int64, err error) {
	if ctx.Err() == nil {
		p.options.Logger.Warn("a checkpoint cannot be saved; views of its session take longer", "session", s.ID, "fold", fold, "offset", at, "error", err)
	}
}

// load reads a checkpoint. It reports false if there is none.
func (p *Projections) load(ctx context.Context, s *tapedeck.Session, fold string, at int64, into any) (bool, error) {
	id := checkpointID(s, fold, at)
	page, err := p.store.Read(ctx, id, tapedeck.Range{Limit: 1})
	switch {
	case tapedeck.KindOf(err) == tapedeck.NotFound, err == nil && len(page.Records) == 0:
		return false, nil
	case err != nil:
		return false, err
	}
	if err := unpack(page.Records[0].Data, into); err != nil {
		p.unreadable(ctx, id, err)
		return false, nil
	}
	return true, nil
}

// unreadable deletes a checkpoint that is broken. If it cannot be deleted, it
// stays in the way of a sound one and is made again each time; nothing else is
// wrong.
func (p *Projections) unreadable(ctx context.Context, id string, err error) {
	p.options.Logger.Warn("a checkpoint cannot be read and is made again", "id", id, "error", err)
	_ = p.store.Delete(ctx, id)
}

// pack encodes a fold as compressed JSON, which is about a tenth as large.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // an error means that the level is unknown
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

func unpack(b []byte, into any) error {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	b, err = io.ReadAll(z)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// holder returns the session under whose id the checkpoint of s at an offset is
// stored: for an offset that a fork shares with its parent, the parent.
func (p *Projections) holder(ctx context.Context, s *tapedeck.Session, at int64) tapedeck.Session {
	holder := *s
	for at <= holder.ForkedAt && holder.Parent != "" {
		parent, err := p.store.Head(ctx, holder.Parent)
		if err != nil { // it was deleted
			break
		}
		holder = parent
	}
	return holder
}

// Forget removes the checkpoints and folds of some sessions, and those of all
// deleted sessions. Call it with a session whose events were erased, and with all
// forks that share them. A fold of one session can save a checkpoint of another,
// so Forget waits for all active folds before it removes anything.
func (p *Projections) Forget(ctx context.Context, sessions ...string) error {
	p.forgotten.Add(1)
	p.unload(sessions)
	if err := p.waitForFolds(ctx); err != nil {
		return err
	}
	errs := []error{p.removeGone(ctx)}
	for _, id := range sessions {
		s, _, err := p.session(ctx, id, -1)
		switch tapedeck.KindOf(err) {
		case "":
			err = p.remove(ctx, &s)
		case tapedeck.NotFound, tapedeck.Gone: // it was deleted a moment ago
			err = p.removeAny(ctx, id)
		}
		errs = append(errs, err)
	}
	errs = append(errs, p.forgetTotals(ctx, sessions))
	return errors.Join(errs...)
}

// removeAny deletes the checkpoints of every session that ever had an id.
func (p *Projections) removeAny(ctx context.Context, session string) error {
	return p.eachCheckpoint(ctx, checkpoints+session+"/", func(id string) error { return p.discard(ctx, id) })
}

// discard deletes a checkpoint, if it exists.
func (p *Projections) discard(ctx context.Context, id string) error {
	err := p.store.Delete(ctx, id)
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		return nil
	}
	return err
}

// eachCheckpoint calls f with the id of every checkpoint that has a prefix.
func (p *Projections) eachCheckpoint(ctx context.Context, prefix string, f func(id string) error) error {
	for cursor := ""; ; {
		page, err := p.store.List(ctx, tapedeck.Filter{Kind: tapedeck.KindView, Query: prefix, Cursor: cursor})
		if err != nil {
			return err
		}
		for i := range page.Sessions {
			id := page.Sessions[i].ID
			if !strings.HasPrefix(id, prefix) {
				continue
			}
			if err := f(id); err != nil {
				return err
			}
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

// remove deletes the checkpoints of a session.
func (p *Projections) remove(ctx context.Context, s *tapedeck.Session) error {
	for fold, every := range map[string]int64{states: p.step(), summaries: p.options.Every, indexes: p.options.Every, wholes: p.wholeStep(), nameTables: p.options.Every} {
		for at := every; at <= s.Head; at += every {
			if err := p.discard(ctx, checkpointID(s, fold, at)); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep removes the checkpoints of sessions that do not exist any more. It finds
// those that were deleted without a notification, or just before the process died.
func (p *Projections) sweep(ctx context.Context) error {
	return p.eachCheckpoint(ctx, checkpoints, func(id string) error {
		session, rest, _ := strings.Cut(strings.TrimPrefix(id, checkpoints), "/")
		gen, _, ok := strings.Cut(rest, "/")
		if !ok {
			return nil
		}
		s, err := p.store.Head(ctx, session)
		switch kind := tapedeck.KindOf(err); {
		case err == nil && strconv.FormatInt(s.Gen, 10) == gen, err != nil && kind != tapedeck.NotFound && kind != tapedeck.Gone:
			return nil
		}
		return p.discard(ctx, id)
	})
}
