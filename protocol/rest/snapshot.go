package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/view"
)

// snapshotForm changes with the form of snapshots, so that no cache keeps one
// of an older form.
const snapshotForm = 1

func (h *handler) snapshot(w http.ResponseWriter, r *http.Request) error {
	return h.view(w, r, func(s *view.Snapshot) any { return s })
}

func (h *handler) messages(w http.ResponseWriter, r *http.Request) error {
	return h.view(w, r, func(s *view.Snapshot) any {
		return struct {
			At       int64          `json:"at"`
			Messages []view.Message `json:"messages"`
		}{s.At, s.Messages}
	})
}

func (h *handler) state(w http.ResponseWriter, r *http.Request) error {
	return h.view(w, r, func(s *view.Snapshot) any {
		return struct {
			At    int64       `json:"at"`
			State *view.State `json:"state"`
		}{s.At, s.State}
	})
}

func (h *handler) plan(w http.ResponseWriter, r *http.Request) error {
	return h.view(w, r, func(s *view.Snapshot) any {
		return struct {
			At   int64      `json:"at"`
			Plan *view.Plan `json:"plan"`
		}{s.At, s.Plan}
	})
}

// view answers with a part of a session's conversation. What it is at an offset
// never changes, so the offset makes the ETag.
func (h *handler) view(w http.ResponseWriter, r *http.Request, part func(*view.Snapshot) any) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	q := parseQuery(r, "at", "thread")
	at, thread := q.offset("at", -1), q.id("thread")
	if q.err != nil {
		return q.err
	}
	head, err := h.Sessions.Head(r.Context(), id)
	if err != nil {
		return err
	}
	if at > head.Head {
		return tapedeck.Errorf(tapedeck.Invalid, "session %s is at offset %d, you asked for %d", id, head.Head, at)
	}
	w.Header().Set("Cache-Control", "no-cache") // ask again each time, and get 304
	if tag := snapshotTag(&head, at); matches(r.Header.Get("If-None-Match"), tag) {
		w.Header().Set("ETag", tag)
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	var s view.Snapshot
	if at < 0 {
		s, err = h.latest(r.Context(), &head, thread)
	} else {
		s, err = h.at(r.Context(), &head, at, thread)
	}
	if err != nil {
		return err
	}
	s.Session.ID = id
	w.Header().Set("ETag", snapshotTag(&head, s.At))
	return writeJSON(w, http.StatusOK, part(&s))
}

func snapshotTag(s *tapedeck.Session, at int64) string {
	if at < 0 {
		at = s.Head
	}
	return fmt.Sprintf(`"%d-%d-%d"`, snapshotForm, s.Gen, at)
}

// matches reports whether If-None-Match names the tag.
func matches(header, tag string) bool {
	for v := range strings.SplitSeq(header, ",") {
		if v = strings.TrimSpace(v); v == "*" || strings.TrimPrefix(v, "W/") == tag {
			return true
		}
	}
	return false
}
