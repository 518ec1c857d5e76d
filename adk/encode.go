package adk

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// stored is the metadata, under the name "adk", of the events that this package appends.
// One event of Tapedeck for each event of ADK has Items, and the event of ADK itself as
// its rawEvent. That one lacks what the events of the catalogue have: texts, data,
// arguments and answers. So each of them is in the log once, and an erasure removes it.
type stored struct {
	Invocation string   `json:"invocation,omitempty"` // RUN_STARTED: of ADK
	Event      bool     `json:"event,omitempty"`      // the rawEvent is an event of ADK
	Items      []*piece `json:"items,omitempty"`      // by part; nil for a part that the rawEvent has whole
	Shares     bool     `json:"shares,omitempty"`     // it changes the state of the app or of the user
}

// A piece says which message or tool call has the rest of a part.
type piece struct {
	ID   string `json:"id"`
	Part *int   `json:"part,omitempty"` // index in the content of the message; nil if the content is a text
}

// metadata returns metadata with a member "adk".
func metadata(s stored) tapedeck.Members {
	b, _ := json.Marshal(s) // it cannot fail: strings, numbers and booleans only
	return tapedeck.Members{"adk": b}
}

// encoded says what an append of an ADK event has.
type encoded struct {
	*builder
	carrier int  // index of the event with the rawEvent; -1 before there is one
	failed  bool // the tool of the newest result failed
	meta    stored
	err     error // of a value that is not JSON
}

// encode returns the events of an ADK event. If the plugin does not watch the invocation,
// the final response ends the run.
func (c *conversation) encode(event *session.Event, attended bool) (*encoded, error) {
	e := &encoded{builder: c.newBuilder(event.InvocationID, event.Author), carrier: -1, meta: stored{Event: true}}
	change := splitDelta(event.Actions.StateDelta)
	e.meta.Shares = change.shares()
	raw := *event
	if event.Author != userAuthor && calls(event) {
		e.r.turn++
	}
	if event.Content != nil {
		content := *event.Content
		content.Parts = e.parts(event)
		raw.Content = &content
	}
	e.endStreamOf(event)
	if err := e.carry(&raw); err != nil {
		return nil, err
	}
	if err := e.addState(change.session); err != nil {
		return nil, err
	}
	e.addUsage(event)
	e.start()
	e.note(event)
	if !attended && e.r.final && len(e.r.waiting) == 0 {
		e.end()
	}
	return e, nil
}

// calls reports whether an event has something that a model call made.
func calls(event *session.Event) bool {
	return event.Content != nil && slices.ContainsFunc(event.Content.Parts, func(p *genai.Part) bool {
		return p != nil && (p.Text != "" || p.FunctionCall != nil)
	})
}

// parts adds the events of the parts, and returns the parts without what these events
// have.
func (e *encoded) parts(event *session.Event) []*genai.Part {
	rest := slices.Clone(event.Content.Parts)
	e.meta.Items = make([]*piece, len(rest))
	if event.Author == userAuthor {
		e.userMessage(rest)
	}
	for i, p := range rest {
		if p == nil || e.meta.Items[i] != nil {
			continue
		}
		left := *p
		switch {
		case p.Text != "" && event.Author != userAuthor:
			e.meta.Items[i], left.Text = &piece{ID: e.text(event, p)}, ""
		case p.FunctionCall != nil:
			call := *p.FunctionCall
			e.meta.Items[i], call.Args, left.FunctionCall = &piece{ID: e.call(event, i, p.FunctionCall)}, nil, &call
		case p.FunctionResponse != nil:
			answer := *p.FunctionResponse
			e.meta.Items[i], answer.Response, left.FunctionResponse = &piece{ID: e.result(event, p.FunctionResponse)}, nil, &answer
		default:
			continue
		}
		rest[i] = &left
	}
	if !slices.ContainsFunc(e.meta.Items, func(p *piece) bool { return p != nil }) {
		e.meta.Items = nil
	}
	return rest
}

