package rest

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A filter selects events: those of any of the named channels, threads, types
// and invocations; an empty list is no condition. The session's own channel is
// part of every selection by channel or thread, for it says what becomes of
// the other events.
type filter struct {
	channels, threads, types, invocations []string
	task                                  bool // wanted in the form of the task protocol
	mains                                 bool // no threads of sub-agents

	effective bool           // only what is in force
	timeline  *view.Timeline // as of the offset below; nil until it was asked for
	at        int64
}

// filterNames are the parameters of a filter, and those that say the form: what
// they do not offer yet is refused, not ignored.
var filterNames = []string{"channel", "thread", "type", "invocation", "view", "format"}

var channelNames = []string{
	tapedeck.ChannelChunks, tapedeck.ChannelToolCalls, tapedeck.ChannelAgentState, tapedeck.ChannelWorkflow,
	tapedeck.ChannelTerminal, tapedeck.ChannelPresence, tapedeck.ChannelSession,
}

func (q *query) filter() filter {
	f := filter{
		channels:    q.list("channel", checkChannel),
		threads:     q.list("thread", tapedeck.CheckID),
		types:       q.list("type", tapedeck.CheckID),
		invocations: q.list("invocation", tapedeck.CheckID),
		task:        q.one("format", q.format, "native", "task") == "task",
		effective:   q.one("view", "all", "all", "effective") == "effective",
	}
	f.mains = f.task && f.nowhere()
	if f.task && (f.channels != nil || f.types != nil) {
		q.fail("channel and type go with format=native; format=task takes thread and invocation")
	}
	return f
}

// nowhere reports whether the filter names no thread and no invocation. Then the
// task protocol, which knows of one agent, leaves sub-agents out.
func (f *filter) nowhere() bool { return f.threads == nil && f.invocations == nil }

func checkChannel(_, name string) error {
	if !slices.Contains(channelNames, name) {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no channel %q", name).
			WithHint("the channels are chunks, toolCalls, agentState, workflow, terminal and presence; session is always included")
	}
	return nil
}

// empty reports whether everything passes, so that events need not be decoded.
func (f *filter) empty() bool {
	return f.channels == nil && f.threads == nil && f.types == nil && f.invocations == nil && !f.effective
}

// resolve finds out what is in force, as of now. What comes later is in force
// until an event says otherwise, which passes itself.
func (f *filter) resolve(ctx context.Context, h *handler, session string) error {
	if !f.effective || f.timeline != nil {
		return nil
	}
	s, err := h.Sessions.Head(ctx, session)
	if err == nil {
		f.at = s.Head
		f.timeline, err = h.Views.Timeline(ctx, session, s.Head)
	}
	return err
}

func (f *filter) match(e *tapedeck.Event) bool {
	if !among(f.types, e.Type) || !among(f.invocations, e.Invocation) {
		return false
	}
	if f.timeline != nil && e.Channel != tapedeck.ChannelSession && e.Offset < f.at && !f.timeline.Has(e.Offset, e.Thread, f.at) {
		return false
	}
	return e.Channel == tapedeck.ChannelSession || among(f.channels, e.Channel) && f.passes(e.ThreadName(), e.Invocation)
}

// passes reports whether an event of a thread and an invocation passes.
func (f *filter) passes(thread, invocation string) bool {
	return among(f.threads, thread) && among(f.invocations, invocation) && (!f.mains || !payload.IsSubThread(thread))
}

func among(list []string, s string) bool { return list == nil || slices.Contains(list, s) }
