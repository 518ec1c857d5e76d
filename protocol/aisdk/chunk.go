package aisdk

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// Types of chunks.
const (
	chunkStart          = "start"
	chunkFinish         = "finish"
	chunkAbort          = "abort"
	chunkError          = "error"
	chunkStartStep      = "start-step"
	chunkResetStep      = "reset-step"
	chunkFinishStep     = "finish-step"
	chunkTextStart      = "text-start"
	chunkTextDelta      = "text-delta"
	chunkTextEnd        = "text-end"
	chunkReasoningStart = "reasoning-start"
	chunkReasoningDelta = "reasoning-delta"
	chunkReasoningEnd   = "reasoning-end"
	chunkToolStart      = "tool-input-start"
	chunkToolDelta      = "tool-input-delta"
	chunkToolInput      = "tool-input-available"
	chunkToolBadInput   = "tool-input-error"
	chunkToolOutput     = "tool-output-available"
	chunkToolError      = "tool-output-error"
	chunkToolDenied     = "tool-output-denied"
	chunkApproval       = "tool-approval-request"
	chunkAnswered       = "tool-approval-response"
	chunkSourceURL      = "source-url"
	chunkSourceDocument = "source-document"
	chunkFile           = "file"
	chunkReasoningFile  = "reasoning-file"
	chunkSteering       = "steering-message"

	dataPrefix = "data-" // begins the types that an application defines
)

// A member is a member of a chunk; a nil value is left out.
type member struct {
	name  string
	value []byte
}

// text returns a member that is a string.
func text(name, value string) member { return member{name, jsonobj.AppendJSON(nil, value)} }

// encode returns a member with any value that can be encoded.
func encode(name string, value any) member {
	raw, err := json.Marshal(value)
	if err != nil {
		return member{}
	}
	return member{name, raw}
}

// chunk returns an encoded chunk.
func chunk(typ string, members ...member) []byte {
	b := jsonobj.AppendJSON([]byte(`{"type":`), typ)
	for _, m := range members {
		if m.value != nil {
			b = append(jsonobj.AppendJSON(append(b, ','), m.name), ':')
			b = append(b, m.value...)
		}
	}
	return append(b, '}')
}

// isWhole reports whether a chunk of a type is a part by itself. Such a chunk is an
// activity of the log, whose kind is the type of the chunk.
func isWhole(typ string) bool {
	switch typ {
	case chunkSourceURL, chunkSourceDocument, chunkFile, chunkReasoningFile:
		return true
	}
	return strings.HasPrefix(typ, dataPrefix) && len(typ) > len(dataPrefix)
}

// partOf returns an activity as the members of a part: the type, the id, and the rest.
// An activity of another program becomes a data part.
func partOf(kind, id string, content json.RawMessage) []byte {
	if !isWhole(kind) {
		return chunk(dataPrefix+"activity", text("id", id), encode("data", activity{kind, content}))
	}
	b := jsonobj.AppendJSON([]byte(`{"type":`), kind)
	o := jsonobj.Read(content)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		if string(name) != "type" {
			b = append(jsonobj.AppendJSON(append(b, ','), string(name)), ':')
			b = append(b, raw...)
		}
	}
	return append(b, '}')
}

// steeringPart returns what a user said to a running agent. Version 7 has a part for it. Older
// ones end a stream with an error when they see it, but take any data.
func steeringPart(version int, id, words string) []byte {
	said := jsonobj.AppendMembers(nil, map[string]json.RawMessage{"text": jsonobj.AppendJSON(nil, words)})
	if version < 7 {
		return chunk(dataPrefix+"steering", text("id", id), member{"data", said})
	}
	return chunk(chunkSteering, text("id", id), encode("parts", []json.RawMessage{chunk("text", text("text", words))}))
}

// An activity is the data of a data-activity.
type activity struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// inputOf returns the arguments of a call as the input of a tool: arguments that are
// no JSON are a string.
func inputOf(arguments string) json.RawMessage {
	if strings.TrimSpace(arguments) == "" {
		return json.RawMessage("{}")
	}
	if raw := []byte(arguments); jsonobj.Nesting(raw) <= maxNesting && json.Valid(raw) {
		return raw
	}
	return jsonobj.AppendJSON(nil, arguments)
}

// outputOf returns the answer of a tool as its output. A text that is a JSON object or
// array is that value: most tools answer so, and front ends read members of the output.
func outputOf(answer string) json.RawMessage {
	if t := strings.TrimSpace(answer); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		if raw := []byte(t); jsonobj.Nesting(raw) <= maxNesting && json.Valid(raw) {
			return raw
		}
	}
	return jsonobj.AppendJSON(nil, answer)
}

// A place says where in the log a message is. It is the member tapedeck of the
// message's metadata, so that a front end can rewind to it.
type place struct {
	Offset     int64  `json:"offset"`
	Invocation string `json:"invocation,omitempty"`

	// Runs are the runs of the message, the first one first. It is nil if there is only one:
	// the invocation.
	Runs []string `json:"runs,omitempty"`

	// Next is the offset of the next event that the client does not have. When its
	// approvals arrive, the stream continues there. It is 0 at the start of a stream.
	Next int64 `json:"next,omitempty"`

	// From is the offset at which a stream begins that continues a message. It is 0 if the
	// stream has the whole message.
	From int64 `json:"from,omitempty"`

	// Attempts is the offset before which a stream leaves out earlier attempts of a step. It
	// is 0 if there were none.
	Attempts int64 `json:"attempts,omitempty"`

	// Status and Error say how a run ended that did not complete.
	Status tapedeck.Status `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// metaKey is the member of metadata that has a [place].
const metaKey = "tapedeck"

func placed(p place) member { return encode("messageMetadata", map[string]place{metaKey: p}) }

// sortedKeys returns the keys of a map in order, so that the same run always gives the
// same chunks.
func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
