package payload

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// A Meta has the members that Tapedeck adds to the metadata of an AG-UI event
// or message, under [tapedeck.VendorKey]. Each event type uses some of them; an
// absent member is the zero value.
type Meta struct {
	Agent      string          `json:"agent,omitempty"`      // RUN_STARTED: the name of the agent
	Chunk      bool            `json:"chunk,omitempty"`      // the START of a thing: a chunk opened it
	Closed     tapedeck.Status `json:"closed,omitempty"`     // the END of a thing: the run ended with this status and so closed it
	Context    string          `json:"context,omitempty"`    // RUN_STARTED: the text that the agent gets before the user's task
	DurationMS *int64          `json:"durationMs,omitempty"` // TOOL_CALL_RESULT: the duration of the tool; nil if unknown
	Error      bool            `json:"error,omitempty"`      // TOOL_CALL_RESULT: the tool failed, and the content says why
	Invocation string          `json:"invocation,omitempty"` // SUBAGENT_STARTED: the run of the sub-agent
	Model      string          `json:"model,omitempty"`      // RUN_STARTED: the model
	Owner      string          `json:"owner,omitempty"`      // RUN_STARTED: the engine that holds the run; "" if an outside program writes it
	Prompt     string          `json:"prompt,omitempty"`     // a system message: the digest of its text, see [NewPrompt]
	Resumable  *bool           `json:"resumable,omitempty"`  // the end of a cancelled run: whether it can be resumed; nil means true
	Resumes    string          `json:"resumes,omitempty"`    // RUN_STARTED: the invocation that it resumes
	Skills     []string        `json:"skills,omitempty"`     // RUN_STARTED: the names of the agent's skills
	Thread     string          `json:"thread,omitempty"`     // SUBAGENT_STARTED: the thread of the sub-agent
	Tools      []string        `json:"tools,omitempty"`      // RUN_STARTED: the names of the agent's tools
}

// MetaOf returns Tapedeck's part of metadata. A member of another shape counts
// as absent. If metadata is not an object, all members do.
func MetaOf(metadata json.RawMessage) (m Meta) {
	if raw := jsonobj.Member(metadata, tapedeck.VendorKey); raw != nil {
		_ = jsonobj.Unpack(raw, &m) // members of another shape stay zero
	}
	return m
}

// Raw returns m as JSON, the value of [tapedeck.VendorKey].
func (m Meta) Raw() json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // cannot happen: the members are strings, numbers and booleans
	}
	return b
}

// Metadata returns metadata with only m.
func (m Meta) Metadata() tapedeck.Members { return tapedeck.Members{tapedeck.VendorKey: m.Raw()} }
