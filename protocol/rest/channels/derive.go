package channels

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
	"github.com/tapedeck/tapedeck/view"
)

// data has the members of all schemas, for rows that are derived.
type data struct {
	ID        string          `json:"id,omitempty"`
	AgentID   string          `json:"agentId,omitempty"`
	UserID    string          `json:"userId,omitempty"`
	SessionID string          `json:"sessionId"`
	Text      *payload.Piece  `json:"text,omitempty"`
	MessageID string          `json:"messageId,omitempty"` // of a message that may have several chunks
	Role      string          `json:"role,omitempty"`      // user: the chunk is no agent's
	Turn      *int            `json:"turn,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	LeftOut   bool            `json:"inputLeftOut,omitempty"` // the input is too long for a row
	Output    json.RawMessage `json:"output,omitempty"`
	Status    string          `json:"status,omitempty"`
	Duration  *int64          `json:"duration,omitempty"`
	Error     string          `json:"error,omitempty"`
	Cursor    json.RawMessage `json:"cursor,omitempty"`
	LastSeen  int64           `json:"lastSeen,omitempty"`
	JoinedAt  int64           `json:"joinedAt,omitempty"`
	TaskID    string          `json:"taskId,omitempty"`
	Type      string          `json:"type,omitempty"`
	Data      *payload.Piece  `json:"data,omitempty"`
	Source    string          `json:"source,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Actor     string          `json:"actor,omitempty"`
	Timestamp int64           `json:"timestamp,omitempty"`
	Erased    bool            `json:"erased,omitempty"`
}

// derive sets the type and the data of the row of an event that was not published in this form.
func (r *Reader) derive(row *Row, e *tapedeck.Event) (err error) {
	d := data{SessionID: r.Session, Erased: e.Erased()}
	if e.Turn != 0 {
		d.Turn = &e.Turn
	}
	switch row.Channel = channelOf(e); row.Channel {
	case tapedeck.ChannelChunks:
		d.Turn, d.Timestamp, err = &e.Turn, row.Timestamp, r.deriveChunk(&d, e)
	case tapedeck.ChannelToolCalls:
		d.Timestamp, err = row.Timestamp, r.deriveCall(&d, e)
	case tapedeck.ChannelAgentState:
		err = r.deriveState(&d, e)
	case tapedeck.ChannelPresence:
		derivePresence(&d, e)
	case tapedeck.ChannelTerminal:
		d.Timestamp = row.Timestamp
		deriveTerminal(&d, e)
	default:
		d.Timestamp = row.Timestamp
		deriveWorkflow(&d, e)
	}
	if err != nil {
		return err
	}
	if row.Type = defaultType(row.Channel, d.Type); row.Channel == tapedeck.ChannelAgentState {
		if row.Type = stateType(d.Status); d.Status == "" {
			row.Type = "erased"
		}
	}
	row.Data, err = json.Marshal(d)
	if err == nil && (e.Type == view.TypeAgentState || e.Type == view.TypeToolStatus) {
		row.Data, err = withOthers(row.Data, e.Data)
	}
	return err
}

// withOthers adds the members that d lacks.
func withOthers(d, others []byte) ([]byte, error) {
	var own, all tapedeck.Members
	if err := json.Unmarshal(d, &own); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(others, &all); err != nil || all == nil {
		return d, err
	}
	for _, name := range []string{"channel", "agentId", "sessionId"} { // who it is, the log says
		delete(all, name)
	}
	maps.Copy(all, own)
	return json.Marshal(all)
}

func (r *Reader) deriveChunk(d *data, e *tapedeck.Event) error {
	if e.Type == tapedeck.MessageAdded {
		var in payload.MessageAdded
		_ = e.Unpack(&in) // members of another shape are left out
		text := payload.Piece(in.Message.Text())
		d.ID, d.Text = in.Message.ID, &text
		return r.sayWho(d, e, in.Message.Role == payload.RoleUser)
	}
	var in payload.TextMessageContent
	_ = e.Unpack(&in)
	d.ID, d.MessageID, d.Text = fmt.Sprintf("%s.%d", in.MessageID, e.Offset), in.MessageID, &in.Delta
	users, err := r.isUsers(in.MessageID)
	if err != nil {
		return err
	}
	return r.sayWho(d, e, users)
}

// sayWho sets the agent. A user is one here, too, because the schema has no other member for
// who it is.
func (r *Reader) sayWho(d *data, e *tapedeck.Event, user bool) (err error) {
	if user {
		d.Role, d.AgentID = payload.RoleUser, payload.RoleUser
		if name, ok := strings.CutPrefix(e.Actor, "user:"); ok && name != "" {
			d.UserID, d.AgentID = name, e.Actor
		}
		return nil
	}
	d.AgentID, err = r.agent(e)
	return err
}

