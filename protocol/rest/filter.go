package rest

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
)

// A filter selects events of any of the named channels, threads, types and
// invocations. A nil list selects all. The events of the session's own channel pass
// every selection by channel or thread: they say what becomes of the others.
type filter struct {
	channels, threads, types, invocations []string

	effective bool           // only active events pass
	timeline  *view.Timeline // which events below at were active at offset at; nil until it was asked for
	at        int64
}

// filterNames are the parameters of a filter, and format.
var filterNames = []string{"channel", "thread", "type", "invocation", "view", "format"}

var channelNames = []string{
	tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState, tapedeck.ChannelWorkflow,
	tapedeck.ChannelTerminal, tapedeck.ChannelPresence, tapedeck.ChannelSession,
}

func parseFilter(q *httpapi.Query) filter {
	q.OneOf("format", "native", "native", "task") // see isTask
	return filter{
		channels:    q.List("channel", checkChannel),
		threads:     q.List("thread", tapedeck.CheckID),
		types:       q.List("type", tapedeck.CheckID),
		invocations: q.List("invocation", tapedeck.CheckID),
		effective:   q.OneOf("view", "all", "all", "effective") == "effective",
	}
}

func checkChannel(_, name string) error {
	if !slices.Contains(channelNames, name) {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no channel %q", name).
			WithHint("the channels are chunks, toolCalls, agentState, workflow, terminal and presence; session is always included")
	}
	return nil
}

// isEmpty reports whether all events pass, so that they need not be decoded.
func (f *filter) isEmpty() bool {
	return f.channels == nil && f.threads == nil && f.types == nil && f.invocations == nil && !f.effective
}

// resolve finds out which events are active now. Later events are active until an
// event reverts them, and that event passes the filter.
func (f *filter) resolve(ctx context.Context, h *handler, session string) error {
	if !f.effective {
		return nil
	}
	s, err := h.Sessions.Head(ctx, session)
	if err == nil {
		f.at = s.Head
		f.timeline, err = h.Views.Timeline(ctx, session, s.Head)
	}
	return err
}

// match reports whether e passes.
func (f *filter) match(e *tapedeck.Event) bool {
	if !isOneOf(f.types, e.Type) || !isOneOf(f.invocations, e.Invocation) {
		return false
	}
	if e.Channel == tapedeck.ChannelSession {
		return true
	}
	reverted := f.timeline != nil && e.Offset < f.at && !f.timeline.Has(e.Offset, e.Thread, f.at)
	return !reverted && isOneOf(f.channels, e.Channel) && isOneOf(f.threads, e.ThreadName())
}

// isOneOf reports whether s is in list. Everything is in a nil list.
func isOneOf(list []string, s string) bool { return list == nil || slices.Contains(list, s) }
