package api

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A PresenceAction is what a user does in a session.
type PresenceAction string

// The actions.
const (
	PresenceJoin  PresenceAction = "join"  // the user opens the session; a repeated join is a move
	PresenceMove  PresenceAction = "move"  // the user looks at another place, or is still there; a first move is a join
	PresenceLeave PresenceAction = "leave" // the user closes the session
)

// PresenceLabel is the label of a session that asks the engine to store presence:
// the engine also appends the actions as presence.* events. Its value is
// [PresenceStored].
const (
	PresenceLabel  = "presence"
	PresenceStored = "stored"
)

// A PresenceNote reports where a user is. A user who sends nothing for a minute has
// left.
type PresenceNote struct {
	Session string          `json:"-"`
	Action  PresenceAction  `json:"action"`
	User    string          `json:"user,omitempty"`   // an id, see [tapedeck.CheckID]; required
	Cursor  json.RawMessage `json:"cursor,omitempty"` // the place that the user looks at: any JSON of at most 4 KiB, defined by the front end; absent: no change
}

// Present lists the users in a session.
type Present struct {
	Present []payload.Presence `json:"present"` // the users, in the order in which they joined
}

// A PresenceWatcher reports the users who join, move and leave.
type PresenceWatcher interface {
	Changed() <-chan struct{}  // receives when there are changes
	Changes() []tapedeck.Event // presence.* events without an offset since the last call; the first call reports all users in the session
	Stop()
}
