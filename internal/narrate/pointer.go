package narrate

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck/tapedeck/payload"
)

// Pointer returns the value at a JSON pointer (RFC 6901) in a document; nil if there
// is no value. The pointer "" is the whole document.
func Pointer(doc json.RawMessage, pointer string) json.RawMessage {
	if pointer == "" {
		return doc
	}
	if pointer[0] != '/' {
		return nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if doc = child(doc, token); doc == nil {
			return nil
		}
	}
	return doc
}

func child(doc json.RawMessage, token string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(doc, &object) == nil {
		return object[token]
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(token)
	if err != nil || json.Unmarshal(doc, &list) != nil || i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

// String returns a JSON value as text: the characters of a string, "" for null and for
// an empty v, and the JSON itself for any other value.
func String(v json.RawMessage) string { return Piece(v).Whole() }

// Piece is [String] for a piece of a text, which may end in the middle of a character.
func Piece(v json.RawMessage) payload.Piece {
	var p payload.Piece
	if len(v) == 0 || json.Unmarshal(v, &p) == nil { // null leaves p empty
		return p
	}
	return payload.Piece(v)
}
