package durable

import (
	"context"

	"github.com/tapedeck/tapedeck"
)

// maxAncestors limits how far checkGen looks among the sources of a fork.
const maxAncestors = 100

// checkGen refuses an offset that is of another history of a stream. s is the entry of the
// stream. Up to its beginning, a fork has the offsets of its source, as the protocol says.
func (h *handler) checkGen(ctx context.Context, t target, s *tapedeck.Session, p place) error {
	if p.gen == 0 || p.gen == s.Gen {
		return nil
	}
	now := *s
	for range maxAncestors {
		if now.Parent == "" || p.n > now.ForkedAt || p.n == now.ForkedAt && p.k > 0 {
			break
		}
		source, err := h.Store.Head(ctx, now.Parent)
		if kind := tapedeck.KindOf(err); kind == tapedeck.NotFound || kind == tapedeck.Gone {
			break // it was deleted: nobody can say any more whether the offset was its own
		}
		if err != nil {
			return err
		}
		if source.Gen == p.gen {
			return nil
		}
		now = source
	}
	return t.replaced()
}

// replaced returns the error of an offset of another history: 410, as of one that retention
// has removed. A client of the protocol stops there, or begins again with -1.
func (t target) replaced() error {
	what := "the stream"
	name := t.path()
	if t.isSession {
		what, name = "session", t.id
	}
	return tapedeck.Errorf(tapedeck.Replaced, "your offset is of another history of %s %q: it was deleted and created again, or restored from a backup", what, name).
		WithHint("drop what you have of it, and read it from -1 on")
}

// checkPage refuses a page of another history than that in which the read began.
func (rd *reading) checkPage(p *tapedeck.Page) error {
	if p.Gen == 0 || rd.session.Gen == 0 || p.Gen == rd.session.Gen {
		return nil
	}
	return rd.replaced()
}
