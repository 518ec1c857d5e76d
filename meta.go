package tapedeck

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// metaKey is the member of metadata that holds a [Meta].
const metaKey = "tapedeck"

// A Meta has the members that Tapedeck adds to the metadata of an AG-UI event
// or message, under "tapedeck". Each event type uses some of them; an absent
// member is the zero value.
type Meta struct {
	Agent      string   `json:"agent,omitempty"`      // RUN_STARTED: the name of the agent
	Call       string   `json:"call,omitempty"`       // a message that is the tool_call of a context: the id of its call
	Chunk      bool     `json:"chunk,omitempty"`      // the START of a thing: a chunk opened it
	Closed     Status   `json:"closed,omitempty"`     // the END of a thing: the run ended with this status and so closed it
	Context    string   `json:"context,omitempty"`    // RUN_STARTED: the text that the agent gets before the user's task
	Error      bool     `json:"error,omitempty"`      // TOOL_CALL_RESULT: the tool failed, and the content says why
	Denied     bool     `json:"denied,omitempty"`     // TOOL_CALL_RESULT: the user has denied the call, so the tool did not work
	DurationMS *int64   `json:"durationMs,omitempty"` // TOOL_CALL_RESULT: the duration of the tool; nil if unknown
	IDs        []string `json:"ids,omitempty"`        // a message that is one event of a context: the ids of its calls there, if they are others in the log
	Implied    bool     `json:"implied,omitempty"`    // an event that another one of its append says already; RUN_STARTED: so is the end of the run
	Invocation string   `json:"invocation,omitempty"` // SUBAGENT_STARTED, permission.requested: the run of the sub-agent
	LeaseMS    int64    `json:"leaseMs,omitempty"`    // RUN_STARTED of an outside program: how long it may be silent, in milliseconds; 0 for the lease of the server
	Model      string   `json:"model,omitempty"`      // RUN_STARTED: the model
	Owner      string   `json:"owner,omitempty"`      // RUN_STARTED: the engine that holds the run; "" if an outside program writes it
	Prompt     string   `json:"prompt,omitempty"`     // a system message: the digest of its text
	Resumable  *bool    `json:"resumable,omitempty"`  // the end of a cancelled run: whether it can be resumed; nil means true
	Resumes    string   `json:"resumes,omitempty"`    // RUN_STARTED: the invocation that it resumes
	Skills     []string `json:"skills,omitempty"`     // RUN_STARTED: the names of the agent's skills
	Step       string   `json:"step,omitempty"`       // a message that is one event of a context: the type of the event
	Thread     string   `json:"thread,omitempty"`     // SUBAGENT_STARTED, permission.requested: the thread of the sub-agent
	Tools      []string `json:"tools,omitempty"`      // RUN_STARTED: the names of the agent's tools
	Trace      string   `json:"trace,omitempty"`      // RUN_STARTED: the trace of the request that began it, as a traceparent of W3C; "" for none

	Given json.RawMessage `json:"given,omitempty"` // a message that is one event of a context: the content of the event, if the message cannot say all of it
}

// MetaOf returns the members of Tapedeck in the metadata of an event or a
// message. A member of another shape counts as absent. If metadata is not an
// object, all members do.
func MetaOf[M Members | json.RawMessage](metadata M) (m Meta) {
	var ours json.RawMessage
	switch metadata := any(metadata).(type) {
	case Members:
		ours = metadata[metaKey]
	case json.RawMessage:
		ours = jsonobj.Member(metadata, metaKey)
	}
	if ours != nil {
		_ = jsonobj.Unpack(ours, &m) // members of another shape stay zero
	}
	return m
}

// metaNames are the names of the members of a Meta.
var metaNames = func() (names []string) {
	for f := range reflect.TypeFor[Meta]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}()

// In returns a copy of metadata with m as the members of Tapedeck. Members under
// "tapedeck" that a Meta does not have stay as they are. Metadata may be nil.
func (m Meta) In(metadata Members) Members {
	out := Members{}
	maps.Copy(out, metadata)
	out[metaKey] = m.replace(metadata[metaKey])
	return out
}

// replace returns m as JSON, with the members of old that a Meta does not have.
func (m Meta) replace(old json.RawMessage) json.RawMessage {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // cannot happen: the members are strings, numbers and booleans
	}
	var others Members
	if _ = json.Unmarshal(old, &others); len(others) == 0 {
		return raw // also if old is not an object
	}
	for _, name := range metaNames {
		delete(others, name)
	}
	_ = json.Unmarshal(raw, &others) // adds the members of m
	return jsonobj.AppendMembers(nil, others)
}
