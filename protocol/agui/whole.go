package agui

import (
	"unicode/utf8"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// The 1.0 client refuses a frame of more than 10 MiB, so no frame is much larger than
// maxFrame. A text in parts has parts of at most maxDelta bytes.
const (
	maxFrame = 8 << 20
	maxDelta = 1 << 20
)

// whole returns a whole message as the events that a stream would have had. An
// attachment of a user cannot be streamed: only its text is in the events.
func (p profile) whole(m *payload.Message) (list [][]byte) {
	marks := encode("metadata", m.Metadata)
	if len(m.Metadata) == 0 {
		marks = member{}
	}
	id, owner := text("messageId", m.ID), text("subagentRunId", m.SubagentRunID)
	switch m.Role {
	case payload.RoleTool:
		content := flatOrParts(m.Content)
		return [][]byte{frame(tapedeck.ToolCallResult, id, text("toolCallId", m.ToolCallID), member{"content", content}, text("role", payload.RoleTool), owner, marks)}
	case payload.RoleActivity:
		return [][]byte{frame(tapedeck.ActivitySnapshot, id, text("activityType", m.ActivityType), member{"content", m.Content}, owner, marks)}
	case payload.RoleReasoning:
		list = append(list, frame(tapedeck.ReasoningMessageStart, id, text("role", m.Role), owner, marks))
		list = appendDeltas(list, tapedeck.ReasoningMessageContent, id, owner, payload.Piece(m.Text()))
		return append(list, frame(tapedeck.ReasoningMessageEnd, id, owner))
	}
	if len(m.Content) > 0 || len(m.ToolCalls) == 0 {
		list = append(list, frame(tapedeck.TextMessageStart, id, text("role", m.Role), text("name", m.Name), owner, marks))
		list = appendDeltas(list, tapedeck.TextMessageContent, id, owner, payload.Piece(m.Text()))
		list = append(list, frame(tapedeck.TextMessageEnd, id, owner))
	}
	for i := range m.ToolCalls {
		k := &m.ToolCalls[i]
		call := text("toolCallId", k.ID)
		start := []member{call, text("toolCallName", k.Function.Name), text("parentMessageId", m.ID), owner}
		if len(k.Metadata) > 0 {
			start = append(start, encode("metadata", k.Metadata))
		}
		list = append(list, frame(tapedeck.ToolCallStart, start...))
		list = appendDeltas(list, tapedeck.ToolCallArgs, call, owner, payload.Piece(k.Function.Arguments))
		list = append(list, frame(tapedeck.ToolCallEnd, call, owner))
	}
	return list
}

// appendDeltas appends a text as events of at most maxDelta bytes of it.
func appendDeltas(list [][]byte, typ string, id, owner member, s payload.Piece) [][]byte {
	for len(s) > 0 {
		n := min(len(s), maxDelta)
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		list = append(list, frame(typ, id, member{"delta", jsonobj.AppendPiece(nil, s[:n])}, owner))
		s = s[n:]
	}
	return list
}

// flatOrParts returns the content of a tool's answer, cut if no client would accept
// its frame.
func flatOrParts(content []byte) []byte {
	if len(content) <= maxFrame {
		return content
	}
	m := payload.Message{Content: content}
	s := m.Text()
	if len(s) > maxFrame/2 { // an escaped text is longer
		s = s[:maxFrame/2]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-4):]) {
			s = s[:len(s)-1]
		}
		s += "\n… the rest of this answer is too large for AG-UI"
	}
	return jsonobj.AppendJSON(nil, s)
}

// split divides messages into those that fit into one frame, encoded, and the rest.
// One large message is enough to divide them: their order must stay.
func split(list []payload.Message) (snapshot []byte, rest []payload.Message) {
	snapshot = []byte{'['}
	for i := range list {
		raw, err := list[i].MarshalJSON()
		if err != nil || len(snapshot)+len(raw) > maxFrame {
			rest = list[i:]
			break
		}
		if i > 0 {
			snapshot = append(snapshot, ',')
		}
		snapshot = append(snapshot, raw...)
	}
	return append(snapshot, ']'), rest
}
