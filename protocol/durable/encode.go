package durable

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/problem"
)

// notAllowed returns the error of a method that the target does not have.
func notAllowed(w http.ResponseWriter, r *http.Request, methods []string) error {
	return problem.MethodNotAllowed(w, r, methods...)
}

// noContent answers a request whose only result is whether it succeeded.
func noContent(w http.ResponseWriter, err error) error {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// fail answers with an error.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refused *tapedeck.AppendError
	if errors.As(err, &refused) && refused.Refusal == tapedeck.RefusedOffset { // the client has sent it as a precondition
		err = &tapedeck.Error{Kind: tapedeck.Precondition, Message: refused.Err.Message, Hint: refused.Err.Hint}
	}
	problem.Write(w, r, err, h.Logger)
}

// setRefusal sets the headers that a client needs to continue after its append was
// refused.
func setRefusal(h http.Header, e *tapedeck.AppendError) {
	setTail(h, 0, e.Head, e.Refusal == tapedeck.RefusedClosed)
	switch e.Refusal {
	case tapedeck.RefusedEpoch:
		setInt(h, hEpoch, e.Epoch)
	case tapedeck.RefusedGap:
		setInt(h, hExpectedSeq, e.Seq)
	}
}

// explain returns an error of the store in the words of this protocol: it names a stream
// by its path.
func (t target) explain(err error) error {
	var refused *tapedeck.AppendError
	switch kind := tapedeck.KindOf(err); {
	case err == nil || t.isSession:
		return err
	case kind == tapedeck.NotFound:
		return tapedeck.Errorf(kind, "there is no stream %q", t.path()).WithHint("PUT it first")
	case kind == tapedeck.Gone:
		return tapedeck.Errorf(kind, "the stream %q was deleted, and forks still need it", t.path())
	case errors.As(err, &refused):
		return explainRefusal(*refused)
	}
	return err
}

// explainRefusal is explain for an append that was refused.
func explainRefusal(e tapedeck.AppendError) error {
	inner := *e.Err
	switch e.Refusal {
	case tapedeck.RefusedClosed:
		inner.Message = "the stream is closed"
	case tapedeck.RefusedSeq:
		inner.Message = "Stream-Seq is not above that of an earlier append"
	case tapedeck.RefusedOffset:
		inner.Message = "the stream is at offset " + strconv.FormatInt(e.Head, 10) + ", not where If-Match expects it"
		inner.Hint = "read what is new and try again with the Stream-Next-Offset of this answer"
	}
	e.Err = &inner
	return &e
}
