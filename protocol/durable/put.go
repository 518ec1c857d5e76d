package durable

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
)

// A creation is the request of a PUT.
type creation struct {
	contentType string // as sent; "" for none
	closed      bool
	lifetime    lifetime
	fork        *forking // nil: not a fork
	body        []byte
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

// origin returns a text with the parts of the request that the stream itself does not
// show, so that a repetition of the PUT can be recognized. The other parts (content
// type, closed) are compared with the stream.
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

// put creates a stream, or finds that it exists as requested.
func (h *handler) put(w http.ResponseWriter, r *http.Request, t target) error {
	c, err := h.decodeCreation(r)
	if err != nil {
		return err
	}
	if c.contentType == "" && c.fork == nil {
		c.contentType = "application/octet-stream"
	}
	done, err := h.createStream(r.Context(), t, &c)
	if err != nil {
		return err
	}
	return created(w, r, &done)
}

func (h *handler) createStream(ctx context.Context, t target, c *creation) (done tapedeck.Created, err error) {
	// This comes first, because a repetition must not need what the first PUT needed:
	// the source of a fork may be deleted by now.
	done.Session, err = h.Store.Head(ctx, t.id)
	switch tapedeck.KindOf(err) {
	case tapedeck.NotFound:
		var spec tapedeck.Spec
		if spec, err = h.spec(ctx, t, c); err != nil {
			return done, err
		}
		done, err = h.Store.Create(ctx, spec)
	case tapedeck.Gone:
		err = tapedeck.Errorf(tapedeck.Conflict, "this stream was deleted, and forks still need it").WithHint("use another path")
	}
	if err == nil && !done.New && !c.matches(&done.Session) {
		err = tapedeck.Errorf(tapedeck.Conflict, "this stream exists and differs from the request").
			WithHint("HEAD shows its content type, its lifetime and whether it is closed")
	}
	return done, err
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

// created answers a PUT.
func created(w http.ResponseWriter, r *http.Request, done *tapedeck.Created) error {
	head, s := w.Header(), &done.Session
	set(head, "Content-Type", s.ContentType)
	setTail(head, s.Gen, s.Head, s.Closed)
	if !done.New {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	set(head, "Location", location(r))
	w.WriteHeader(http.StatusCreated)
	return nil
}

// location returns the absolute URL of the request as the client sees it. A proxy that ends TLS says so in a
// header. A client that forges the header only gets its own forged URL.
func location(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + r.Host + httpapi.Prefix(r) + r.URL.EscapedPath()
}
