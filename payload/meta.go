package payload

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Meta is what Tapedeck adds to an event or a message of AG-UI: the member
// [tapedeck.VendorKey] of its metadata. Each type of event uses a few of the
// members; an absent one is the zero value.
type Meta struct {
	Agent      string          `json:"agent,omitempty"`      // of RUN_STARTED: the name of the agent
	Chunk      bool            `json:"chunk,omitempty"`      // of a start: it was made from a chunk
	Closed     tapedeck.Status `json:"closed,omitempty"`     // of an end: the run ended with this status and closed what was open
	Context    string          `json:"context,omitempty"`    // of RUN_STARTED: the text that the agent gets before the user's words
	DurationMS *int64          `json:"durationMs,omitempty"` // of TOOL_CALL_RESULT: how long the tool took; nil if unknown
	Error      bool            `json:"error,omitempty"`      // of TOOL_CALL_RESULT: the tool failed, and the content says why
	Invocation string          `json:"invocation,omitempty"` // of SUBAGENT_STARTED: the run of the sub-agent
	Model      string          `json:"model,omitempty"`      // of RUN_STARTED
	Owner      string          `json:"owner,omitempty"`      // of RUN_STARTED: the engine that drives the run; "" if another program writes it
	Prompt     string          `json:"prompt,omitempty"`     // of a system message: the digest of its text, see [NewPrompt]
	Resumable  *bool           `json:"resumable,omitempty"`  // of the end of a cancelled run; nil means true
	Resumes    string          `json:"resumes,omitempty"`    // of RUN_STARTED: the invocation that it resumes
	Skills     []string        `json:"skills,omitempty"`     // of RUN_STARTED: what the agent can use
	Thread     string          `json:"thread,omitempty"`     // of SUBAGENT_STARTED: the thread of the sub-agent
	Tools      []string        `json:"tools,omitempty"`      // of RUN_STARTED: what the agent can call
}

// MetaOf returns Tapedeck's part of metadata. A member of another shape counts as
// absent; so does everything if metadata is no object.
func MetaOf(metadata json.RawMessage) (m Meta) {
	if raw := jsonobj.Member(metadata, tapedeck.VendorKey); raw != nil {
		_ = jsonobj.Unpack(raw, &m) // it leaves members of another shape zero
	}
	return m
}

// Raw returns m as JSON, for a member [tapedeck.VendorKey].
func (m Meta) Raw() json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has only strings, numbers and booleans
	}
	return b
}

// Metadata returns metadata that has only m.
func (m Meta) Metadata() tapedeck.Members { return tapedeck.Members{tapedeck.VendorKey: m.Raw()} }
