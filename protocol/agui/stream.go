package agui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/aguiwire"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/internal/problem"
	"github.com/tapedeck/tapedeck/internal/sse"
	"github.com/tapedeck/tapedeck/payload"
)

// readBytes is how much is read for one write. A client that has stalled keeps this
// much in memory.
const readBytes = 128 << 10

// A stream sends one run of a thread to a client. It begins with RUN_STARTED and
// ends with RUN_FINISHED or RUN_ERROR, whatever happens.
type stream struct {
	profile
	*handler
	place
	out        *sse.Stream
	invocation string          // whose events it sends
	runID      string          // as the client knows the run
	known      map[string]bool // ids of the messages that the client has; also keys of calls, see callKey

	naming aguiwire.Naming // of its messages and calls
	stale  bool            // the client has messages that no event can correct, see refresh

	begun   bool // RUN_STARTED was sent
	ended   bool
	open    openThings
	pending []question
	delta   delta  // not in buf yet
	buf     []byte // frames that were not sent
	state   int64  // offset of the newest event that changed the state
}

// A question is a pending permission that the client must answer.
type question struct {
	id        string
	interrupt payload.Interrupt
}

var (
	errStopped = tapedeck.Errorf(tapedeck.Unavailable, "the server stops").WithHint("connect again; the run was ended")
	errCutOff  = tapedeck.Errorf(tapedeck.Gone, "the session ended before its run did")
)

func (h *handler) newStream(w http.ResponseWriter, in *input, invocation, runID string) *stream {
	return &stream{
		profile: in.profile(), handler: h, place: in.place, out: sse.NewStream(w, heartbeat),
		invocation: invocation, runID: runID, known: map[string]bool{}, naming: aguiwire.NewNaming(),
	}
}

// send sends the gathered frames.
func (s *stream) send() error {
	s.flush()
	err := s.out.Send(s.buf)
	s.buf = s.buf[:0]
	return err
}

// put gathers an event that is encoded.
func (s *stream) put(event []byte) {
	s.flush()
	s.buf = sse.AppendFrame(s.buf, "", "", event)
}

// follow sends the events of the run from an offset on, until the run ends or waits
// for an answer. An error before the first frame is the answer of the request; later
// it becomes RUN_ERROR.
func (s *stream) follow(r *http.Request, from int64) error {
	defer s.out.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.Stop, cancel)()
	o := tapedeck.FollowOptions{From: from, Idle: heartbeat / 2, MaxBytes: readBytes}
	for page, err := range s.Sessions.Follow(ctx, s.session, o) {
		if err == nil {
			err = s.page(ctx, page)
		}
		switch {
		case errors.Is(err, sse.ErrDisconnected), err != nil && r.Context().Err() != nil:
			return nil
		case err != nil && !s.out.Started() && s.buf == nil:
			return err
		case err != nil:
			if s.Stop.Err() != nil {
				err = errStopped
			}
			s.fail(r, err)
			return nil
		case s.ended:
			return nil
		}
	}
	s.fail(r, errCutOff)
	return nil
}

// page sends the events of a page.
func (s *stream) page(ctx context.Context, page tapedeck.Page) error {
	for _, rec := range page.Records {
		e, err := rec.Event()
		if err == nil && e.Type == tapedeck.AttemptSuperseded {
			err = s.again(ctx, &e)
		}
		if err != nil {
			return err
		}
		if e.Invocation == s.invocation && (e.Type == tapedeck.RunFinished || e.Type == tapedeck.RunError) {
			if err := s.refresh(ctx, e.Offset); err != nil {
				return err
			}
		}
		if s.add(&e); s.ended {
			return s.send()
		}
	}
	if err := s.refresh(ctx, page.Next); err != nil {
		return err
	}
	if s.begun && len(s.pending) > 0 && page.CaughtUp() {
		s.wait()
	}
	return s.send()
}

