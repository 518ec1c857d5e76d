package durable

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
)

// A creation is what a PUT asks for.
type creation struct {
	contentType string // as given; "" for none
	closed      bool
	lifetime    lifetime
	fork        *forking // nil: not a fork
	body        []byte
}

// A forking says what a new stream is forked from.
type forking struct {
	source target
	path   string  // of the source, as it is called in errors
	at     *offset // nil for the source's tail
	sub    int64   // messages, or bytes of the record at at, that are taken too
}

func (h *handler) decodeCreation(r *http.Request) (c creation, err error) {
	c.closed = isTrue(r.Header, hClosed)
	if c.contentType, err = header(r.Header, "Content-Type"); err != nil {
		return c, err
	}
	if c.lifetime, err = decodeLifetime(r.Header); err != nil {
		return c, err
	}
	if c.fork, err = decodeFork(r.Header); err != nil {
		return c, err
	}
	c.body, err = h.readBody(r)
	return c, err
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
		return nil, tapedeck.Errorf(tapedeck.Invalid, "Stream-Forked-From is not a well escaped path")
	}
	if f.source, err = parseTarget(path); err != nil {
		return nil, err
	}
	if f.source.view != "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a view cannot be forked").WithHint("fork its session")
	}
	if len(at) == 1 {
		o, ok := parseOffset(at[0])
		if !ok {
			return nil, badOffset(at[0])
		}
		f.at = &o
	}
	if len(sub) == 1 {
		var ok bool
		if f.sub, ok = parseCount(sub[0]); !ok {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "Stream-Fork-Sub-Offset %.64q is not a number", sub[0])
		}
	}
	return f, nil
}

// origin puts into words what the request asked for and the stream itself does
// not show, so that the same PUT is known again. What it leaves out (content
// type, closed) is compared with the stream as it stands.
func (c *creation) origin() string {
	var b strings.Builder
	if c.lifetime.given {
		fmt.Fprintf(&b, "ttl=%d expires=%d ", c.lifetime.ttl/time.Millisecond, c.lifetime.expires.UnixMilli())
	}
	if f := c.fork; f != nil {
		at := "tail"
		if f.at != nil {
			at = f.at.String()
		}
		fmt.Fprintf(&b, "from=%s at=%s sub=%d ", f.source.id, at, f.sub)
	}
	return b.String()
}

// matches reports whether s is what c asks for.
func (c *creation) matches(s *tapedeck.Session) bool {
	sameContent := c.contentType == "" && c.fork != nil || sameType(c.contentType, s.ContentType)
	return sameContent && c.closed == s.Closed && c.origin() == s.Origin
}

// put creates a stream, or finds that it is there as asked for.
func (h *handler) put(w http.ResponseWriter, r *http.Request, t target) error {
	c, err := h.decodeCreation(r)
	if err != nil {
		return err
	}
	if c.contentType == "" && c.fork == nil {
		c.contentType = "application/octet-stream"
	}
	s, made, err := h.createStream(r.Context(), t, &c)
	if err != nil {
		return err
	}
	return created(w, r, &s, made)
}

func (h *handler) createStream(ctx context.Context, t target, c *creation) (tapedeck.Session, bool, error) {
	// First, for a repetition must not need what the first PUT needed: the
	// source of a fork may be deleted by now.
	s, err := h.Store.Head(ctx, t.id)
	made := false
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound:
		var spec tapedeck.Spec
		if spec, err = h.spec(ctx, t, c); err != nil {
			return s, false, err
		}
		s, made, err = h.Store.Create(ctx, spec)
	case tapedeck.Gone:
		err = tapedeck.Errorf(tapedeck.Conflict, "this stream was deleted, and forks still need it").WithHint("use another path")
	}
	if err == nil && !made && !c.matches(&s) {
		err = tapedeck.Errorf(tapedeck.Conflict, "this stream exists and is not as asked for").
			WithHint("HEAD tells its content type, lifetime and whether it is closed")
	}
	return s, made, err
}

// spec describes the stream to create.
func (h *handler) spec(ctx context.Context, t target, c *creation) (tapedeck.Spec, error) {
	spec := tapedeck.Spec{
		ID: t.id, Kind: tapedeck.KindStream, ContentType: c.contentType, Closed: c.closed,
		TTL: c.lifetime.ttl, Expires: c.lifetime.expires, Origin: c.origin(),
	}
	if c.fork != nil {
		if err := h.inherit(ctx, &spec, c); err != nil {
			return spec, err
		}
	}
	if len(c.body) > 0 {
		messages, err := decodeMessages(spec.ContentType, c.body)
		if err != nil {
			return spec, err
		}
		spec.Chunks = append(spec.Chunks, messages...)
	}
	return spec, nil
}

// inherit makes spec a fork.
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
		return tapedeck.Errorf(tapedeck.Conflict, "%s holds %s, not %s", f.path, source.ContentType, spec.ContentType)
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

// source returns the entry of what is to be forked.
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

// anchor returns how many of the source's records the fork shares, and the part
// of the next one that it begins with: a fork in the middle of a record has
// that part as a record of its own.
func (h *handler) anchor(ctx context.Context, f *forking, source *tapedeck.Session) (int64, []byte, error) {
	at := offset{n: source.Head}
	if f.at != nil {
		at = *f.at
	}
	beyond := tapedeck.Errorf(tapedeck.Invalid, "%.256s cannot be forked at %s and %d more: that is beyond what it has there", f.path, at, f.sub)
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

// created answers a PUT.
func created(w http.ResponseWriter, r *http.Request, s *tapedeck.Session, made bool) error {
	head := w.Header()
	set(head, "Content-Type", s.ContentType)
	setTail(head, s.Head, s.Closed)
	if !made {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	set(head, "Location", location(r))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// location returns the absolute URL of the request. A proxy that speaks TLS for
// us says so in a header; a client that lies in it is told its own lie.
func location(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host + r.URL.EscapedPath()
}
