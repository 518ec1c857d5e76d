package ws

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// A replayDecoder turns the messages of an agent's backend into events of the log. The
// protocol has no runs: the first message of an element begins one, and the end of a text
// ends it if nothing else is open in it.
type replayDecoder struct {
	elements map[string]*element // by thread; what is not here is restored from the log
	last     string              // the element that the socket named last
	mine     map[openKey]bool    // texts that the socket has begun and not ended
}

// maxElements is how many elements a decoder remembers.
const maxElements = 1000

// An element is what is open in the thread of an element.
type element struct {
	thread, invocation string                  // invocation is "" without a run
	texts              map[string]*writtenText // of the run, by the id of the message
	calls              []namedCall
	stale              bool // the log may have something else: only its names still serve
}

// A writtenText is a text that the backend writes. A run may open it again after its end.
type writtenText struct {
	text strings.Builder // as [payload.Piece.Units] has it
	open bool
}

// accept appends what a message of the backend becomes.
func (d *replayDecoder) accept(ctx context.Context, h *handler, session string, m *replayMessage) error {
	if !fromBackend[m.Type] {
		return tapedeck.Errorf(tapedeck.Unsupported, "there are no messages of type %.64q", m.Type).
			WithHint("a client sends %s, %s, %s, %s, and the messages of a backend", typeRequest, typeClear, typePing, typeTaskDone)
	}
	named := m.ElementID != ""
	if !named {
		if err := d.findElement(ctx, h, session, m); err != nil {
			return err
		}
	}
	if named {
		d.last = m.ElementID // also of one that is refused: what follows it is not of the element before
	}
	thread, err := threadOf(m.ElementID)
	if err != nil {
		return err
	}
	return d.persist(ctx, h, session, thread, m)
}

// maxTries is how often a message is written while the log changes under it.
const maxTries = 20

// persist writes a message to the thread of its element. The log may have changed since the
// last one, as by a clear: then a text that this socket has begun begins again, and its end
// ends nothing.
func (d *replayDecoder) persist(ctx context.Context, h *handler, session, thread string, m *replayMessage) error {
	mine := openKey{thread: thread, id: m.MessageID}
	if m.Type == typeTextStart {
		if len(d.mine) >= maxElements {
			clear(d.mine)
		}
		d.mine[mine] = true
	}
	growing := d.mine[mine] && (m.Type == typeTextContent || m.Type == typeTextEnd)
	if m.Type == typeTextEnd {
		delete(d.mine, mine)
	}
	was := d.elements[thread]
	fresh := was == nil || was.stale
	call, run := was.ends(m)
	for range maxTries {
		err := d.write(ctx, h, session, thread, m)
		var changed *changedError
		switch {
		case tapedeck.KindOf(err) != tapedeck.Conflict:
			return err
		case errors.As(err, &changed): // another socket has begun or ended the run
		case fresh && !growing && call == nil:
			return err
		}
		now, failed := d.element(ctx, h, session, thread) // as the log has it
		switch {
		case failed != nil, changed == nil && fresh && now.isOpen(m.MessageID):
			return err
		case call != nil && now.invocation != run: // a clear took it
			_ = d.write(ctx, h, session, thread, &replayMessage{Type: typeToolStart, ElementID: m.ElementID, ToolCallID: call.id, ToolName: call.name, ToolArgs: call.args})
		case !growing, now.isOpen(m.MessageID):
		case m.Type == typeTextEnd:
			return nil
		default:
			_ = d.write(ctx, h, session, thread, &replayMessage{Type: typeTextStart, ElementID: m.ElementID, MessageID: m.MessageID})
		}
		fresh = true
	}
	return d.write(ctx, h, session, thread, m)
}

// isOpen reports whether a text of the element is open.
func (el *element) isOpen(message string) bool {
	t := el.texts[message]
	return t != nil && t.open
}

// findElement sets the element of a message without one. A message that continues a text or a
// call has the element of that. Any other has the element that the socket named last.
func (d *replayDecoder) findElement(ctx context.Context, h *handler, session string, m *replayMessage) error {
	m.ElementID = d.last
	switch {
	case m.Type == typeToolEnd:
		d.findCall(m)
	case m.MessageID != "" && m.Type != typeTextStart:
		if err := d.findText(ctx, h, session, m); err != nil {
			return err
		}
	}
	if m.ElementID == "" {
		return tapedeck.Errorf(tapedeck.Invalid, "the message has no elementId, and this socket has named no element before")
	}
	return nil
}

// findText sets the element of a message to that of its text. Another socket may have begun
// the text.
func (d *replayDecoder) findText(ctx context.Context, h *handler, session string, m *replayMessage) error {
	if el := d.elements[threadNamed(d.last)]; el != nil && el.isOpen(m.MessageID) {
		return nil
	}
	for _, thread := range slices.Sorted(maps.Keys(d.elements)) {
		if d.elements[thread].isOpen(m.MessageID) {
			m.ElementID, _ = payload.ElementOf(thread)
			return nil
		}
	}
	now, err := h.Views.Snapshot(ctx, session, newest(-1))
	if err != nil {
		return err
	}
	for i := range now.Messages {
		t := &now.Messages[i]
		if element, ok := payload.ElementOf(t.Thread); ok && t.ID == m.MessageID && t.Status == tapedeck.StatusRunning {
			m.ElementID = element
			return nil
		}
	}
	return nil
}

