package engine

import "encoding/json"

// plainDelta reads data that has an id and a delta and nothing else.
func plainDelta(data []byte, member string) (id, text string, ok bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil || len(m) != 2 {
		return "", "", false
	}
	ok = json.Unmarshal(m[member], &id) == nil && json.Unmarshal(m["delta"], &text) == nil && id != ""
	return id, text, ok
}
