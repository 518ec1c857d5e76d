package task

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
	"github.com/tapedeck/tapedeck/payload"
)

// The event types of the SSE task protocol, see docs/protocol/task-events.md.
const (
	typeAgentStart       = "agent_start"
	typeUserMessage      = "user_message"
	typeThinking         = "thinking"
	typeMessage          = "message"
	typeToolStart        = "tool_start"
	typeToolComplete     = "tool_complete"
	typeOutputDisplay    = "output_display"
	typeAgentComplete    = "agent_complete"
	typeError            = "error"
	typeCancelled        = "cancelled"
	typeProfileSwitch    = "profile_switch"
	typeHookTriggered    = "hook_triggered"
	typeConversationTurn = "conversation_turn"
	typeConnect          = "session_connect"
	typeDisconnect       = "session_disconnect"
)

// An event is an event of the task protocol.
type event struct {
	Type      string   `json:"type"`
	Data      any      `json:"data"`
	Timestamp string   `json:"timestamp"`
	Sequence  sequence `json:"sequence"`

	partial bool // it is a part of a message; a finished message with the whole text follows
}

// perOffset is how many events of the protocol one event of the log can become.
const perOffset = 1000

// A sequence is the number of an event: a client that sends it back continues after it.
// It is a thousand times the offset of the event in the log, plus the part of that event. So
// it is an integer that never changes, and nothing else of the log must be known for it.
type sequence int64

func sequenceOf(offset int64, part int) sequence { return sequence(offset*perOffset + int64(part)) }

// offset returns the offset after which to look for the events that follow.
func (s sequence) offset() int64 { return int64(s) / perOffset }

// A draft is an event without its time.
type draft struct {
	typ  string
	data any
	part int // distinguishes it from others of one event of the log; it is always the same
}

// startPart is the part of agent_start when another event brings it. That event keeps its
// number, also where it does not bring it, because one before does.
const startPart = -1

// drafts returns one draft, or none if it has no type.
func drafts(typ string, data any) []draft {
	if typ == "" {
		return nil
	}
	return []draft{{typ, data, 0}}
}

// appendJSON appends the event as one line.
func (t *event) appendJSON(b []byte) ([]byte, error) {
	if t.partial { // as most are; encoding/json takes ten times as long
		b = jsonobj.AppendPiece(append(b, `{"type":"`+typeMessage+`","data":{"text":`...), t.Data.(messageData).Text.(payload.Piece))
		b = append(append(b, `,"is_partial":true},"timestamp":"`...), t.Timestamp...)
		return append(strconv.AppendInt(append(b, `","sequence":`...), int64(t.Sequence), 10), '}'), nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return b, err
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...), nil
}

// appendFrame appends the event as a frame. life is the incarnation of the session, see
// [httpapi.AppendIncarnation]: an EventSource sends it back with the number.
func (t *event) appendFrame(b, life []byte) ([]byte, error) {
	b = append(strconv.AppendInt(append(b, "id: "...), int64(t.Sequence), 10), life...)
	b, err := t.appendJSON(append(b, "\ndata: "...))
	return append(b, "\n\n"...), err
}