// element returns what is open in a thread.
func (d *replayDecoder) element(ctx context.Context, h *handler, session, thread string) (*element, error) {
	if el := d.elements[thread]; el != nil && !el.stale {
		return el, nil
	}
	el, err := restoreElement(ctx, h, session, thread)
	if err != nil {
		return nil, err
	}
	if len(d.elements) >= maxElements {
		clear(d.elements)
	}
	d.elements[thread] = el
	return el, nil
}

// write appends a message to the thread of its element.
func (d *replayDecoder) write(ctx context.Context, h *handler, session, thread string, m *replayMessage) error {
	el, err := d.element(ctx, h, session, thread)
	if err != nil {
		return err
	}
	run := el.invocation
	events, err := el.events(m)
	if err == nil && len(events) > 0 {
		_, err = h.Verbs.Append(ctx, tapedeck.Append{Session: session, Events: events, Check: isOpen(thread, run)})
		if tapedeck.KindOf(err) == tapedeck.Conflict {
			err = &changedError{err}
		}
	}
	if err != nil {
		el.stale = true // it may differ from the log now
	}
	return err
}

// A changedError is the refusal of events that the log had no place for, because it has
// changed since the decoder saw it.
type changedError struct{ error }

func (e *changedError) Unwrap() error { return e.error }

// isOpen checks that a run is still open. A clear may have ended it.
func isOpen(thread, run string) func(*tapedeck.Session) error {
	if run == "" {
		return nil
	}
	return func(s *tapedeck.Session) error {
		if slices.ContainsFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Thread == thread && r.Invocation == run }) {
			return nil
		}
		return tapedeck.Errorf(tapedeck.Conflict, "run %s has ended", run)
	}
}

// leave ends the run that a backend has written in an element, when a frame of the diagram
// says that the element is done.
func (d *replayDecoder) leave(ctx context.Context, h *handler, session string, m *replayMessage) error {
	thread := threadNamed(m.ElementID)
	el, err := d.element(ctx, h, session, thread)
	if err != nil || el.invocation == "" {
		return err
	}
	var end payload.Payload
	switch m.Type {
	case typeElement:
		end = payload.RunFinished{ThreadID: thread, RunID: el.invocation}
	case typeTaskError:
		end = payload.RunError{Message: "the task failed"}
	case typeCancelled:
		end = payload.RunFinished{ThreadID: thread, RunID: el.invocation, Outcome: &payload.Outcome{Type: payload.OutcomeCancelled}}
	default:
		return nil
	}
	delete(d.elements, thread)
	var events []tapedeck.Event
	for _, id := range slices.Sorted(maps.Keys(el.texts)) {
		if el.texts[id].open {
			events = append(events, payload.NewEvent(payload.TextMessageEnd{MessageID: id}))
		}
	}
	events = append(events, payload.NewEvent(end))
	for i := range events {
		events[i].Thread, events[i].Invocation = thread, el.invocation
	}
	_, err = h.Verbs.Append(ctx, tapedeck.Append{Session: session, Events: events})
	if tapedeck.KindOf(err) == tapedeck.Conflict { // it has ended already
		err = nil
	}
	return err
}

var fromBackend = map[string]bool{
	typeTextStart: true, typeTextContent: true, typeTextEnd: true, typeTextChunk: true, typeThinking: true, typeToolStart: true, typeToolEnd: true,
}

// restoreElement returns what is open in a thread of the log, so that a backend can
// continue after a reconnect.
func restoreElement(ctx context.Context, h *handler, session, thread string) (*element, error) {
	el := &element{thread: thread, texts: make(map[string]*writtenText)}
	s, err := h.Sessions.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.Runs, func(r tapedeck.OpenRun) bool { return r.Thread == thread })
	if i < 0 {
		return el, nil
	}
	if el.invocation = s.Runs[i].Invocation; s.Runs[i].Owner != "" {
		name, _ := payload.ElementOf(thread)
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the agent of element %s is run by the server, which writes what it does", name).
			WithHint("wait until its run %s ends, or cancel it", el.invocation)
	}
	now, err := h.Views.Snapshot(ctx, session, shown(s.Head, thread))
	if err != nil {
		return nil, err
	}
	for i := range now.Messages {
		if m := &now.Messages[i]; m.Invocation == el.invocation && m.Role != roleReasoning {
			t := &writtenText{open: m.Status == tapedeck.StatusRunning}
			t.text.WriteString(m.Pieces().Units())
			el.texts[m.ID] = t
		}
	}
	for i := range now.Calls {
		if c := &now.Calls[i]; c.Result == nil && c.Invocation == el.invocation {
			el.calls = append(el.calls, namedCall{id: c.ID, name: c.Name})
		}
	}
	return el, nil
}

