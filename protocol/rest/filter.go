package rest

import (
	"slices"

	"github.com/tapedeck/tapedeck"
)

// A filter selects events: those of any of the named channels, threads, types
// and invocations; an empty list is no condition. The session's own channel is
// part of every selection by channel or thread, for it says what becomes of
// the other events.
type filter struct {
	channels, threads, types, invocations []string
}

// filterNames are the parameters of a filter, and those that say the form: what
// they do not offer yet is refused, not ignored.
var filterNames = []string{"channel", "thread", "type", "invocation", "view", "format"}

var channels = []string{
	tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState, tapedeck.ChannelWorkflow,
	tapedeck.ChannelTerminal, tapedeck.ChannelPresence, tapedeck.ChannelSession,
}

func (q *query) filter() filter {
	q.one("view", "all", "all")
	q.one("format", "native", "native")
	return filter{
		channels:    q.list("channel", checkChannel),
		threads:     q.list("thread", tapedeck.CheckID),
		types:       q.list("type", tapedeck.CheckID),
		invocations: q.list("invocation", tapedeck.CheckID),
	}
}

func checkChannel(_, name string) error {
	if !slices.Contains(channels, name) {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no channel %q", name).
			WithHint("the channels are chunks, toolCalls, agentState, workflow, terminal and presence; session is always included")
	}
	return nil
}

// empty reports whether everything passes, so that events need not be decoded.
func (f *filter) empty() bool {
	return f.channels == nil && f.threads == nil && f.types == nil && f.invocations == nil
}

func (f *filter) match(e *tapedeck.Event) bool {
	if !among(f.types, e.Type) || !among(f.invocations, e.Invocation) {
		return false
	}
	return e.Channel == tapedeck.ChannelSession || among(f.channels, e.Channel) && among(f.threads, e.ThreadName())
}

func among(list []string, s string) bool { return list == nil || slices.Contains(list, s) }