// callStatus has the status of a call by the type of the event.
var callStatus = map[string]string{tapedeck.ToolCallStart: "pending", tapedeck.ToolCallEnd: "running", tapedeck.ToolCallResult: "complete"}

func (r *Reader) deriveCall(d *data, e *tapedeck.Event) (err error) {
	var in struct {
		ID       string          `json:"toolCallId"`
		Tool     string          `json:"toolCallName"`
		Content  json.RawMessage `json:"content"`
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = e.Unpack(&in) // members of another shape are left out
	if d.AgentID, err = r.agent(e); err != nil {
		return err
	}
	d.ID, d.Tool, d.Status = in.ID, in.Tool, callStatus[e.Type]
	switch e.Type {
	case view.TypeToolStatus:
		return nil
	case tapedeck.ToolCallStart:
		d.Input = json.RawMessage("null") // it is not known yet
		return nil
	case tapedeck.ToolCallResult:
		if d.Output = in.Content; len(in.Content) == 0 {
			d.Output = payload.Text("")
		}
		ours := tapedeck.MetaOf(in.Metadata)
		if d.Duration = ours.DurationMS; ours.Error || ours.Denied {
			d.Status = "error"
		}
	}
	k, err := r.call(e, in.ID)
	if err != nil || k == nil {
		return err
	}
	d.Tool, d.LeftOut = k.tool, k.long
	if json.Valid(k.args) {
		d.Input = bytes.Clone(k.args)
	} else if len(k.args) > 0 {
		d.Input = payload.Text(string(k.args))
	}
	return nil
}

func (r *Reader) deriveState(d *data, e *tapedeck.Event) (err error) {
	var in struct {
		Message string `json:"message"`
		Status  string `json:"status"`
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	_ = e.Unpack(&in) // members of another shape are left out
	switch e.Type {
	case tapedeck.RunStarted:
		d.Status = "running"
	case tapedeck.RunError:
		d.Status, d.Error = "error", in.Message
	case tapedeck.RunFinished:
		switch d.Status = "completed"; in.Outcome.Type {
		case payload.OutcomeCancelled:
			d.Status = "cancelled"
		case payload.OutcomeInterrupt, payload.OutcomeSuspended:
			d.Status = "waiting"
		}
	default:
		d.Status = in.Status
	}
	d.AgentID, err = r.agent(e)
	return err
}

func derivePresence(d *data, e *tapedeck.Event) {
	var in payload.Presence
	_ = e.Unpack(&in) // members of another shape are left out
	d.UserID, d.Cursor, d.LastSeen, d.JoinedAt = in.User, in.Cursor, milliseconds(in.LastSeen), milliseconds(in.JoinedAt)
	if e.Type == tapedeck.PresenceLeft {
		d.Type = "left"
	}
}

// milliseconds returns a time as milliseconds since 1970, 0 if it is none.
func milliseconds(at string) int64 {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

func deriveTerminal(d *data, e *tapedeck.Event) {
	var in struct {
		Data   payload.Piece `json:"data"`
		ID     string        `json:"id"`
		Source string        `json:"source"`
		Kind   string        `json:"kind"`
		In     string        `json:"terminal"`
	}
	_ = e.Unpack(&in) // members of another shape are left out
	d.ID, d.Data, d.Source, d.Type = in.ID, &in.Data, in.Source, in.Kind
	if d.ID == "" {
		d.ID = fmt.Sprintf("terminal.%d", e.Offset)
	}
	if d.Source == "" {
		d.Source = in.In
	}
	if _, what, ok := strings.Cut(e.Type, "."); ok && d.Type == "" {
		d.Type = what
	}
}

func deriveWorkflow(d *data, e *tapedeck.Event) {
	var in struct {
		ID      string          `json:"id"`
		TaskID  string          `json:"taskId"`
		Element string          `json:"element"`
		Process string          `json:"process"`
		Payload json.RawMessage `json:"payload"`
	}
	_ = e.Unpack(&in) // members of another shape are left out
	d.Actor, d.Type = e.Actor, strings.TrimPrefix(e.Type, "workflow.")
	if step, ok := strings.CutPrefix(e.Type, view.WorkflowTaskStep); ok {
		d.ID, d.TaskID, d.Type, d.Payload = in.ID, in.TaskID, step, in.Payload
		return
	}
	d.ID, d.TaskID, d.Payload = fmt.Sprintf("workflow.%d", e.Offset), cmp.Or(in.Element, in.Process), e.Data
}
