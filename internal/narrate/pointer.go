package narrate

import (
	"encoding/json"
	"strconv"
	"strings"
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
func String(v json.RawMessage) string {
	var s string
	if len(v) == 0 || json.Unmarshal(v, &s) == nil { // null leaves s empty
		return s
	}
	return string(v)
}
