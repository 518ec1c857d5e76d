package rest

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/view"
)

// A filter selects events, as the parameters of a request say.
type filter struct {
	view.Filter
	effective bool // only active events pass; resolve sets the timeline
}

// filterNames are the parameters of a filter, and format.
var filterNames = []string{"channel", "thread", "type", "invocation", "view", "format"}

var channelNames = []string{
	tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState, tapedeck.ChannelWorkflow,
	tapedeck.ChannelTerminal, tapedeck.ChannelPresence, tapedeck.ChannelSession,
}

func parseFilter(q *httpapi.Query) filter {
	q.OneOf("format", "native", "native", "task", "channels") // see isTask and isChannels
	return filter{
		Filter: view.Filter{
			Channels:    q.List("channel", checkChannel),
			Threads:     q.List("thread", tapedeck.CheckID),
			Types:       q.List("type", tapedeck.CheckID),
			Invocations: q.List("invocation", tapedeck.CheckID),
		},
		effective: q.OneOf("view", "all", "all", "effective") == "effective",
	}
}

func checkChannel(_, name string) error {
	if !slices.Contains(channelNames, name) {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no channel %q", name).
			WithHint("the channels are chunks, toolCalls, agentState, workflow, terminal and presence; session is always included")
	}
	return nil
}

// resolve finds out which events are active now. Later events are active until an
// event reverts them, and that event passes the filter.
func (f *filter) resolve(ctx context.Context, h *handler, session string) error {
	if !f.effective {
		return nil
	}
	s, err := h.Sessions.Head(ctx, session)
	if err == nil {
		f.At = s.Head
		f.Timeline, err = h.Views.Timeline(ctx, session, s.Head)
	}
	return err
}
