package durable

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tapedeck/tapedeck"
)

// A forking is the source of a new stream.
type forking struct {
	source target
	path   string // of the source, for errors
	at     *place // nil for the source's tail
	sub    int64  // how many messages after at, or bytes of the record at at, the fork also has
}

func decodeFork(h http.Header) (*forking, error) {
	from, at, sub := h[hForkedFrom], h[hForkOffset], h[hForkSub]
	switch {
	case len(from)+len(at)+len(sub) == 0:
		return nil, nil
	case len(from) != 1 || len(at) > 1 || len(sub) > 1:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a fork needs Stream-Forked-From, and each of its headers at most once")
	}
	f := &forking{path: from[0]}
	path, err := url.PathUnescape(from[0])
	if err != nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "Stream-Forked-From is not an escaped path")
	}
	if f.source, err = parseTarget(path); err != nil {
		return nil, err
	}
	if f.source.view != "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a view cannot be forked").WithHint("fork its session")
	}
	if len(at) == 1 {
		p, ok := parsePlace(at[0])
		if !ok {
			return nil, badOffset(at[0])
		}
		f.at = &p
	}
	if len(sub) == 1 {
		var ok bool
		if f.sub, ok = parseCount(sub[0]); !ok {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "Stream-Fork-Sub-Offset %.64q is not a number", sub[0])
		}
	}
	return f, nil
}

// inherit makes the stream of spec a fork.
func (h *handler) inherit(ctx context.Context, spec *tapedeck.Spec, c *creation) error {
	f := c.fork
	if f.source.isSession {
		return tapedeck.Errorf(tapedeck.Invalid, "a session cannot be forked as a stream").
			WithHint("PUT %s/sessions/ and an id instead", Root)
	}
	source, err := h.source(ctx, f)
	if err != nil {
		return err
	}
	if spec.ContentType == "" {
		spec.ContentType = source.ContentType
	}
	if !sameType(spec.ContentType, source.ContentType) {
		return tapedeck.Errorf(tapedeck.Conflict, "%s has the content type %s, not %s", f.path, source.ContentType, spec.ContentType)
	}
	if !c.lifetime.given {
		spec.TTL, spec.Expires = source.TTL, source.Expires
	}
	n, prefix, err := h.anchor(ctx, f, &source)
	if err != nil {
		return err
	}
	spec.Parent, spec.ForkAt = f.source.id, &n
	if len(prefix) > 0 {
		spec.Chunks = append(spec.Chunks, prefix)
	}
	return nil
}

// source returns the catalogue entry of the source.
func (h *handler) source(ctx context.Context, f *forking) (tapedeck.Session, error) {
	s, err := h.lookup(ctx, f.source)
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound:
		return s, tapedeck.Errorf(tapedeck.NotFound, "there is no %.256s to fork", f.path)
	case tapedeck.Gone:
		return s, tapedeck.Errorf(tapedeck.Conflict, "%.256s was deleted and cannot be forked", f.path)
	}
	return s, err
}

// anchor returns the number of records that the fork shares with its source, and the
// beginning of the next record if the fork has a part of it: that part is the fork's own
// first record.
func (h *handler) anchor(ctx context.Context, f *forking, source *tapedeck.Session) (int64, []byte, error) {
	at := offset{n: source.Head}
	if f.at != nil {
		at = f.at.offset
		if err := h.checkGen(ctx, f.source, source, *f.at); err != nil {
			return 0, nil, err
		}
	}
	beyond := tapedeck.Errorf(tapedeck.Invalid, "%.256s cannot be forked at %s plus %d: it has less", f.path, at, f.sub)
	if at.n > source.Head {
		return 0, nil, beyond
	}
	if isJSON(source.ContentType) {
		if at.k != 0 || f.sub > source.Head-at.n {
			return 0, nil, beyond
		}
		return at.n + f.sub, nil, nil
	}
	k := at.k + f.sub // both have at most 16 digits
	if k == 0 {
		return at.n, nil, nil
	}
	p, err := h.Store.Read(ctx, source.ID, tapedeck.Range{From: at.n, Limit: 1})
	if err != nil {
		return 0, nil, err
	}
	if len(p.Records) == 0 || k > int64(len(p.Records[0].Data)) {
		return 0, nil, beyond
	}
	if k == int64(len(p.Records[0].Data)) {
		return at.n + 1, nil, nil
	}
	return at.n, p.Records[0].Data[:k:k], nil
}
