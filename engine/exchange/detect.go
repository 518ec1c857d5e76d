package exchange

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// detect returns the format of an input, from its first value.
func (d *Decoder) detect(rec record) (string, error) {
	if d.in.stream != nil {
		return AGUI, nil
	}
	if f := formatOf(rec.raw); f != "" {
		return f, nil
	}
	return "", tapedeck.Errorf(tapedeck.Invalid, "the format of the input cannot be detected").
		WithHint("name its format: %s", strings.Join(Formats(), ", "))
}

func formatOf(raw json.RawMessage) string {
	if items, ok := list(raw); ok {
		switch {
		case len(items) == 0:
			return ""
		case kindOf(items[0]) == '[':
			return OpenAIMessages
		}
		raw = items[0]
	}
	m := object(raw)
	typ, isTyped := text(m["type"])
	switch {
	case m["tapedeck"] != nil, m["offset"] != nil && isTyped:
		return NDJSON
	case m["version"] != nil && (m["term"] != nil || m["width"] != nil):
		return Asciicast
	case m["loglines"] != nil:
		return ClaudeCode
	case isEvents(m):
		return AGUI
	case m["role"] != nil, conversationIn(m) != nil:
		return OpenAIMessages
	case isTyped && typ == strings.ToUpper(typ):
		return AGUI
	case isTyped:
		return ClaudeCode
	}
	return ""
}

// isEvents reports whether an object holds AG-UI events: a list of them, as in a
// fixture of an SDK, or a single one, as in a recorded frame of a stream.
func isEvents(m tapedeck.Members) bool {
	inside := object(m["data"])
	if items, ok := list(m["events"]); ok && len(items) > 0 {
		inside = unframed(items[0])
	}
	typ, ok := text(inside["type"])
	return ok && typ != "" && typ == strings.ToUpper(typ)
}

// unframed returns an event, also one in a frame of a stream.
func unframed(raw json.RawMessage) tapedeck.Members {
	m := object(raw)
	if inside := object(m["data"]); m["type"] == nil && inside["type"] != nil {
		return inside
	}
	return m
}
