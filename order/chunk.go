package order

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// A chunkForm says which events a type of chunk stands for.
type chunkForm struct {
	kind    kind
	content string
	said    [2]string // members that belong to the opening event
}

var chunkForms = map[string]chunkForm{
	tapedeck.TextMessageChunk:      {textMessage, tapedeck.TextMessageContent, [2]string{"role", "name"}},
	tapedeck.ToolCallChunk:         {toolCall, tapedeck.ToolCallArgs, [2]string{"toolCallName", "parentMessageId"}},
	tapedeck.ReasoningMessageChunk: {reasoningMessage, tapedeck.ReasoningMessageContent, [2]string{}},
}

// A chunks value describes an open thing that is streamed in chunks.
type chunks struct {
	lane string    // the sub-agent in the tag of its first chunk; "" if none
	said [2]string // the values of [chunkForm.said] in the first chunk
}

// chunksOf returns the chunks of a thing that is being opened, nil if it was
// not opened by a chunk. The metadata has this fact, so it survives a restart.
func chunksOf(k kind, c *payload.Checked) *chunks {
	raw := c.Get("metadata")
	if raw == nil || k > reasoningMessage || !tapedeck.MetaOf(json.RawMessage(raw)).Chunk {
		return nil
	}
	out := &chunks{lane: c.String("subagentRunId")}
	switch k {
	case textMessage:
		out.said = [2]string{cmp.Or(c.String("role"), payload.RoleAssistant), c.String("name")}
	case toolCall:
		out.said = [2]string{c.String("toolCallName"), c.String("parentMessageId")}
	}
	return out
}

// expand appends the events that the chunk e stands for. The agent and each of
// its sub-agents have a lane each, in which they stream one thing at a time.
func (r *run) expand(out []tapedeck.Event, e *tapedeck.Event, form chunkForm) ([]tapedeck.Event, error) {
	var c payload.Checked
	if err := payload.CheckInto(e, &c); err != nil {
		return nil, err
	}
	lane, err := r.lane(e, &c, form.kind)
	if err != nil {
		return nil, err
	}
	id := c.Get(kinds[form.kind].member)
	if o := r.openInLane(lane); o != nil {
		if o.kind == form.kind && (id == nil || jsonobj.StringIs(id, o.id)) {
			if err := form.agrees(o, &c); err != nil {
				return nil, err
			}
			return form.addContent(out, e, &c, o.id, lane, false), nil
		}
		out = append(out, r.closingBefore(e, o))
	}
	switch {
	case id == nil:
		return nil, tapedeck.Errorf(tapedeck.Conflict, "this %s continues no open %s, and has no %s", e.Type, kinds[form.kind].noun, kinds[form.kind].member).
			WithHint("the first chunk of a %s must have it", kinds[form.kind].noun)
	case form.kind == toolCall && c.Get("toolCallName") == nil:
		return nil, tapedeck.Errorf(tapedeck.Invalid, "the first chunk of tool call %s has no toolCallName", jsonobj.Quote(jsonobj.StringOf(id)))
	}
	out = append(out, form.opener(e, &c))
	return form.addContent(out, e, &c, jsonobj.StringOf(id), lane, true), nil
}

