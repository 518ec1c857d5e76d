package api

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck/view"
)

// A NewInstance adds an instance of an agent, with its own thread, to a session.
type NewInstance struct {
	Session string `json:"-"`
	Agent   string `json:"agent_name"`                   // not empty
	Parent  string `json:"parent_instance_id,omitempty"` // the instance of the same session that started it; without it, no instance
}

// A ContextInstance is an instance as the repository of contexts shows it.
type ContextInstance struct {
	ID        string    `json:"id"` // unique across sessions
	Session   string    `json:"session_id"`
	Agent     string    `json:"agent_name"`
	Parent    *string   `json:"parent_instance_id"` // null if no instance started it
	Thread    string    `json:"thread"`
	CreatedAt view.Time `json:"created_at"`
}

// InstanceEvents is the context of an instance from a sequence number on.
type InstanceEvents struct {
	Instance string              `json:"instance_id"`
	Events   []view.ContextEvent `json:"events"`
	Next     int64               `json:"next"` // the sequence number to read from next
}

// A NewContextEvent appends an event to the context of an instance.
type NewContextEvent struct {
	Type       string          `json:"event_type"`             // system_message, user_message, assistant_message, tool_call or tool_result
	Content    json.RawMessage `json:"content"`                // {"role","content","tool_calls"} of messages, {"id","name","arguments"} of a call, {"tool_call_id","content"} of a result
	ToolCallID string          `json:"tool_call_id,omitempty"` // the id of the call that a result belongs to; needed if the content does not name it
}

// ContextReverted reports what a DELETE of context events did.
type ContextReverted struct {
	Deleted int    `json:"deleted"`          // the number of events that were reverted
	Marker  string `json:"marker,omitempty"` // pass it to undo to make the events active again; absent if no event was reverted
}

// A CopyContext copies the context of an instance to the end of another context.
type CopyContext struct {
	Session string `json:"target_session_id,omitempty"` // the session of the target; without it, the session in the path
	Target  string `json:"target_instance_id"`          // the instance that receives the copies
	UpTo    *int   `json:"up_to_sequence,omitempty"`    // the last sequence number to copy; absent: all events
}

// ContextCopied reports what a [CopyContext] did.
type ContextCopied struct {
	Copied int `json:"copied"` // the number of events that were copied
}
