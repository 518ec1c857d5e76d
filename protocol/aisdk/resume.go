package aisdk

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/tapedeck/tapedeck"
)

// resume streams the open run of a chat from its beginning. Without an open run there is
// nothing to resume. With the parameter message it streams that message, also if
// its run has ended: for a client whose stream was cut off.
func (h *handler) resume(w http.ResponseWriter, r *http.Request) error {
	version, err := versionOf(r)
	if err != nil {
		return err
	}
	head, err := h.find(r)
	if notBegun(head, err) && !r.URL.Query().Has("message") {
		return nothing(w)
	}
	if err != nil {
		return err
	}
	if r.URL.Query().Has("message") {
		return h.again(w, r, version, head.ID)
	}
	open, busy := head.Run(tapedeck.MainThread)
	if !busy {
		return nothing(w)
	}
	_, now, err := h.now(r.Context(), head.ID)
	if err != nil {
		return err
	}
	all := chainsOf(&now)
	if of, ok := all.of[open.Invocation]; ok {
		return h.newStream(w, version, head.ID, of.ids()...).follow(r, of[0].Offset)
	}
	return h.newStream(w, version, head.ID, open.Invocation).follow(r, open.Offset)
}

func nothing(w http.ResponseWriter) error {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// again streams a message again, for a client that names it, or one of its runs.
func (h *handler) again(w http.ResponseWriter, r *http.Request, version int, session string) error {
	message, from, known, err := queryOf(r.URL.Query())
	if err != nil {
		return err
	}
	_, now, err := h.now(r.Context(), session)
	if err != nil {
		return err
	}
	all := chainsOf(&now) // not of another thread: the stream of its run would never end
	runs, ok := all.of[message]
	if !ok {
		return tapedeck.Errorf(tapedeck.NotFound, "the chat has no message %q of an agent", message).
			WithHint("it may have been reverted; load the messages of the chat")
	}
	s := h.newStream(w, version, session, runs.ids()...)
	s.from, s.known = from, known
	return s.follow(r, runs[0].Offset)
}

// queryOf returns the message that a client wants again, the offset at which its stream
// began, 0 for the whole message, and the one before which that stream left out earlier
// attempts, -1 if the client does not say.
func queryOf(q url.Values) (message string, from, known int64, err error) {
	message = q.Get("message")
	if err := tapedeck.CheckID("the message", message); err != nil {
		return "", 0, 0, err
	}
	if from, err = offsetOf(q, "from", 0); err != nil {
		return "", 0, 0, err
	}
	known, err = offsetOf(q, "attempts", -1)
	return message, from, known, err
}

// offsetOf returns a parameter that is a member of the metadata of a message.
func offsetOf(q url.Values, name string, without int64) (int64, error) {
	if !q.Has(name) {
		return without, nil
	}
	offset, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || offset < 0 {
		return 0, tapedeck.Errorf(tapedeck.Invalid, "the parameter %s is an offset, not %.40q", name, q.Get(name)).
			WithHint("it is metadata.tapedeck.%s of the message", name)
	}
	return offset, nil
}
