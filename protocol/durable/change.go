package durable

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck/tapedeck"
)

// marshal encodes v, which can be encoded, without the escapes that are meant
// for HTML.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// A change is a message of the state protocol: an entity, and what it is now.
type change struct {
	Type    string        `json:"type"`
	Key     string        `json:"key"`
	Value   any           `json:"value"`
	Headers changeHeaders `json:"headers"`
}

type changeHeaders struct {
	Operation  string `json:"operation"`
	Timestamp  string `json:"timestamp"`
	Offset     string `json:"offset"` // of the event
	Thread     string `json:"thread"`
	Invocation string `json:"invocation,omitempty"`
}

// encodeChange encodes what event e makes of an entity.
func encodeChange(e *tapedeck.Event, operation, typ, key string, value any) []byte {
	return marshal(change{typ, key, value, changeHeaders{
		Operation: operation, Timestamp: e.Time.Format("2006-01-02T15:04:05.000Z"),
		Offset: offset{n: e.Offset}.String(), Thread: e.ThreadName(), Invocation: e.Invocation,
	}})
}
