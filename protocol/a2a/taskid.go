package a2a

import (
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A ref says which events are those of a task.
type ref struct {
	session    string
	invocation string // the run, or the marker of a rewind; "" for the main thread of the session
}

// divider is between the session and the invocation in the id of a task. Neither of
// them can have this character, so the id needs no table.
const divider = "~"

// id returns the id of the task.
func (r ref) id() string {
	if r.invocation == "" {
		return r.session
	}
	return r.session + divider + r.invocation
}

// parseRef reads the id of a task.
func (h *Handler) parseRef(id string) (ref, error) {
	session, invocation, run := strings.Cut(id, divider)
	switch {
	case tapedeck.CheckID("the task", session) != nil,
		run && tapedeck.CheckID("the task", invocation) != nil,
		!run && h.Policy != PerSession:
		return ref{}, noTask(id)
	}
	return ref{session, invocation}, nil
}

// refOf returns the task of an invocation.
func (h *Handler) refOf(session, invocation string) ref {
	if h.Policy == PerSession {
		return ref{session: session}
	}
	return ref{session, invocation}
}

// has reports whether an event that is not about the session itself is one of the
// task.
func (r ref) has(e *tapedeck.Event) bool {
	if e.Channel == tapedeck.ChannelSession {
		return false
	}
	if r.invocation != "" {
		return e.Invocation == r.invocation && !payload.IsSubThread(e.ThreadName())
	}
	return e.ThreadName() == tapedeck.MainThread
}
