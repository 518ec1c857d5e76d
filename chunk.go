package tapedeck

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// A chunkForm says what a kind of chunk stands for.
type chunkForm struct {
	kind    kind
	content string
	said    [2]string // members that belong to the opener
}

var chunkForms = map[string]chunkForm{
	TextMessageChunk:      {textMessage, TextMessageContent, [2]string{"role", "name"}},
	ToolCallChunk:         {toolCall, ToolCallArgs, [2]string{"toolCallName", "parentMessageId"}},
	ReasoningMessageChunk: {reasoningMessage, ReasoningMessageContent, [2]string{}},
}

// chunks is what must be known of a thing that is streamed in chunks.
type chunks struct {
	lane string    // the subagent with which its first chunk was tagged; "" for none
	said [2]string // what the first chunk said of [chunkForm.said]
}

// chunksOf returns what is to be known of a thing that is being opened, nil if it
// is not by a chunk. The metadata says so, lest it be forgotten over a restart.
func chunksOf(k kind, c *checked) *chunks {
	raw := c.get("metadata")
	if raw == nil || k > reasoningMessage {
		return nil
	}
	var m struct {
		Tapedeck struct {
			Chunk bool `json:"chunk"`
		} `json:"tapedeck"`
	}
	if json.Unmarshal(raw, &m) != nil || !m.Tapedeck.Chunk {
		return nil
	}
	out := &chunks{lane: c.string("subagentRunId")}
	switch k {
	case textMessage:
		out.said = [2]string{cmp.Or(c.string("role"), RoleAssistant), c.string("name")}
	case toolCall:
		out.said = [2]string{c.string("toolCallName"), c.string("parentMessageId")}
	}
	return out
}

// expand appends what the chunk e stands for. The agent and each of its subagents
// has a lane of its own, in which it streams one thing at a time.
func (r *run) expand(out []Event, e *Event, form chunkForm) ([]Event, error) {
	var c checked
	if err := CheckInto(e, &c); err != nil {
		return nil, err
	}
	lane, err := r.lane(e, &c, form.kind)
	if err != nil {
		return nil, err
	}
	id := c.get(kinds[form.kind].member)
	if o := r.chunked(lane); o != nil {
		if o.kind == form.kind && (id == nil || stringIs(id, o.id)) {
			if err := form.agrees(o, &c); err != nil {
				return nil, err
			}
			return form.addContent(out, e, &c, o.id, lane, false), nil
		}
		out = append(out, r.closingBefore(e, o))
	}
	switch {
	case id == nil:
		return nil, Errorf(Conflict, "this %s continues nothing, and names no %s", e.Type, kinds[form.kind].member).
			WithHint("the first chunk of a %s must name it", kinds[form.kind].noun)
	case form.kind == toolCall && c.get("toolCallName") == nil:
		return nil, Errorf(Invalid, "the first chunk of tool call %s has no toolCallName", quote(stringOf(id)))
	}
	out = append(out, form.opener(e, &c))
	return form.addContent(out, e, &c, stringOf(id), lane, true), nil
}

// lane returns the lane of what a chunk continues or opens.
func (r *run) lane(e *Event, c *checked, k kind) (string, error) {
	id, tag := c.get(kinds[k].member), c.get("subagentRunId")
	var open []string // lanes with a thing of that kind
	for i := range r.open {
		o := &r.open[i]
		if o.chunks == nil || o.kind != k {
			continue
		}
		if id != nil && stringIs(id, o.id) {
			if tag != nil && !stringIs(tag, o.chunks.lane) {
				return "", foreign(k, o.id, o.chunks.lane, stringOf(tag))
			}
			return o.chunks.lane, nil
		}
		if o.chunks.lane == "" && id == nil && tag == nil {
			return "", nil
		}
		open = append(open, o.chunks.lane)
	}
	switch {
	case id != nil || tag != nil || len(open) == 0:
		return stringOf(tag), nil
	case len(open) > 1:
		return "", Errorf(Conflict, "this %s does not say which of %d open %ss it continues", e.Type, len(open), kinds[k].noun).
			WithHint("send %s or subagentRunId with it", kinds[k].member)
	}
	return open[0], nil
}

// chunked returns what is open in a lane.
func (r *run) chunked(lane string) *opened {
	for i := range r.open {
		if o := &r.open[i]; o.chunks != nil && o.chunks.lane == lane {
			return o
		}
	}
	return nil
}

// agrees reports whether a chunk that repeats what its opener said says the same.
func (f chunkForm) agrees(o *opened, c *checked) error {
	for i, name := range f.said {
		if name == "" {
			continue
		}
		if raw := c.get(name); raw != nil && !stringIs(raw, o.chunks.said[i]) {
			return Errorf(Conflict, "%s %s began with the %s %s, and a later chunk says %s",
				kinds[f.kind].noun, quote(o.id), name, quote(o.chunks.said[i]), quote(stringOf(raw)))
		}
	}
	return nil
}

