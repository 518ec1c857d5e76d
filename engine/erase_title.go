package engine

import (
	"context"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A session without a title of its own has the first line of its first request as its
// title, and the log has that in a second event. A user who erases the request wants to
// erase the title, too.

// titleFrom returns the title that a session would get from ev, "" if ev is not a request
// of a user.
func titleFrom(ev *tapedeck.Event) string {
	if ev.Type != tapedeck.MessageAdded || ev.Erased() {
		return ""
	}
	p, err := payload.Decode(*ev)
	if err != nil {
		return "" // an event without the shape of its type has no text to show
	}
	added, ok := p.(payload.MessageAdded)
	if !ok || added.Message.Role != payload.RoleUser {
		return ""
	}
	return titleOf(added.Message.Text())
}

// titled returns the ranges of the session's own events that set one of the titles and
// nothing else: an event with labels or a state had its title from a client, not from
// a request.
func (e *Engine) titled(ctx context.Context, s *tapedeck.Session, titles map[string]bool) ([]tapedeck.OffsetRange, error) {
	var out []tapedeck.OffsetRange
	for ev, err := range tapedeck.Events(ctx, e.store, s.ID, s.ForkedAt) {
		if err != nil {
			return nil, err
		}
		if titles[onlyTitle(&ev)] {
			out = append(out, tapedeck.OffsetRange{From: ev.Offset, To: ev.Offset + 1})
		}
	}
	return out, nil
}

// onlyTitle returns the title that ev sets, "" if it sets none or also something else
// that would be lost with it.
func onlyTitle(ev *tapedeck.Event) string {
	switch ev.Type {
	case tapedeck.SessionCreated, tapedeck.SessionImported, tapedeck.SessionRenamed:
	default:
		return ""
	}
	var d struct {
		Title  string `json:"title"`
		Labels any    `json:"labels"`
		State  any    `json:"state"`
	}
	if !ev.Unpack(&d) || d.Labels != nil || d.State != nil {
		return ""
	}
	return d.Title
}