// userMessage adds the message that a user has sent: texts and files. It removes them from
// the parts.
func (e *encoded) userMessage(parts []*genai.Part) {
	id := tapedeck.NewID("msg_")
	var content []map[string]any
	for i, p := range parts {
		if p == nil {
			continue
		}
		shown := contentPart(p)
		if shown == nil {
			continue
		}
		left, at := *p, len(content)
		left.Text = ""
		if p.InlineData != nil {
			blob := *p.InlineData
			blob.Data, left.InlineData = nil, &blob
		}
		parts[i], e.meta.Items[i] = &left, &piece{ID: id, Part: &at}
		content = append(content, shown)
	}
	if len(content) == 0 {
		return
	}
	m := payload.Message{ID: id, Role: payload.RoleUser}
	if text, ok := content[0]["text"].(string); ok && len(content) == 1 {
		m.Content = payload.Text(text)
		for _, p := range e.meta.Items {
			if p != nil {
				p.Part = nil
			}
		}
	} else {
		m.Content, _ = json.Marshal(content) // it cannot fail: strings only
	}
	e.place(payload.NewEvent(payload.MessageAdded{Message: m}))
	e.carrier = len(e.out) - 1
}

// contentPart returns a part as the content of an AG-UI message, nil if that has no form
// for it.
func contentPart(p *genai.Part) map[string]any {
	switch {
	case p.Text != "":
		return map[string]any{"type": "text", "text": p.Text}
	case p.InlineData != nil:
		return map[string]any{"type": mediaType(p.InlineData.MIMEType), "source": map[string]any{
			"type": "data", "value": base64.StdEncoding.EncodeToString(p.InlineData.Data), "mimeType": p.InlineData.MIMEType,
		}}
	case p.FileData != nil:
		return map[string]any{"type": mediaType(p.FileData.MIMEType), "source": map[string]any{
			"type": "url", "value": p.FileData.FileURI, "mimeType": p.FileData.MIMEType,
		}}
	}
	return nil
}

// mediaType returns the type of a content part.
func mediaType(mime string) string {
	kind, _, _ := strings.Cut(mime, "/")
	if kind == "image" || kind == "audio" || kind == "video" {
		return kind
	}
	return "document"
}

// text adds a text of the agent, as far as it was not streamed, and returns the id of its
// message.
func (e *encoded) text(event *session.Event, p *genai.Part) string {
	key := streamOf(event)
	if e.r.streams[key] != nil {
		s := e.openStream(key, event.Author)
		if i := slices.IndexFunc(s.segments, func(g segment) bool { return g.thought == p.Thought }); i >= 0 {
			for skipped := range i {
				e.endSegment(s, skipped)
			}
			s.segments = s.segments[i:]
			return e.streamed(s, p)
		}
	}
	id := tapedeck.NewID("msg_")
	e.open(id, event.Author, p.Thought)
	e.say(id, p.Text, p.Thought, nil)
	e.closeText(id, p.Thought)
	e.carrier = len(e.out) - 1
	return id
}

// streamed completes the message that was streamed as the first segment of s. If a
// callback has changed the text since, the whole message replaces what was streamed.
func (e *encoded) streamed(s *stream, p *genai.Part) string {
	had := s.segments[0]
	more, same := strings.CutPrefix(p.Text, string(had.text))
	if same && more != "" {
		if had.closed {
			e.open(had.id, s.author, p.Thought)
			s.segments[0].closed = false
		}
		e.say(had.id, more, p.Thought, nil)
	}
	e.endSegment(s, 0)
	s.segments = s.segments[1:]
	if !same {
		m := payload.NewMessage(had.id, payload.RoleAssistant, p.Text)
		if p.Thought {
			m.Role = payload.RoleReasoning
		}
		e.add(payload.MessageAdded{Message: m})
	} else if had.closed && more == "" {
		return had.id
	}
	e.carrier = len(e.out) - 1
	return had.id
}

func streamOf(event *session.Event) string {
	return (&partial{author: event.Author, branch: event.Branch}).stream()
}

// endStreamOf closes what the model has streamed and its final event does not have. An
// event that a callback makes meanwhile is no end.
func (e *encoded) endStreamOf(event *session.Event) {
	if key := streamOf(event); e.r.streams[key] != nil && calls(event) {
		e.endStream(key)
	}
}

