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

// The folds of which checkpoints are put away.
const (
	states    = "standing"
	summaries = "summary"
	indexes   = "index" // of the events since the checkpoint before
	wholes    = "whole" // index of all events

	nameTables = "names" // not a fold: see nameTable
)

// checkpoints begins the ids of checkpoints.
const checkpoints = tapedeck.ViewPrefix + "fold/"

// checkpointID names the fold of a session as of an offset. The number of the
// incarnation is never used twice, so a checkpoint is that of no other session.
func checkpointID(s *tapedeck.Session, fold string, at int64) string {
	return fmt.Sprintf("%s%s/%d/%s.%d/%d", checkpoints, s.ID, s.Gen, fold, view.CheckpointForm, at)
}

// save writes a checkpoint. That it cannot be written is no error: it is made
// again.
func (p *Projections) save(ctx context.Context, s *tapedeck.Session, fold string, at int64, records ...[]byte) {
	_, _, err := p.store.Create(ctx, tapedeck.Spec{
		ID: checkpointID(s, fold, at), Kind: tapedeck.KindView, ContentType: "application/octet-stream", Chunks: records, Closed: true,
	})
	if err != nil {
		p.warnUnsaved(ctx, s, fold, at, err)
	}
}

func (p *Projections) warnUnsaved(ctx context.Context, s *tapedeck.Session, fold string, at int64, err error) {
	if ctx.Err() == nil {
		p.options.Logger.Warn("a checkpoint cannot be kept; views of its session take longer", "session", s.ID, "fold", fold, "offset", at, "error", err)
	}
}

// load takes up a fold that was put away, and reports whether there is one.
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

// pack makes JSON of a fold and compresses it: most of it is text, and a tenth
// of it goes through the disk.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // fails only for a level that does not exist
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

// holder returns the session under which the checkpoint of s at an offset is:
// what a fork shares with its parent is kept with the parent.
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

// Forget removes everything that is kept of sessions, on the disk, too, and of
// all that were deleted. It has to be called with a session whose events were
// erased and all that share them. A checkpoint of one session is made while
// another is folded, so nothing is removed before all folds that are under way
// have ended.
func (p *Projections) Forget(ctx context.Context, sessions ...string) error {
	p.forgotten.Add(1)
	p.unload(sessions)
	if err := p.settle(ctx); err != nil {
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
	return errors.Join(errs...)
}

// removeAny deletes the checkpoints of all that ever had an id.
func (p *Projections) removeAny(ctx context.Context, session string) error {
	return p.eachCheckpoint(ctx, checkpoints+session+"/", func(id string) error { return p.discard(ctx, id) })
}

// discard deletes a checkpoint, which may be gone.
func (p *Projections) discard(ctx context.Context, id string) error {
	err := p.store.Delete(ctx, id)
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		return nil
	}
	return err
}

// eachCheckpoint calls f with the id of every checkpoint that begins so.
func (p *Projections) eachCheckpoint(ctx context.Context, prefix string, f func(id string) error) error {
	for cursor := ""; ; {
		page, next, err := p.store.List(ctx, tapedeck.Filter{Kind: tapedeck.KindView, Query: prefix, Cursor: cursor})
		if err != nil {
			return err
		}
		for i := range page {
			if !strings.HasPrefix(page[i].ID, prefix) {
				continue
			}
			if err := f(page[i].ID); err != nil {
				return err
			}
		}
		if cursor = next; next == "" {
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

// sweep removes the checkpoints of sessions that are not there any more: those
// that were deleted while nobody listened, or just before the program died.
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
