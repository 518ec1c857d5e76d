package engine

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// plainDelta reads data that has an id and a delta and nothing else. A delta
// that does not survive decoding is none, such as half of a surrogate pair:
// joined to others it would not be what the agent has said.
func plainDelta(data []byte, member string) (id, text string, ok bool) {
	var m map[string]json.RawMessage
	if !utf8.Valid(data) || json.Unmarshal(data, &m) != nil || len(m) != 2 {
		return "", "", false
	}
	if json.Unmarshal(m[member], &id) != nil || json.Unmarshal(m["delta"], &text) != nil {
		return "", "", false
	}
	ok = id != "" && text != "" && !strings.ContainsRune(id+text, utf8.RuneError)
	return id, text, ok
}
