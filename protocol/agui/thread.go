package agui

import (
	"strings"

	"github.com/tapedeck/tapedeck"
)

// A place is where a thread of AG-UI is in the log. The id of the main thread of a
// session is the id of the session. That of another thread is both names with a
// slash between them.
type place struct {
	id      string // as the client writes it
	session string
	lane    string // the thread in the session
}

func parseThread(id string) (place, error) {
	session, lane, divided := strings.Cut(id, "/")
	p := place{id, session, lane}
	if !divided {
		p.lane = tapedeck.MainThread
	}
	err := tapedeck.CheckID("the threadId", p.session)
	if err == nil {
		err = tapedeck.CheckID("the thread in the threadId", p.lane)
	}
	return p, err
}