// call adds a tool call and returns its id, which is new in the session.
func (e *encoded) call(event *session.Event, i int, f *genai.FunctionCall) string {
	id := f.ID
	if id == "" || len(id) > 512 {
		id = "call_" + digest(event.ID + "\x00" + f.ID)[:26] + "." + strconv.Itoa(i)
	}
	for base, n := id, 2; e.hasCall(id); n++ {
		id = base + "~" + strconv.Itoa(n)
	}
	e.calls = append(e.calls, madeCall{f.ID, id})
	e.add(payload.ToolCallStart{ToolCallID: id, ToolCallName: f.Name})
	if f.Args != nil {
		e.add(payload.ToolCallArgs{ToolCallID: id, Delta: payload.Piece(e.compact(f.Args))})
	}
	e.add(payload.ToolCallEnd{ToolCallID: id})
	e.carrier = len(e.out) - 1
	if slices.Contains(event.LongRunningToolIDs, f.ID) {
		e.r.waiting = append(e.r.waiting, waiting{f.ID, id})
	}
	return id
}

// result adds the answer of a tool and returns the id of its message.
func (e *encoded) result(event *session.Event, f *genai.FunctionResponse) string {
	id, call := tapedeck.NewID("msg_"), f.ID
	if known, ok := e.c.calls[f.ID]; ok {
		call = known
	}
	for _, m := range e.calls {
		if m.adk == f.ID {
			call = m.id
		}
	}
	if call == "" || len(call) > 1024 {
		call = "call_" + digest(event.ID + "\x00" + f.ID)[:26]
	}
	r := payload.ToolCallResult{MessageID: id, ToolCallID: call, Content: payload.Text(e.compact(f.Response)), Role: payload.RoleTool}
	e.add(r)
	e.carrier = len(e.out) - 1
	_, e.failed = f.Response["error"]
	if event.Author == userAuthor {
		e.r.waiting = slices.DeleteFunc(e.r.waiting, func(w waiting) bool { return w.call == f.ID })
	}
	return id
}

// compact returns an object as JSON.
func (e *encoded) compact(o map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		e.err = err
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// carry puts the ADK event into the event that carries it.
func (e *encoded) carry(event *session.Event) error {
	raw, err := json.Marshal(event)
	if err = cmp.Or(err, e.err); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the event is not JSON: %w", err)
	}
	members := metadata(e.meta)
	if e.carrier < 0 {
		r := payload.Raw{Event: json.RawMessage("null"), Source: "adk"}
		e.add(r)
		e.carrier = len(e.out) - 1
	}
	carrier := &e.out[e.carrier]
	if e.failed && carrier.Type == tapedeck.ToolCallResult {
		members = tapedeck.Meta{Error: true}.In(members)
	}
	more, err := json.Marshal(map[string]any{"metadata": members, "rawEvent": json.RawMessage(raw)})
	if err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the event is not JSON: %w", err)
	}
	carrier.Data = append(append(bytes.TrimSuffix(slices.Clone(carrier.Data), []byte("}")), ','), more[1:]...)
	return nil
}

// addState adds a change of the state of the session.
func (e *encoded) addState(d map[string]any) error {
	if len(d) == 0 {
		return nil
	}
	ops, err := patch(d)
	if err == nil {
		e.add(payload.StateDelta{Delta: ops})
	}
	return err
}

// addUsage adds the tokens of a model call.
func (e *encoded) addUsage(event *session.Event) {
	u := event.UsageMetadata
	if u == nil {
		return
	}
	var r payload.UsageReported
	r.Model = event.ModelVersion
	count := func(n int32) *int64 { return new(int64(n)) }
	r.InputTokens, r.OutputTokens = count(u.PromptTokenCount+u.ToolUsePromptTokenCount), count(u.CandidatesTokenCount+u.ThoughtsTokenCount)
	if u.TotalTokenCount > 0 {
		r.TotalTokens = count(u.TotalTokenCount)
	}
	if u.ThoughtsTokenCount > 0 {
		r.ReasoningTokens = count(u.ThoughtsTokenCount)
	}
	if u.CachedContentTokenCount > 0 {
		r.CachedInputTokens = count(u.CachedContentTokenCount)
	}
	e.add(r)
}

// note notes in the run what its end depends on.
func (e *encoded) note(event *session.Event) {
	e.r.final = event.Author != userAuthor && event.IsFinalResponse()
	e.r.failed = nil
	if event.ErrorCode == "" || event.Author == userAuthor {
		return
	}
	message := event.ErrorMessage
	if message == "" {
		message = "the model reported an error"
	}
	e.r.failed = &payload.RunError{Message: message, Code: event.ErrorCode}
}