// fail ends the stream with an error.
func (s *stream) fail(r *http.Request, err error) {
	seen := problem.Shown(r, err, s.Logger)
	message := seen.Message
	if seen.Hint != "" {
		message += "; " + seen.Hint
	}
	s.put(frame(tapedeck.RunError, text("message", message), text("code", string(seen.Kind))))
	s.ended = true
	_ = s.send() // the stream ends in any case
}

// add gathers what the client gets for an event of the log.
func (s *stream) add(e *tapedeck.Event) {
	if e.ThreadName() != s.lane || e.Channel == tapedeck.ChannelSession {
		return
	}
	ours := e.Invocation == s.invocation
	switch {
	case ours && e.Type == tapedeck.RunStarted:
		s.begin(e)
	case !s.begun:
	case e.Type == tapedeck.PermissionRequested && ours:
		s.ask(e)
	case e.Type == tapedeck.PermissionAnswered:
		s.answered(e)
	case e.Type == tapedeck.MessageAdded:
		s.message(e)
	case ours:
		s.content(e)
	}
}

func (s *stream) content(e *tapedeck.Event) {
	if s.isOdd(e) {
		s.stale = true
		return
	}
	log := e
	switch e = s.naming.Event(e); e.Type {
	case tapedeck.RunFinished:
		s.finish(e)
	case tapedeck.RunError:
		s.runError(e)
	case tapedeck.MessagesSnapshot:
		s.restated(e)
	case tapedeck.StateSnapshot, tapedeck.StateDelta:
		s.state = e.Offset
		fallthrough
	default:
		s.open.note(e, log)
		if s.delta.add(s, e) {
			return
		}
		again := s.isKnown(e)
		if b, ok := s.event(e, again); ok {
			s.putBounded(e, b)
		}
	}
}

// isOdd reports whether the client must not get an event, because it would show more than
// the conversation has: the answer to a call that nobody has made, or that was answered
// before. It notes the calls that wait for an answer.
func (s *stream) isOdd(e *tapedeck.Event) bool {
	if e.Type != tapedeck.ToolCallStart && e.Type != tapedeck.ToolCallResult {
		return false
	}
	id := jsonobj.StringOf(jsonobj.Member(e.Data, "toolCallId"))
	switch {
	case id == "":
	case e.Type == tapedeck.ToolCallStart:
		s.naming.Unanswered[id] = true
	case !s.naming.Unanswered[id]:
		return true
	default:
		s.naming.Unanswered[id] = false
	}
	return false
}

// isKnown reports whether an event opens or replaces a message or call that the client has. It notes what the
// client knows after the event.
func (s *stream) isKnown(e *tapedeck.Event) bool {
	key := idOf(e, "messageId")
	switch e.Type {
	case tapedeck.TextMessageStart, tapedeck.ReasoningMessageStart, tapedeck.ActivitySnapshot:
	case tapedeck.ToolCallStart:
		key = callKey(idOf(e, "toolCallId"))
	default:
		return false
	}
	was := s.known[key]
	s.known[key] = true
	return was
}

// callKey is the key of a call in [stream.known]. A call and a message may have the
// same id.
func callKey(id string) string { return "call\x00" + id }

// putBounded gathers an event, unless no client accepts an event of its size.
func (s *stream) putBounded(e *tapedeck.Event, b []byte) {
	switch {
	case len(b) <= maxFrame:
		s.put(b)
	case e.Type == tapedeck.ToolCallResult:
		if d, err := payload.DecodeAs[payload.ToolCallResult](*e); err == nil {
			m := payload.Message{ID: d.MessageID, Role: payload.RoleTool, ToolCallID: d.ToolCallID, Content: d.Content, SubagentRunID: d.SubagentRunID}
			s.putAll(s.whole(new(s.clean(m, e, true))))
		}
	default:
		s.Logger.Warn("an event is too large for AG-UI", "session", s.session, "offset", e.Offset, "type", e.Type, "bytes", len(b))
	}
}

