package views

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tapedeck/tapedeck"
)

// marshal encodes v without the escapes that HTML needs. Every v that it gets can be
// encoded.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// A change is a message of the state protocol: an entity and its new value.
type change struct {
	Type    string        `json:"type"`
	Key     string        `json:"key"`
	Value   any           `json:"value"`
	Headers changeHeaders `json:"headers"`
}

type changeHeaders struct {
	Operation  string `json:"operation"`
	Timestamp  string `json:"timestamp"`
	Offset     string `json:"offset"` // that of the event, as Durable Streams writes it
	Thread     string `json:"thread"`
	Invocation string `json:"invocation,omitempty"`
}

// encodeChange encodes the change of an entity by an event.
func encodeChange(e *tapedeck.Event, operation, typ, key string, value any) []byte {
	return marshal(change{typ, key, value, changeHeaders{
		Operation: operation, Timestamp: e.Time.Format("2006-01-02T15:04:05.000Z"),
		Offset: fmt.Sprintf("%016d_%016d", e.Offset, 0), Thread: e.ThreadName(), Invocation: e.Invocation,
	}})
}
