package exchange

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// claudeLine reads one line of a session file, or a document with all lines: an
// array, or an object with an array loglines.
func (d *Decoder) claudeLine(rec record) {
	entries, ok := list(object(rec.raw)["loglines"])
	if !ok && rec.whole {
		entries, ok = list(rec.raw)
	}
	if !ok {
		d.claudeEntry(rec)
		return
	}
	for i, raw := range entries {
		if d.stopped {
			return
		}
		d.claudeEntry(record{line: i + 1, raw: raw})
	}
}

func (d *Decoder) claudeEntry(rec record) {
	if d.session == nil {
		d.newSession()
	}
	s := d.session
	s.read(rec)
	m := object(rec.raw)
	if m == nil {
		d.skip(rec.line, "it is not an object")
		return
	}
	said := object(m["message"])
	if s.repeats(str(m["uuid"]), m["type"], said["content"], m["content"], m["toolUseResult"]) {
		d.skip(rec.line, "it repeats the line with the uuid %s", quoted(short(str(m["uuid"]))))
		return
	}
	if str(m["uuid"]) != "" && s.repeats(str(said["id"]), m["type"], said["content"]) {
		d.skip(rec.line, "it repeats a line of the answer %s", quoted(short(str(said["id"]))))
		return
	}
	s.claudeTime(m["timestamp"])
	switch typ, ok := text(m["type"]); typ {
	case "user":
		s.claudeUser(m)
	case "assistant":
		s.claudeAssistant(m)
	case "tool_use", "tool_result":
		s.claudeTool(m)
	case "system":
		s.claudeSystem(m)
	case "summary":
		s.suggestTitle(fromSummary, str(m["summary"]))
	case "ai-title":
		s.suggestTitle(fromModel, str(m["aiTitle"]))
	case "custom-title":
		s.suggestTitle(fromUser, str(m["customTitle"]))
	default:
		if !ok {
			d.skip(rec.line, "it has no type")
			return
		}
		d.skip(rec.line, "a line of type %s is no part of the conversation", quoted(short(typ)))
	}
	s.meta = nil
}

// claudeTime sets the time of the session to that of a line. A line without a time
// has that of the line before.
func (s *session) claudeTime(raw json.RawMessage) {
	t, err := time.Parse(time.RFC3339, str(raw))
	if y := t.UTC().Year(); err == nil && y > 0 && y <= 9999 {
		s.at = t.UTC()
	}
}

// claudeKnown are the members of a line that events have a place for, or that
// repeat on every line.
var claudeKnown = setOf("type", "message", "timestamp", "sessionId", "isSidechain", "userType", "entrypoint", "agentId", "content")

// claudeTool reads a line that is a single block. Older versions write calls and
// their results so. Some lines have the block in a message.
func (s *session) claudeTool(m tapedeck.Members) {
	if _, ok := list(object(m["message"])["content"]); ok && str(m["type"]) == "tool_use" {
		s.claudeAssistant(m)
		return
	} else if ok {
		s.claudeUser(m)
		return
	}
	id := "id"
	if str(m["type"]) == "tool_result" {
		id = "tool_use_id"
	}
	if str(m[id]) == "" {
		s.d.skip(s.line, "a line of type %s has no %s", str(m["type"]), id)
		return
	}
	l := s.claudeLane(without(m, setOf("id", "name", "input", "tool_use_id", "is_error")))
	l.link(m["sessionId"])
	s.claudeBlock(l, str(m["uuid"]), str(m["uuid"]), m)
}

// claudeSteady are members that are kept only when they change.
var claudeSteady = [...]string{"cwd", "gitBranch", "version", "slug"}

// claudeLane returns the lane of a line: each sub-agent has its own. Other members
// of the line become metadata of its first event.
func (s *session) claudeLane(m tapedeck.Members) *lane {
	s.meta = without(m, claudeKnown)
	for i, name := range claudeSteady {
		raw, ok := s.meta[name]
		if ok && string(raw) == s.steady[i] {
			delete(s.meta, name)
		} else if ok {
			s.steady[i] = string(raw)
		}
	}
	if !isTrue(m["isSidechain"]) {
		return s.lane("")
	}
	thread := "sidechain_" + str(m["agentId"])
	if tapedeck.CheckID("the thread", thread) != nil || str(m["agentId"]) == "" {
		thread = "sidechain"
	}
	return s.lane(thread)
}

// link records the source's own id of the conversation. A resumed session has
// several.
func (l *lane) link(raw json.RawMessage) {
	id := str(raw)
	if id == "" || id == l.nativeID {
		return
	}
	l.nativeID = id
	l.emitOutside(payload.AgentLinked{Runner: ClaudeCode, NativeID: id})
}

func (s *session) claudeSystem(m tapedeck.Members) {
	said, ok := text(m["content"])
	if !ok {
		s.d.skip(s.line, "a system line of subtype %s has no text", quoted(short(str(m["subtype"]))))
		return
	}
	l := s.claudeLane(m)
	l.link(m["sessionId"])
	l.addSystemMessage(payload.NewMessage(s.unique(str(m["uuid"]), "msg"), payload.RoleSystem, said))
}

// interrupted is the prefix of the line that is written when the user stops the
// agent.
const interrupted = "[Request interrupted by user"

func (s *session) claudeUser(m tapedeck.Members) {
	results, said, ok := s.claudeBlocks(object(m["message"])["content"])
	if !ok {
		return
	}
	meta := isTrue(m["isMeta"]) || isTrue(m["isCompactSummary"]) || isTrue(m["isVisibleInTranscriptOnly"])
	l := s.claudeLane(m)
	words := plain(said)
	if said != nil && !meta && l.thread == "" && len(results) == 0 {
		s.suggestTitle(fromText, words)
	}
	l.link(m["sessionId"])
	uuid := str(m["uuid"])
	for _, r := range results {
		l.result(uuid, str(r["tool_use_id"]), content(r["content"]), isTrue(r["is_error"]))
	}
	if said == nil {
		return
	}
	stop := strings.HasPrefix(words, interrupted)
	msg := payload.Message{ID: s.unique(uuid, "msg"), Role: payload.RoleUser, Content: said}
	l.addUserMessage(msg, meta || stop || len(results) > 0)
	if stop && l.running {
		l.cancelled = true
		l.end()
	}
}

// claudeBlocks divides the content of a user line into tool results and the
// content of a message, nil if there is none. It reports false if there is
// neither.
func (s *session) claudeBlocks(raw json.RawMessage) (results []tapedeck.Members, said json.RawMessage, ok bool) {
	if _, ok := text(raw); ok {
		return nil, raw, true
	}
	items, ok := list(raw)
	if !ok || len(items) == 0 {
		s.d.skip(s.line, "a user line has no content")
		return nil, nil, false
	}
	var rest []json.RawMessage
	for _, item := range items {
		if m := object(item); strings.HasSuffix(str(m["type"]), "tool_result") {
			results = append(results, m)
		} else {
			rest = append(rest, item)
		}
	}
	if len(rest) > 0 {
		said = parts(rest)
	}
	return results, said, true
}