// events returns the events of a message, and changes the element by them.
func (el *element) events(m *replayMessage) ([]tapedeck.Event, error) {
	var out []tapedeck.Event
	if el.invocation == "" {
		if m.Type == typeTextContent || m.Type == typeTextEnd || m.Type == typeToolEnd {
			return nil, tapedeck.Errorf(tapedeck.Conflict, "element %s has nothing open that %s could continue", m.ElementID, m.Type)
		}
		el.invocation = tapedeck.NewID("inv_")
		out = append(out, payload.NewEvent(payload.RunStarted{ThreadID: el.thread, RunID: el.invocation}))
	}
	list, err := el.payloads(m)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		out = append(out, payload.NewEvent(p))
	}
	at, _ := time.Parse(time.RFC3339, m.Timestamp) // a time that is not understood is left out
	for i := range out {
		out[i].Thread, out[i].Invocation, out[i].Time = el.thread, el.invocation, at
	}
	if (m.Type == typeTextEnd || m.Type == typeTextChunk) && el.rests() {
		end := payload.NewEvent(payload.RunFinished{ThreadID: el.thread, RunID: el.invocation})
		end.Thread, end.Invocation = el.thread, el.invocation
		out, el.invocation = append(out, end), ""
		clear(el.texts)
	}
	return out, nil
}

// rests reports whether nothing is open in the element.
func (el *element) rests() bool {
	for _, t := range el.texts {
		if t.open {
			return false
		}
	}
	return len(el.calls) == 0
}

func (el *element) payloads(m *replayMessage) ([]payload.Payload, error) {
	switch m.Type {
	case typeThinking:
		if m.Message == "" {
			return nil, tapedeck.Errorf(tapedeck.Invalid, "the message has no message")
		}
		content, _ := json.Marshal(m.Message) // a string can be encoded
		return []payload.Payload{payload.MessageAdded{Message: payload.Message{ID: tapedeck.NewID("msg_"), Role: roleReasoning, Content: content}}}, nil
	case typeTextStart:
		return el.textStart(m)
	case typeTextContent:
		return el.content(m)
	case typeTextEnd:
		if t := el.texts[m.MessageID]; t != nil {
			t.open = false
		}
		return []payload.Payload{payload.TextMessageEnd{MessageID: m.MessageID}}, nil
	case typeTextChunk:
		return el.chunk(m)
	case typeToolStart:
		return el.toolStart(m)
	}
	return el.toolEnd(m)
}

func (el *element) textStart(m *replayMessage) ([]payload.Payload, error) {
	switch m.Role {
	case "":
		m.Role = roleAssistant
	case roleAssistant, roleUser:
	default:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "a text message has no role %.64q", m.Role).WithHint("the roles are %s and %s", roleAssistant, roleUser)
	}
	if el.texts[m.MessageID] == nil {
		el.texts[m.MessageID] = new(writtenText)
	}
	el.texts[m.MessageID].open = true
	return []payload.Payload{payload.TextMessageStart{MessageID: m.MessageID, Role: m.Role}}, nil
}

// chunk adds a sentence to a text. A text that is not open is the sentence alone.
func (el *element) chunk(m *replayMessage) ([]payload.Payload, error) {
	if m.Content == nil {
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the message has no content")
	}
	sentence := *m
	sentence.Delta, sentence.Content = m.Content, nil
	if el.isOpen(m.MessageID) {
		return el.content(&sentence)
	}
	start, err := el.textStart(&sentence)
	if err != nil {
		return nil, err
	}
	text, err := el.content(&sentence)
	el.texts[m.MessageID].open = false
	return append(append(start, text...), payload.TextMessageEnd{MessageID: m.MessageID}), err
}

// content returns the new part of a text: what the text so far has more than before, or
// the delta of a message without it. So a backend can send the text so far again after a
// lost connection, and what was lost with the connection is added.
func (el *element) content(m *replayMessage) ([]payload.Payload, error) {
	t := el.texts[m.MessageID]
	switch {
	case !el.isOpen(m.MessageID):
		return nil, tapedeck.Errorf(tapedeck.Conflict, "message %.64q is not open", m.MessageID).WithHint("send %s first", typeTextStart)
	case m.Delta == nil && m.Content == nil:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the message has neither delta nor content")
	case m.Delta != nil && m.Content != nil && !strings.HasSuffix(m.Content.Units(), m.Delta.Units()):
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the content of message %.64q does not end with its delta", m.MessageID).
			WithHint("content is the whole text so far, with the delta; send one of them")
	}
	delta, known := "", t.text.String()
	switch {
	case m.Content == nil:
		delta = m.Delta.Units()
	case strings.HasPrefix(known, m.Content.Units()): // it was sent before
	case !strings.HasPrefix(m.Content.Units(), known):
		return nil, tapedeck.Errorf(tapedeck.Conflict, "the content of message %.64q does not continue what was sent before", m.MessageID)
	default:
		delta = m.Content.Units()[len(known):]
	}
	if delta == "" {
		return nil, nil
	}
	t.text.WriteString(delta)
	return []payload.Payload{payload.TextMessageContent{MessageID: m.MessageID, Delta: payload.Piece(delta)}}, nil
}
