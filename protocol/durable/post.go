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
	a, err := decodeAppend(r.Header)
	if err != nil {
		return err
	}
	a.Session = t.id
	if len(body) > 0 {
		if a.Chunks, err = h.chunks(r.Header, body); err != nil {
			return err
		}
		contentType := r.Header["Content-Type"][0]
		// The writer of the store checks the content type of the stream, so that the
		// handler need not read the entry before.
		a.Check = func(s *tapedeck.Session) error {
			if sameType(contentType, s.ContentType) {
				return nil
			}
			return tapedeck.Errorf(tapedeck.Conflict, "this stream has the content type %s, not %s", s.ContentType, contentType)
		}
	} else if !a.Close {
		return errEmpty()
	}
	done, err := h.Store.Append(r.Context(), a)
	if err != nil {
		return withReceivedSeq(w.Header(), &a, t.explain(err))
	}
	appended(w, &a, &done)
	return nil
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

// withReceivedSeq sets the sequence number that the client sent, if the append was
// refused because of it. It returns err.
func withReceivedSeq(h http.Header, a *tapedeck.Append, err error) error {
	var e *tapedeck.AppendError
	if errors.As(err, &e) && e.Refusal == tapedeck.RefusedGap {
		setInt(h, hReceivedSeq, a.Producer.Seq)
	}
	return err
}

// appended answers an append. With a producer, 200 means that it is new, and 204 that it
// is a repetition.
func appended(w http.ResponseWriter, a *tapedeck.Append, done *tapedeck.Appended) {
	head := w.Header()
	setTail(head, done.Head, done.Closed)
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