func (s *stream) putAll(events [][]byte) {
	for _, b := range events {
		s.put(b)
	}
}

// begin gathers RUN_STARTED. e is that of the log, nil if the run began before.
func (s *stream) begin(e *tapedeck.Event) {
	members := []member{text("threadId", s.id), text("runId", s.runID)}
	if s.profile != legacy {
		members = append(members, text("protocolVersion", protocolVersion))
	}
	if e != nil {
		members = append(members, encode("metadata", metadata(nil, e.Offset, e.Invocation, true)))
	}
	s.put(frame(tapedeck.RunStarted, members...))
	s.begun = true
}

// end gathers RUN_FINISHED.
func (s *stream) end(outcome *payload.Outcome, more ...member) {
	members := []member{text("threadId", s.id), text("runId", s.runID)}
	if outcome = s.outcome(outcome); outcome != nil {
		members = append(members, encode("outcome", outcome))
	}
	s.put(frame(tapedeck.RunFinished, append(members, more...)...))
	s.ended = true
}

func (s *stream) finish(e *tapedeck.Event) {
	d, err := payload.DecodeAs[payload.RunFinished](*e)
	if err != nil { // it was erased
		d = payload.RunFinished{}
	}
	more := []member{{"result", d.Result}, encode("metadata", metadata(nil, e.Offset, e.Invocation, true))}
	if d.Outcome != nil && d.Outcome.Type == payload.OutcomeCancelled {
		more = more[1:]
	}
	if s.profile != legacy && len(d.Usage) > 0 {
		more = append(more, encode("usage", d.Usage))
	}
	s.end(s.naming.Outcome(d.Outcome), more...)
}

func (s *stream) runError(e *tapedeck.Event) {
	d, err := payload.DecodeAs[payload.RunError](*e)
	if err != nil || d.Message == "" {
		d.Message = "the run failed"
	}
	s.put(frame(tapedeck.RunError, text("message", d.Message), text("code", d.Code), encode("metadata", metadata(nil, e.Offset, e.Invocation, true))))
	s.ended = true
}

// message gathers a whole message that was added during the run.
func (s *stream) message(e *tapedeck.Event) {
	var d payload.MessageAdded
	if json.Unmarshal(e.Data, &d) != nil || d.Message.ID == "" {
		return
	}
	waits, made := s.naming.Unanswered[d.Message.ToolCallID]
	if d.Message.Role == payload.RoleTool && made && !waits { // it replaces the answer
		s.stale = true
	}
	m, fresh := s.naming.Whole(d.Message, e)
	if !fresh {
		s.stale = s.stale || aguiwire.KindOf(m.Role) != aguiwire.Told // the client has what it has said
		return
	}
	raw, _ := json.Marshal(m.Metadata)
	if payload.PromptOf(m.Role, raw) == "" {
		s.known[m.ID] = true
		s.putAll(s.whole(new(s.clean(m, e, true))))
	}
}

// restated gathers the messages that an agent restates.
func (s *stream) restated(e *tapedeck.Event) {
	d, err := payload.DecodeAs[payload.MessagesSnapshot](*e)
	if err != nil {
		return
	}
	ids := map[string]bool{}
	for i := range d.Messages {
		d.Messages[i] = s.clean(d.Messages[i], e, false)
		ids[d.Messages[i].ID] = true
	}
	if s.naming.Restated(d.Messages); len(ids) < len(d.Messages) {
		s.stale = true // they need ids of their own
		return
	}
	s.snapshot(d.Messages, member{})
}

// snapshot gathers MESSAGES_SNAPSHOT, and the messages that have no space in its
// frame as events.
func (s *stream) snapshot(messages []payload.Message, metadata member) {
	list, rest := split(messages)
	s.put(frame(tapedeck.MessagesSnapshot, member{"messages", list}, metadata))
	for i := range rest {
		s.putAll(s.whole(&rest[i]))
	}
}
