package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Message is a request or a notification of the peer.
type Message struct {
	ID     json.RawMessage // the id of a request, for [Peer.Reply]; nil for a notification
	Method string          // "" for a line that is not a message of JSON-RPC
	Params json.RawMessage // nil if there are none; the whole line if Method is ""
}

// Error codes that the protocol defines.
const (
	CodeInvalidParams  = -32602
	CodeMethodNotFound = -32601
	CodeInternal       = -32603
)

// An Error is the answer to a failed request.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// A wire is any message, as it is encoded.
type wire struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// parse decodes a line. It reports false if the line is not a message, because some
// programs print other text to their output, too.
func parse(line []byte) (wire, bool) {
	var w wire
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &w) != nil || w.Version != "2.0" {
		return wire{}, false
	}
	if bytes.Equal(w.ID, []byte("null")) {
		w.ID = nil // an answer to a message that the peer could not read; no call has this id
	}
	if w.Method == "" && w.Result == nil && w.Error == nil {
		return wire{}, false
	}
	return w, true
}
