package exchange

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// claudeAssistant reads a line of the model. A streamed answer has several lines,
// one for each of its blocks, all with the id of the answer.
func (s *session) claudeAssistant(m tapedeck.Members) {
	msg := object(m["message"])
	blocks, ok := list(msg["content"])
	if said, isText := text(msg["content"]); isText {
		blocks, ok = []json.RawMessage{textPart(said)}, true
	}
	if !ok || len(blocks) == 0 {
		s.d.skip(s.line, "an assistant line has no content")
		return
	}
	l := s.claudeLane(m)
	if stop := msg["stop_reason"]; !missing(stop) {
		if s.meta == nil {
			s.meta = tapedeck.Members{}
		}
		s.meta["stop_reason"] = stop
	}
	l.link(m["sessionId"])
	uuid := str(m["uuid"])
	source := str(msg["id"])
	if source == "" {
		source = uuid
	}
	for _, raw := range blocks {
		s.claudeBlock(l, source, uuid, object(raw))
	}
	if u := claudeUsage(msg); u != nil && l.running && l.message != "" && l.source == source {
		l.usage = u
	}
}

func (s *session) claudeBlock(l *lane, source, uuid string, b tapedeck.Members) {
	typ := str(b["type"])
	if _, hasText := text(b["text"]); typ == "text" && !hasText {
		typ = ""
	}
	switch {
	case typ == "text":
		l.answer(source)
		l.text(uuid, "", str(b["text"]))
	case typ == "thinking":
		l.answer(source)
		l.reasoning(str(b["thinking"]), str(b["signature"]))
	case typ == "redacted_thinking":
		l.answer(source)
		l.reasoning("", str(b["data"]))
	case strings.HasSuffix(typ, "tool_use"):
		if s.repeats(str(b["id"]), b["type"], b["name"], b["input"]) {
			s.d.skip(s.line, "it repeats the call with the id %s", quoted(short(str(b["id"]))))
			return
		}
		l.answer(source)
		l.call(str(b["id"]), str(b["name"]), arguments(b["input"]))
		if str(b["name"]) == "TodoWrite" {
			l.plan(object(b["input"])["todos"])
		}
	case strings.HasSuffix(typ, "tool_result"):
		l.result(uuid, str(b["tool_use_id"]), content(b["content"]), isTrue(b["is_error"]))
	default:
		s.d.skip(s.line, "a block of type %s of an assistant line is not known", quoted(short(typ)))
	}
}

// plan emits a todo list, if it is well-formed.
func (l *lane) plan(raw json.RawMessage) {
	todos, ok := list(raw)
	if !ok {
		return
	}
	entries := make([]payload.PlanEntry, 0, len(todos))
	for _, t := range todos {
		m := object(t)
		what, hasContent := text(m["content"])
		status, hasStatus := text(m["status"])
		if !hasContent || !hasStatus {
			return
		}
		entries = append(entries, payload.PlanEntry{Content: what, Status: status, Priority: str(m["priority"])})
	}
	l.emitTurn(payload.PlanUpdated{Entries: entries})
}

// claudeUsage returns the usage of an answer so far, nil if the line has none.
func claudeUsage(msg tapedeck.Members) *payload.TokenCounts {
	u := object(msg["usage"])
	in, out := tokens(u["input_tokens"]), tokens(u["output_tokens"])
	cached, written := tokens(u["cache_read_input_tokens"]), tokens(u["cache_creation_input_tokens"])
	if in == nil && out == nil || str(msg["model"]) == "<synthetic>" {
		return nil
	}
	// Anthropic counts cached tokens separately; AG-UI includes them in the input.
	total := in
	for _, n := range []*int64{cached, written} {
		if n != nil && total != nil {
			total = plus(total, n)
		}
	}
	return &payload.TokenCounts{
		Provider: "anthropic", Model: str(msg["model"]),
		InputTokens: total, OutputTokens: out, CachedInputTokens: cached, CacheWriteInputTokens: written,
	}
}

// tokens returns a count, nil if raw is not one.
func tokens(raw json.RawMessage) *int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || n > maxTokens {
		return nil
	}
	return &n
}