// opener returns the START that the first chunk stands for. Its metadata says
// that it came from a chunk, so that the next chunk is known to continue it.
func (f chunkForm) opener(e *Event, c *checked) Event {
	metadata := Members{}
	_ = json.Unmarshal(c.get("metadata"), &metadata) // of none, none
	ours := Members{}
	_ = json.Unmarshal(metadata[VendorKey], &ours)
	ours["chunk"] = json.RawMessage("true")
	metadata[VendorKey] = appendMembers(nil, ours)

	b := []byte{'{'}
	for _, name := range [...]string{kinds[f.kind].member, f.said[0], f.said[1], "subagentRunId", "timestamp"} {
		if name != "" && c.get(name) != nil {
			b = append(appendName(b, 1, name), c.get(name)...)
		}
	}
	if f.kind == reasoningMessage {
		b = appendJSON(appendName(b, 1, "role"), RoleReasoning)
	}
	b = appendMembers(appendName(b, 1, "metadata"), metadata)
	start := *e
	start.Type, start.Data = kinds[f.kind].start, append(b, '}')
	return start
}

// addContent appends the CONTENT that a chunk stands for, with all members of the
// chunk that are not the opener's. A chunk that says nothing has none.
func (f chunkForm) addContent(out []Event, e *Event, c *checked, id, lane string, first bool) []Event {
	b := appendJSON(appendName([]byte{'{'}, 1, kinds[f.kind].member), id)
	if c.get("delta") == nil {
		b = append(b, `,"delta":""`...)
	}
	if lane != "" {
		b = appendJSON(appendName(b, 1, "subagentRunId"), lane)
	}
	says := false
	o := readObject(e.Data)
	for name, raw, ok := o.next(); ok; name, raw, ok = o.next() {
		switch n := string(name); n {
		case kinds[f.kind].member, "subagentRunId", f.said[0], f.said[1]:
		default:
			says = says || !first || n != "metadata" && n != "timestamp"
			b = append(appendName(b, 1, n), raw...)
		}
	}
	if !says {
		return out
	}
	content := *e
	content.Type, content.Data = f.content, append(b, '}')
	return append(out, content)
}

// closingBefore returns the event that closes o because e comes.
func (r *run) closingBefore(e *Event, o *opened) Event {
	end := r.closing(o)
	end.Time, end.Actor = e.Time, e.Actor
	return end
}

// endChunks appends the events that close what was open in chunks and cannot go
// on when e comes.
func (r *run) endChunks(out []Event, e *Event) []Event {
	if !slices.ContainsFunc(r.open, func(o opened) bool { return o.chunks != nil }) {
		return out // as nearly always
	}
	if slices.ContainsFunc(r.open, func(o opened) bool { return o.chunks != nil && o.isEnd(e) }) {
		return out // it may be closed as if it had been opened in full
	}
	lane, all := stringOf(member(e.Data, "subagentRunId")), false
	switch e.Type {
	case Raw, ActivitySnapshot, ActivityDelta, ReasoningEncryptedValue, SubagentStarted:
		return out
	case RunFinished, RunError, MessagesSnapshot:
		all = true
	}
	for i := range r.open {
		if o := &r.open[i]; o.chunks != nil && (all || o.chunks.lane == lane) {
			out = append(out, r.closingBefore(e, o))
		}
	}
	return out
}

// isEnd reports whether e is the event that closes o.
func (o *opened) isEnd(e *Event) bool {
	return e.Type == kinds[o.kind].end && stringIs(member(e.Data, kinds[o.kind].member), o.id)
}

// thinkingPrefix begins the ids that translated events are given, by which the
// events after them find what they continue.
const thinkingPrefix = "think_"

// translate turns the retired events of thinking, which have no ids, into those
// of reasoning.
func (v *Verifier) translate(e *Event) error {
	suffix, ok := strings.CutPrefix(e.Type, "THINKING_")
	if !ok {
		return nil
	}
	k, opens := reasoningSpan, suffix == "START"
	if text, ok := strings.CutPrefix(suffix, "TEXT_MESSAGE_"); ok {
		k, opens, suffix = reasoningMessage, text == "START", "MESSAGE_"+text
	}
	typ := "REASONING_" + suffix
	if rules[typ] == nil {
		return nil // none that was ever there
	}
	id := NewID(thinkingPrefix)
	if !opens {
		if id = v.thinking(e, k); id == "" {
			return Errorf(Conflict, "a %s comes when nothing is being thought on thread %s", e.Type, e.ThreadName()).
				WithHint("send THINKING_START or THINKING_TEXT_MESSAGE_START first")
		}
	}
	data := e.Data
	if len(data) == 0 {
		data = []byte("{}")
	}
	if t := stringOf(member(data, "type")); t == e.Type {
		data, _ = TidyData(data, typ, t)
	}
	e.Type, e.Data = typ, withMember(data, "messageId", id)
	return nil
}

// thinking returns the id of what was opened last by a translated event of
// kind k and is still open.
func (v *Verifier) thinking(e *Event, k kind) (id string) {
	r := v.runOn(e)
	if r == nil {
		return ""
	}
	for _, o := range r.open {
		if o.kind == k && strings.HasPrefix(o.id, thinkingPrefix) {
			id = o.id
		}
	}
	return id
}
