package exchange

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// openaiLine reads one line, or a whole document: a conversation, several
// conversations, or a message of the only conversation.
func (d *Decoder) openaiLine(rec record) {
	if items, ok := list(rec.raw); ok {
		d.openaiList(rec, items)
		return
	}
	m := object(rec.raw)
	switch items := conversationIn(m); {
	case items != nil:
		d.conversation(rec, items, without(m, openaiConversation))
	case m == nil:
		d.skip(rec.line, "it is not an object or an array")
	case m["role"] == nil:
		d.skip(rec.line, "it has no messages, no traj and no role")
	default:
		if why := unusable(m); why != "" {
			d.skip(rec.line, "the message %s", why)
			return
		}
		if d.session == nil {
			d.newSession()
		}
		d.session.read(rec)
		d.session.openaiMessage(m)
	}
}

var openaiConversation = setOf("messages", "traj")

// conversationIn returns the messages of a conversation, nil if m is not one.
func conversationIn(m tapedeck.Members) []json.RawMessage {
	for name := range openaiConversation {
		if items, ok := list(m[name]); ok {
			return items
		}
	}
	return nil
}

// openaiList reads an array of messages, or of conversations.
func (d *Decoder) openaiList(rec record, items []json.RawMessage) {
	if len(items) == 0 || kindOf(items[0]) != '[' && conversationIn(object(items[0])) == nil {
		d.conversation(rec, items, nil)
		return
	}
	for i, item := range items {
		if d.stopped {
			return
		}
		one := record{line: rec.line, raw: item}
		if messages, ok := list(item); ok {
			d.conversation(one, messages, nil)
		} else if m := object(item); conversationIn(m) != nil {
			d.conversation(one, conversationIn(m), without(m, openaiConversation))
		} else {
			d.skip(rec.line, "entry %d is no conversation", i+1)
		}
	}
}

// conversation creates a session from messages.
func (d *Decoder) conversation(rec record, items []json.RawMessage, extra tapedeck.Members) {
	d.finish()
	var s *session
	for i, item := range items {
		if d.stopped {
			return
		}
		m := object(item)
		if why := unusable(m); why != "" {
			d.skip(rec.line, "message %d %s", i+1, why)
			continue
		}
		if s == nil {
			s = d.newSession()
			s.takeTitle(extra)
			s.read(rec)
			s.suggestFrom(items[i:])
		}
		s.openaiMessage(m)
	}
	if s == nil {
		d.skip(rec.line, "the conversation has no messages")
	}
	d.finish()
}

// takeTitle takes the title from the members of a conversation. The metadata keeps one that
// is no title as it is, such as one of several lines.
func (s *session) takeTitle(extra tapedeck.Members) {
	given, ok := text(extra["title"])
	s.suggestTitle(fromUser, given)
	if ok && s.title == given {
		extra = without(extra, setOf("title"))
	}
	s.extra = extra
}

// suggestFrom suggests the user's first message as the title.
func (s *session) suggestFrom(items []json.RawMessage) {
	for _, item := range items {
		if m := object(item); str(m["role"]) == "user" && unusable(m) == "" {
			s.suggestTitle(fromText, plain(m["content"]))
			return
		}
	}
}

// unusable returns why m is not a message, "" if it is one.
func unusable(m tapedeck.Members) string {
	if m == nil {
		return "is not an object"
	}
	switch role, ok := text(m["role"]); role {
	case "system", "developer", "user":
		return cmp.Or(withoutContent(role, missing(m["content"])), oddContent(role, m["content"]))
	case "tool", "function": // null is an empty answer, and other JSON an answer of the tool
		return withoutContent(role, m["content"] == nil)
	case "assistant":
		return cmp.Or(withoutContent(role, m["content"] == nil && !saysMore(m)), oddContent(role, m["content"]))
	default:
		if !ok {
			return "has no role"
		}
		return "has the role " + string(quoted(short(role))) + "; the roles are system, developer, user, assistant, tool and function"
	}
}

