package durable

import (
	"errors"
	"net/http"

	"github.com/tapedeck/tapedeck"
)

// post appends to a stream, closes it, or both.
func (h *handler) post(w http.ResponseWriter, r *http.Request, t target) error {
	body, err := h.readBody(r)
	if err != nil {
		return err
	}
	a, err := decodeAppend(r.Header, t.id)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if a.Chunks, err = h.chunks(r.Header, body); err != nil {
			return err
		}
		a.contentType = r.Header["Content-Type"][0]
	} else if !a.Close {
		return errEmpty()
	}
	done, err := h.Store.Append(r.Context(), a.Append)
	if err != nil {
		return h.refused(w, r, t, a, t.explain(err))
	}
	h.appended(w, r, t, a, &done)
	return nil
}

// An appending is an append in the making.
type appending struct {
	tapedeck.Append
	contentType string // the stream must have it; "" for any
	expectGen   int64  // the incarnation that Expect is of; 0 if the client does not say it
	gen         int64  // the incarnation of what was appended to; 0 until the store has called check
}

// check is called by the writer of the store, so that the handler need not read the entry
// before.
func (a *appending) check(s *tapedeck.Session) error {
	a.gen = s.Gen
	if a.expectGen != 0 && a.expectGen != s.Gen {
		return tapedeck.Errorf(tapedeck.Precondition, "If-Match is of another history: this stream was deleted and created again, or restored from a backup").
			WithHint("read it from -1 on and try again with its Stream-Next-Offset")
	}
	if a.contentType == "" || sameType(a.contentType, s.ContentType) {
		return nil
	}
	return tapedeck.Errorf(tapedeck.Conflict, "this stream has the content type %s, not %s", s.ContentType, a.contentType)
}

// errEmpty returns the error of an append without messages.
func errEmpty() error {
	return tapedeck.Errorf(tapedeck.Invalid, "there is nothing to append").
		WithHint("send a body, or Stream-Closed: true to close the stream")
}

// chunks divides the body of an append into messages.
func (h *handler) chunks(header http.Header, body []byte) ([][]byte, error) {
	contentType := header["Content-Type"]
	if len(contentType) != 1 || contentType[0] == "" {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the request has no Content-Type").WithHint("send the content type of the stream")
	}
	messages, err := decodeMessages(contentType[0], body)
	if err == nil && len(messages) == 0 {
		err = tapedeck.Errorf(tapedeck.Invalid, "the array has no messages to append")
	}
	return messages, err
}

// refused sets the headers that a client needs to continue after its append was refused. It
// returns err.
func (h *handler) refused(w http.ResponseWriter, r *http.Request, t target, a *appending, err error) error {
	var e *tapedeck.AppendError
	head, refused := w.Header(), errors.As(err, &e)
	if refused {
		setRefusal(head, e)
	}
	if refused && e.Refusal == tapedeck.RefusedGap {
		setInt(head, hReceivedSeq, a.Producer.Seq)
	}
	if refused || tapedeck.KindOf(err) == tapedeck.Precondition {
		h.setNow(w, r, t)
	}
	return err
}

// setNow sets the tail of a stream as it is now. It leaves the headers as they are if the
// stream cannot be read: they are only help.
func (h *handler) setNow(w http.ResponseWriter, r *http.Request, t target) {
	if s, err := h.lookup(r.Context(), t); err == nil {
		setTail(w.Header(), s.Gen, s.Head, s.Closed)
	}
}

// appended answers an append. With a producer, 200 means that it is new, and 204 that it
// is a repetition.
func (h *handler) appended(w http.ResponseWriter, r *http.Request, t target, a *appending, done *tapedeck.Appended) {
	head := w.Header()
	if setTail(head, a.gen, done.Head, done.Closed); a.gen == 0 { // a repetition, for which the store has not called check
		h.setNow(w, r, t)
	}
	if a.Producer != nil {
		setInt(head, hEpoch, a.Producer.Epoch)
		setInt(head, hProducerSeq, done.Seq)
		if !done.Duplicate && len(a.Chunks)+len(a.Events) > 0 {
			w.WriteHeader(http.StatusOK)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}
