package rest

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/httpapi"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/protocol/rest/channels"
	"github.com/tapedeck/tapedeck/view"
)

// channelsBytes is how much of the log is read for one write. A reader that has stalled
// keeps this much in memory.
const channelsBytes = 32 << 10

// channelsBase marks requests that came to a base URL of the form of the six channels.
type channelsBase struct{}

// InChannels returns a handler that serves api in the form of the six channels
// (docs/protocol/channels.md): for programs that know no parameter format.
func InChannels(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), channelsBase{}, true)))
	})
}

// isChannels reports whether a request asks for the form of the six channels.
func isChannels(r *http.Request) bool {
	return r.Context().Value(channelsBase{}) != nil || r.URL.RawQuery != "" && r.URL.Query().Get("format") == "channels"
}

// A channelQuery is what a client asks for in the form of the six channels.
type channelQuery struct {
	session string
	filter  view.Filter
	from    int64    // the number of the first event
	life    int64    // the incarnation of the session that from is of; 0 if the client does not say it
	limit   int      // most events of a page
	agents  []string // only their events; nil for all
}

func parseChannels(r *http.Request, names ...string) (c channelQuery, err error) {
	if c.session, err = httpapi.SessionID(r); err != nil {
		return c, err
	}
	q := httpapi.ParseQuery(r, append([]string{"fromOffset", "from", "channel", "agent", "thread", "invocation", "format"}, names...)...)
	q.OneOf("format", "channels", "channels")
	c.filter = view.Filter{
		Channels: q.List("channel", checkSix), Threads: q.List("thread", tapedeck.CheckID), Invocations: q.List("invocation", tapedeck.CheckID),
	}
	c.agents = q.List("agent", tapedeck.CheckName)
	c.limit = q.Limit(pageLimit, pageLimit)
	c.from, c.life = q.FromCursor()
	if last := q.LastEventID(r); last != "" && q.Err == nil && len(names) == 1 && names[0] == "lastEventId" {
		n, life, ok := httpapi.ParseCursor(last)
		if !ok || n+1 <= 0 {
			q.Fail("the last event id must be the id of an event, such as 41@3, or its offset, not %q", last)
		}
		c.from, c.life = n+1, life
	}
	return c, q.Err
}

func checkSix(what, name string) error {
	if name == tapedeck.ChannelSession || checkChannel(what, name) != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "there is no channel %q in this form", name).
			WithHint("the channels are chunks, toolCalls, agentState, workflow, terminal and presence")
	}
	return nil
}

// A channelReader gives the events of a session from a place on.
type channelReader struct {
	channelQuery
	channels.Reader
	head   tapedeck.Session
	place  int64 // the offset of the log to begin at
	number int64 // of the next event
}

// openChannels finds the place of the first event.
func (h *handler) openChannels(ctx context.Context, c channelQuery) (*channelReader, error) {
	head, err := h.Sessions.Head(ctx, c.session)
	if err == nil {
		err = httpapi.CheckIncarnation(&head, c.session, c.life)
	}
	if err != nil {
		return nil, err
	}
	o := &channelReader{channelQuery: c, head: head}
	if o.place, o.number, err = h.Views.ChannelPlace(ctx, c.session, c.from); err != nil {
		return nil, err
	}
	if o.number < c.from {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "session %s has %d events in this form, you asked for events from %d", c.session, o.number, c.from).
			WithHint("read from %d or before", o.number)
	}
	o.Session = c.session
	o.Before = func() (view.Snapshot, error) {
		if o.place == 0 {
			return view.Snapshot{}, nil
		}
		return h.Views.Snapshot(ctx, c.session, view.Query{At: &o.place, Limit: 1})
	}
	return o, nil
}

// appendRow appends the row of the next event of the log. It reports false if the event has
// none, or the filter leaves it out; then b is unchanged.
func (o *channelReader) appendRow(b []byte, rec tapedeck.Record) ([]byte, bool, error) {
	if o.filter.IsEmpty() && o.agents == nil {
		if b, ok := o.AppendChunk(b, rec, o.number); ok {
			o.number++
			return b, true, nil
		}
	}
	e, err := rec.Event()
	if err != nil {
		return b, false, err
	}
	passes := false
	if view.InChannels(&e) {
		var row channels.Row
		if passes, err = o.passes(&e); err == nil && passes {
			row, err = o.Row(&e, o.number)
		}
		if err != nil {
			return b, false, err
		}
		if o.number++; passes {
			b = row.AppendJSON(b)
		}
	}
	return b, passes, o.Note(&e)
}

// passes reports whether the client has selected an event.
func (o *channelReader) passes(e *tapedeck.Event) (bool, error) {
	if ok := o.filter.Match(e); !ok || o.agents == nil {
		return ok, nil
	}
	name, err := o.AgentOf(e)
	return slices.Contains(o.agents, name), err
}