func withoutContent(role string, is bool) string {
	if !is {
		return ""
	}
	return "has the role " + string(quoted(role)) + " and no content"
}

// oddContent returns why a content is neither a text nor a list of parts, "" if it is one of
// these, or missing.
func oddContent(role string, raw json.RawMessage) string {
	items, ok := list(raw)
	if _, isText := text(raw); !isText && !ok && !missing(raw) {
		return "has the role " + string(quoted(role)) + " and a content that is neither a text nor a list of parts"
	}
	for i, item := range items {
		if _, isText := text(item); !isText && object(item) == nil {
			return "has the role " + string(quoted(role)) + " and a content whose part " + strconv.Itoa(i+1) + " is neither a text nor an object"
		}
	}
	return ""
}

// openaiAnswers are the members that an answer of the model can have instead of a content.
var openaiAnswers = []string{"tool_calls", "function_call", "refusal", "reasoning_content", "reasoning", "audio"}

// saysMore reports whether an answer of the model has more than a content.
func saysMore(m tapedeck.Members) bool {
	return slices.ContainsFunc(openaiAnswers, func(name string) bool { return !missing(m[name]) })
}

// openaiKnown are the members of a message that events have a place for. All
// others are kept as metadata.
var openaiKnown = setOf("role", "content", "name", "tool_calls", "tool_call_id", "function_call",
	"reasoning_content", "reasoning", "refusal")

func (s *session) openaiMessage(m tapedeck.Members) {
	l := s.lane("")
	s.meta = without(m, openaiKnown)
	switch role := str(m["role"]); role {
	case "system", "developer":
		msg := payload.Message{ID: s.unique("", "msg"), Role: role, Name: str(m["name"]), Content: quoted(plain(m["content"]))}
		l.addSystemMessage(msg)
	case "user":
		if s.titleRank == 0 {
			s.suggestTitle(fromText, plain(m["content"]))
		}
		msg := payload.Message{ID: s.unique("", "msg"), Role: role, Name: str(m["name"]), Content: content(m["content"])}
		l.addUserMessage(msg, false)
	case "assistant":
		s.openaiAnswer(l, m)
	default:
		l.result("", str(m["tool_call_id"]), content(m["content"]), false)
	}
	s.meta = nil
}

func (s *session) openaiAnswer(l *lane, m tapedeck.Members) {
	l.answer("")
	thought := str(m["reasoning_content"])
	if thought == "" {
		thought = str(m["reasoning"])
	}
	if thought != "" {
		l.reasoning(thought, "")
	}
	said := plain(m["content"])
	if said == "" {
		said = str(m["refusal"])
	}
	calls, _ := list(m["tool_calls"])
	legacy := object(m["function_call"])
	// Many programs write an empty text beside calls; it is left out.
	if said != "" || thought == "" && len(calls) == 0 && legacy == nil {
		l.text("", str(m["name"]), said)
	}
	for i, raw := range calls {
		s.openaiCall(l, i, object(raw))
	}
	if legacy != nil {
		l.call("", str(legacy["name"]), arguments(legacy["arguments"]))
	}
}

var openaiCallKnown = setOf("id", "type", "function", "custom", "index")

func (s *session) openaiCall(l *lane, i int, m tapedeck.Members) {
	if m == nil {
		s.d.skip(s.line, "tool call %d of a message is not an object", i+1)
		return
	}
	for name, raw := range without(m, openaiCallKnown) {
		if s.meta == nil {
			s.meta = tapedeck.Members{}
		}
		s.meta[name] = raw
	}
	if f := object(m["custom"]); f != nil { // a tool with text as its input
		l.call(str(m["id"]), str(f["name"]), arguments(f["input"]))
		return
	}
	f := object(m["function"])
	l.call(str(m["id"]), str(f["name"]), arguments(f["arguments"]))
}

// arguments returns the arguments of a call as text. Some programs write them as
// JSON and not as a string.
func arguments(raw json.RawMessage) string {
	if s, ok := text(raw); ok || missing(raw) {
		return s
	}
	return compact(raw)
}
