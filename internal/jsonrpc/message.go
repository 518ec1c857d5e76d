package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Message is something that the other side says of its own accord.
type Message struct {
	ID     json.RawMessage // of a request, to be given to [Peer.Reply]; nil for a notification
	Method string          // "" for a line that is no message of JSON-RPC
	Params json.RawMessage // nil for none; the whole line if that is no message
}

// The codes of errors that the protocol names.
const (
	CodeInvalidParams  = -32602
	CodeMethodNotFound = -32601
	CodeInternal       = -32603
)

// An Error is the answer to a request that failed.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// A wire is any message.
type wire struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// parse reads a line. It reports false if that is no message: programs write all
// kinds of things where they should not.
func parse(line []byte) (wire, bool) {
	var w wire
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &w) != nil || w.Version != "2.0" {
		return wire{}, false
	}
	if bytes.Equal(w.ID, []byte("null")) {
		w.ID = nil // an answer to what could not be read; no request has it
	}
	if w.Method == "" && w.Result == nil && w.Error == nil {
		return wire{}, false
	}
	return w, true
}
