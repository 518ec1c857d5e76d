package aisdk

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/tapedeck/tapedeck"
)

// resume streams the open run of a chat from its beginning. Without an open run there is
// nothing to resume. With the parameter message it streams the run of that message, also if
// the run has ended: for a client whose stream was cut off.
func (h *handler) resume(w http.ResponseWriter, r *http.Request) error {
	version, err := versionOf(r)
	if err != nil {
		return err
	}
	head, err := h.find(r)
	if h.notBegun(r, head, err) && !r.URL.Query().Has("message") {
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
	return h.newStream(w, version, head.ID, open.Invocation).follow(r, open.Offset)
}

func nothing(w http.ResponseWriter) error {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// again streams a run again, for a client that names its message.
func (h *handler) again(w http.ResponseWriter, r *http.Request, version int, session string) error {
	message, from, err := queryOf(r.URL.Query())
	if err != nil {
		return err
	}
	_, now, err := h.now(r.Context(), session)
	if err != nil {
		return err
	}
	run := runOf(&now, message) // not a run of another thread: its stream would never end
	if run == nil {
		return tapedeck.Errorf(tapedeck.NotFound, "the chat has no message %q of an agent", message).
			WithHint("it may have been reverted; load the messages of the chat")
	}
	s := h.newStream(w, version, session, message)
	s.from = from
	return s.follow(r, run.Offset)
}

// queryOf returns the message that a client wants again, and the offset at which its
// stream began, 0 for the whole message.
func queryOf(q url.Values) (message string, from int64, err error) {
	message = q.Get("message")
	if err := tapedeck.CheckID("the message", message); err != nil {
		return "", 0, err
	}
	if !q.Has("from") {
		return message, 0, nil
	}
	from, err = strconv.ParseInt(q.Get("from"), 10, 64)
	if err != nil || from < 0 {
		return "", 0, tapedeck.Errorf(tapedeck.Invalid, "the parameter from is an offset, not %.40q", q.Get("from")).
			WithHint("it is metadata.tapedeck.from of the message")
	}
	return message, from, nil
}
