package exchange

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// settle determines the format from the first value, or compares it with the one that was
// named. Another format is an error at once if the value is certainly its header, because the
// named one may find something in what follows. Otherwise it is an error if nothing is found.
func (d *Decoder) settle(rec record) (err error) {
	if d.format == Auto {
		d.format, err = d.detect(rec)
		return err
	}
	if f := formatOf(rec.raw); f != d.format {
		d.seems = f
	}
	if d.seems != "" && (d.seems == Asciicast || object(rec.raw)["tapedeck"] != nil) {
		return d.otherFormat()
	}
	return nil
}

// otherFormat returns the error of an input that has another format than the one that was
// named.
func (d *Decoder) otherFormat() error {
	return tapedeck.Errorf(tapedeck.Invalid, "the input is not in the format %s; it seems to be %s", d.format, d.seems).
		WithHint("name the format %s, or auto", d.seems)
}

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
