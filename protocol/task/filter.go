package task

import (
	"context"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// A filter selects events of any of the named threads and invocations. A nil list
// selects all. The events of the session's own channel always pass: they say what
// becomes of the others.
type filter struct {
	threads, invocations []string
	noSubAgents          bool // the threads of sub-agents do not pass

	effective bool           // only active events pass
	timeline  *view.Timeline // which events below at were active at offset at; nil until it was asked for
	at        int64
}

// filterNames are the parameters of a filter. channel and type are known so that the
// error can say which format has them.
var filterNames = []string{"channel", "thread", "type", "invocation", "view", "format"}

func parseFilter(q *httpapi.Query) filter {
	f := parseRuns(q)
	f.effective = q.OneOf("view", "all", "all", "effective") == "effective"
	q.OneOf("format", "task", "task")
	if q.Values.Has("channel") || q.Values.Has("type") {
		q.Fail("channel and type go with format=native; format=task takes thread and invocation")
	}
	return f
}

// parseRuns reads which runs are wanted. The protocol knows one agent, so without a
// thread and an invocation the runs of sub-agents are left out.
func parseRuns(q *httpapi.Query) filter {
	f := filter{
		threads:     q.List("thread", tapedeck.CheckID),
		invocations: q.List("invocation", tapedeck.CheckID),
	}
	f.noSubAgents = f.threads == nil && f.invocations == nil
	return f
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
	if !isOneOf(f.invocations, e.Invocation) {
		return false
	}
	if e.Channel == tapedeck.ChannelSession {
		return true
	}
	reverted := f.timeline != nil && e.Offset < f.at && !f.timeline.Has(e.Offset, e.Thread, f.at)
	return !reverted && f.selects(e.ThreadName(), e.Invocation)
}

// selects reports whether the events of an invocation on a thread pass.
func (f *filter) selects(thread, invocation string) bool {
	return isOneOf(f.threads, thread) && isOneOf(f.invocations, invocation) && (!f.noSubAgents || !payload.IsSubThread(thread))
}

// isOneOf reports whether s is in list. Everything is in a nil list.
func isOneOf(list []string, s string) bool { return list == nil || slices.Contains(list, s) }