// lane returns the lane of the thing that a chunk continues or opens.
func (r *run) lane(e *tapedeck.Event, c *payload.Checked, k kind) (string, error) {
	id, tag := c.Get(kinds[k].member), c.Get("subagentRunId")
	var open []string // lanes that have an open thing of the kind
	for i := range r.open {
		o := &r.open[i]
		if o.chunks == nil || o.kind != k {
			continue
		}
		if id != nil && jsonobj.StringIs(id, o.id) {
			if tag != nil && !jsonobj.StringIs(tag, o.chunks.lane) {
				return "", foreign(k, o.id, o.chunks.lane, jsonobj.StringOf(tag))
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
		return jsonobj.StringOf(tag), nil
	case len(open) > 1:
		return "", tapedeck.Errorf(tapedeck.Conflict, "this %s does not say which of %d open %ss it continues", e.Type, len(open), kinds[k].noun).
			WithHint("send %s or subagentRunId with it", kinds[k].member)
	}
	return open[0], nil
}

// openInLane returns the thing that is open in a lane, nil if there is none.
func (r *run) openInLane(lane string) *opened {
	for i := range r.open {
		if o := &r.open[i]; o.chunks != nil && o.chunks.lane == lane {
			return o
		}
	}
	return nil
}

// agrees returns an error if a chunk repeats a member of its opening event with
// another value.
func (f chunkForm) agrees(o *opened, c *payload.Checked) error {
	for i, name := range f.said {
		if name == "" {
			continue
		}
		if raw := c.Get(name); raw != nil && !jsonobj.StringIs(raw, o.chunks.said[i]) {
			return tapedeck.Errorf(tapedeck.Conflict, "%s %s began with the %s %s, but a later chunk has %s",
				kinds[f.kind].noun, jsonobj.Quote(o.id), name, jsonobj.Quote(o.chunks.said[i]), jsonobj.Quote(jsonobj.StringOf(raw)))
		}
	}
	return nil
}

// opener returns the START that the first chunk stands for. Its metadata marks
// it as opened by a chunk, so that the next chunk can continue it.
func (f chunkForm) opener(e *tapedeck.Event, c *payload.Checked) tapedeck.Event {
	var metadata tapedeck.Members
	_ = json.Unmarshal(c.Get("metadata"), &metadata) // stays nil if there is no metadata
	ours := tapedeck.MetaOf(metadata)
	ours.Chunk = true

	b := []byte{'{'}
	for _, name := range [...]string{kinds[f.kind].member, f.said[0], f.said[1], "subagentRunId", "timestamp"} {
		if name != "" && c.Get(name) != nil {
			b = append(jsonobj.AppendName(b, 1, name), c.Get(name)...)
		}
	}
	if f.kind == reasoningMessage {
		b = jsonobj.AppendJSON(jsonobj.AppendName(b, 1, "role"), payload.RoleReasoning)
	}
	b = jsonobj.AppendMembers(jsonobj.AppendName(b, 1, "metadata"), ours.In(metadata))
	start := *e
	start.Type, start.Data = kinds[f.kind].start, append(b, '}')
	return start
}

// addContent appends the CONTENT that a chunk stands for, with all members of the
// chunk except those of the opening event. If none is left, it appends nothing;
// metadata and timestamp of the first chunk alone do not count.
func (f chunkForm) addContent(out []tapedeck.Event, e *tapedeck.Event, c *payload.Checked, id, lane string, first bool) []tapedeck.Event {
	b := jsonobj.AppendJSON(jsonobj.AppendName([]byte{'{'}, 1, kinds[f.kind].member), id)
	if c.Get("delta") == nil {
		b = append(b, `,"delta":""`...)
	}
	if lane != "" {
		b = jsonobj.AppendJSON(jsonobj.AppendName(b, 1, "subagentRunId"), lane)
	}
	says := false
	o := jsonobj.Read(e.Data)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		switch n := string(name); n {
		case kinds[f.kind].member, "subagentRunId", f.said[0], f.said[1]:
		default:
			says = says || !first || n != "metadata" && n != "timestamp"
			b = append(jsonobj.AppendName(b, 1, n), raw...)
		}
	}
	if !says {
		return out
	}
	content := *e
	content.Type, content.Data = f.content, append(b, '}')
	return append(out, content)
}

// closingBefore returns the event that closes o when e arrives.
func (r *run) closingBefore(e *tapedeck.Event, o *opened) tapedeck.Event {
	end := r.closing(o)
	end.Time, end.Actor = e.Time, e.Actor
	return end
}

// endChunks appends the events that close the chunked things that cannot
// continue after e.
func (r *run) endChunks(out []tapedeck.Event, e *tapedeck.Event) []tapedeck.Event {
	if !slices.ContainsFunc(r.open, func(o opened) bool { return o.chunks != nil }) {
		return out // the usual case
	}
	if slices.ContainsFunc(r.open, func(o opened) bool { return o.chunks != nil && o.isEnd(e) }) {
		return out // e closes it itself
	}
	lane, all := jsonobj.StringOf(jsonobj.Member(e.Data, "subagentRunId")), false
	switch e.Type {
	case tapedeck.Raw, tapedeck.ActivitySnapshot, tapedeck.ActivityDelta, tapedeck.ReasoningEncryptedValue, tapedeck.SubagentStarted:
		return out
	case tapedeck.RunFinished, tapedeck.RunError, tapedeck.MessagesSnapshot:
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
func (o *opened) isEnd(e *tapedeck.Event) bool {
	return e.Type == kinds[o.kind].end && jsonobj.StringIs(jsonobj.Member(e.Data, kinds[o.kind].member), o.id)
}

// thinkingPrefix begins the ids of translated events. It marks the things that
// later events without an id continue.
const thinkingPrefix = "think_"

// translate turns the retired THINKING events, which have no ids, into
// REASONING events.
func (v *Verifier) translate(e *tapedeck.Event) error {
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
		return nil // such a type never existed
	}
	id := tapedeck.NewID(thinkingPrefix)
	if !opens {
		if id = v.thinking(e, k); id == "" {
			return tapedeck.Errorf(tapedeck.Conflict, "a %s needs open reasoning, and thread %s has none", e.Type, e.ThreadName()).
				WithHint("send THINKING_START or THINKING_TEXT_MESSAGE_START first")
		}
	}
	data := e.Data
	if len(data) == 0 {
		data = []byte("{}")
	}
	if t := jsonobj.StringOf(jsonobj.Member(data, "type")); t == e.Type {
		data, _ = payload.TidyData(data, typ, t)
	}
	e.Type, e.Data = typ, jsonobj.WithMember(data, "messageId", id)
	return nil
}

// thinking returns the id of the newest open thing of kind k that a translated
// event has opened.
func (v *Verifier) thinking(e *tapedeck.Event, k kind) (id string) {
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
