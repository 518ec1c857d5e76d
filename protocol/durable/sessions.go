package durable

import (
	"context"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/api"
)

// writeSession changes a session. It calls the engine, so that a session is the same
// whichever protocol writes it.
func (h *handler) writeSession(w http.ResponseWriter, r *http.Request, t target) error {
	switch r.Method {
	case http.MethodPost:
		return h.postSession(w, r, t)
	case http.MethodPut:
		return h.putSession(w, r, t)
	case http.MethodDelete:
		return noContent(w, h.Verbs.Delete(r.Context(), t.id))
	}
	return notAllowed(w, r, allMethods)
}

// postSession appends events, closes the session, or both.
func (h *handler) postSession(w http.ResponseWriter, r *http.Request, t target) error {
	body, err := h.readBody(r)
	if err != nil {
		return err
	}
	a, err := decodeAppend(r.Header, t.id)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if a.Events, err = h.events(r.Header, body); err != nil {
			return err
		}
	} else if !a.Close {
		return errEmpty()
	}
	if len(body) == 0 && a.Producer == nil && a.Expect == nil {
		return h.closeSession(w, r, t)
	}
	done, err := h.Verbs.Append(r.Context(), a.Append)
	if err != nil {
		return h.refused(w, r, t, a, err)
	}
	h.appended(w, r, t, a, &done)
	return nil
}

// closeSession closes a session that may be closed already.
func (h *handler) closeSession(w http.ResponseWriter, r *http.Request, t target) error {
	err := h.Verbs.Close(r.Context(), t.id, "")
	if err != nil && tapedeck.RefusalOf(err) != tapedeck.RefusedClosed {
		return err
	}
	s, err := h.lookup(r.Context(), t)
	if err != nil {
		return err
	}
	setTail(w.Header(), s.Gen, s.Head, s.Closed)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// events decodes envelopes. The store ignores an envelope's offset. Its time is the
// producer's. So an envelope can be posted as it was read.
func (h *handler) events(header http.Header, body []byte) ([]tapedeck.Event, error) {
	if v := header["Content-Type"]; len(v) == 1 && !isJSON(v[0]) {
		return nil, tapedeck.Errorf(tapedeck.Conflict, "a session has the content type %s, not %s", jsonType, v[0])
	}
	messages, err := h.chunks(header, body)
	if err != nil {
		return nil, err
	}
	events := make([]tapedeck.Event, len(messages))
	for i, m := range messages {
		if err := events[i].UnmarshalJSON(m); err != nil {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "message %d of %d is not an event: %w", i+1, len(messages), err).
				WithHint(`send {"type":...,"thread":...,"data":{...}}; put your own members into data`)
		}
	}
	return events, nil
}

// putSession creates a session or a fork of one, or finds that it exists as requested.
func (h *handler) putSession(w http.ResponseWriter, r *http.Request, t target) error {
	c, err := h.decodeCreation(r)
	if err != nil {
		return err
	}
	if err := c.checkSession(); err != nil {
		return err
	}
	done, err := h.createSession(r.Context(), t, &c)
	if err != nil {
		return err
	}
	done.Session.ContentType = jsonType
	return created(w, r, &done)
}

// checkSession refuses a creation that is not possible for a session.
func (c *creation) checkSession() error {
	switch {
	case c.contentType != "" && !isJSON(c.contentType):
		return tapedeck.Errorf(tapedeck.Conflict, "a session has the content type %s, not %s", jsonType, c.contentType)
	case c.closed || c.lifetime.given:
		return tapedeck.Errorf(tapedeck.Invalid, "a new session cannot be closed or have an expiry")
	case len(c.body) > 0 && string(c.body) != "[]":
		return tapedeck.Errorf(tapedeck.Invalid, "a session begins empty").WithHint("create it, then POST its events")
	case c.fork != nil && !c.fork.source.isSession:
		return tapedeck.Errorf(tapedeck.Invalid, "a stream cannot be forked as a session")
	}
	return nil
}

func (h *handler) createSession(ctx context.Context, t target, c *creation) (done tapedeck.Created, err error) {
	done.Session, err = h.Store.Head(ctx, t.id)
	if tapedeck.KindOf(err) == tapedeck.NotFound {
		done, err = h.makeSession(ctx, t, c)
	}
	switch kind := tapedeck.KindOf(err); {
	case kind == tapedeck.Gone:
		return done, tapedeck.Errorf(tapedeck.Conflict, "session %q was deleted, and forks still need it", t.id)
	case err != nil || done.New:
		return done, err
	case !c.matchesSession(&done.Session):
		return done, tapedeck.Errorf(tapedeck.Conflict, "session %q exists and differs from the request", t.id)
	}
	return done, nil
}

// matchesSession reports whether s is what c asks for. A fork without an offset matches
// at any offset.
func (c *creation) matchesSession(s *tapedeck.Session) bool {
	f := c.fork
	switch {
	case s.Closed:
		return false
	case f == nil:
		return s.Parent == ""
	}
	return s.Parent == f.source.id && (f.at == nil || f.at.n+f.sub == s.ForkedAt)
}

func (h *handler) makeSession(ctx context.Context, t target, c *creation) (tapedeck.Created, error) {
	if c.fork != nil {
		return h.forkSession(ctx, t, c.fork)
	}
	s, err := h.Verbs.Create(ctx, api.NewSession{ID: t.id})
	if tapedeck.KindOf(err) == tapedeck.Conflict { // another request was faster
		if s, headErr := h.Store.Head(ctx, t.id); headErr == nil {
			return tapedeck.Created{Session: s}, nil
		}
	}
	return tapedeck.Created{Session: s, New: err == nil}, err
}

func (h *handler) forkSession(ctx context.Context, t target, f *forking) (tapedeck.Created, error) {
	if h.Fork == nil {
		return tapedeck.Created{}, tapedeck.Errorf(tapedeck.Invalid, "sessions cannot be forked here")
	}
	source, err := h.source(ctx, f)
	if err != nil {
		return tapedeck.Created{}, err
	}
	at, _, err := h.anchor(ctx, f, &source)
	if err != nil {
		return tapedeck.Created{}, err
	}
	s, err := h.Fork(ctx, t.id, f.source.id, at)
	return tapedeck.Created{Session: s, New: err == nil}, err
}