// channelPage answers with a page in the form of the six channels.
func (h *handler) channelPage(w http.ResponseWriter, r *http.Request) error {
	c, err := parseChannels(r, "limit")
	if err != nil {
		return err
	}
	o, err := h.openChannels(r.Context(), c)
	if err != nil {
		return err
	}
	b, page, err := h.gatherChannels(r.Context(), o, []byte(`{"events":[`))
	if err != nil {
		return err
	}
	total, err := h.Views.ChannelNumber(r.Context(), c.session, page.Head)
	if err != nil {
		return err
	}
	b = strconv.AppendInt(append(b, `],"next":`...), o.number, 10)
	b = httpapi.AppendCursor(b, o.number, &tapedeck.Session{Gen: o.head.Gen})
	b = strconv.AppendInt(append(b, `,"head":`...), total, 10)
	b = strconv.AppendBool(append(b, `,"closed":`...), page.Closed)
	httpapi.WriteBytes(w, http.StatusOK, append(b, "}\n"...))
	return nil
}

// gatherChannels appends the rows of a page, and returns the last page of the log without its
// records.
func (h *handler) gatherChannels(ctx context.Context, o *channelReader, b []byte) (_ []byte, page tapedeck.Page, err error) {
	start, rows := len(b), 0
	for scanned := 0; rows < o.limit && len(b) < start+pageBytes && scanned < scanLimit; {
		if page, err = h.Sessions.Read(ctx, o.session, tapedeck.Range{From: o.place, MaxBytes: pageBytes}); err != nil {
			return b, page, err
		}
		if err := httpapi.CheckIncarnation(&tapedeck.Session{Gen: page.Gen}, o.session, o.head.Gen); err != nil {
			return b, page, err
		}
		for _, rec := range page.Records {
			before := len(b)
			if rows > 0 {
				b = append(b, ',')
			}
			var shown bool
			if b, shown, err = o.appendRow(b, rec); err != nil {
				return b, page, err
			}
			if o.place, scanned = rec.Offset+1, scanned+1; !shown {
				b = b[:before]
				continue
			}
			if rows++; rows == o.limit || len(b) >= start+pageBytes {
				break
			}
		}
		if page.Records = nil; page.CaughtUp() {
			break
		}
	}
	return b, page, nil
}

// channelStream sends the events in the form of the six channels as they are appended.
func (h *handler) channelStream(w http.ResponseWriter, r *http.Request) error {
	c, err := parseChannels(r, "lastEventId")
	if err != nil {
		return err
	}
	o, err := h.openChannels(r.Context(), c)
	switch {
	case err != nil:
		return err
	case o.head.Closed && o.place >= o.head.Head:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case r.Method == http.MethodHead:
		_, err := sse.Start(w)
		return err
	}
	f := &channelFollower{channelReader: o, out: sse.NewStream(w, h.Heartbeat/2), sent: c.from - 1, suffix: httpapi.AppendIncarnation(nil, &o.head)}
	defer f.out.Close()
	options := tapedeck.FollowOptions{From: o.place, Gen: o.head.Gen, Idle: h.Heartbeat / 2, MaxBytes: channelsBytes}
	return h.follow(r, c.session, options, f.out, f.send)
}

// A channelFollower writes a session to one client, in the form of the six channels.
type channelFollower struct {
	*channelReader
	out    *sse.Stream
	sent   int64  // the number of the last event that was sent
	suffix []byte // what follows the number in an id
}

// send sends the events of a page of the log. It returns errEnd if nothing follows them.
func (f *channelFollower) send(p tapedeck.Page) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:0]
	if !f.out.Started() {
		b = append(b, "retry: 1000\n\n"...)
	}
	for _, rec := range p.Records {
		frame := strconv.AppendInt(append(b, "id: "...), f.number, 10)
		frame = append(append(frame, f.suffix...), "\ndata: "...)
		frame, shown, err := f.appendRow(frame, rec)
		if err != nil {
			return err
		}
		if shown {
			b, f.sent = append(frame, "\n\n"...), f.number-1
		}
	}
	var end error
	if p.CaughtUp() && p.Closed {
		end = errEnd
		id := ""
		if f.number-1 > f.sent { // so that a reconnect learns that it has everything
			id = strconv.FormatInt(f.number-1, 10) + string(f.suffix)
		}
		b = sse.AppendFrame(b, id, "end", []byte(`{"next":`+strconv.FormatInt(f.number, 10)+`,"reason":"closed"}`))
	}
	if err := f.out.Send(b); err != nil {
		return err
	}
	if cap(b) <= maxFrames {
		*buf = b
	}
	return end
}
