package apischema

import (
	"maps"
	"reflect"
	"strings"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/payload"
)

// An eventType is a type of the catalogue.
type eventType struct {
	name string // such as TEXT_MESSAGE_START
	data string // the name of the schema of its data, such as TextMessageStartData
}

// schemaName returns the name of the schema of the whole event.
func (e eventType) schemaName() string { return strings.TrimSuffix(e.data, "Data") + "Event" }

// catalogue returns the types of the catalogue, in its order, and adds the schemas of
// their data.
func (s *schemas) catalogue() ([]eventType, error) {
	var all []eventType
	for _, name := range payload.EventTypes() {
		p, err := payload.Decode(tapedeck.Event{Type: name, Data: []byte("{}")})
		if err != nil {
			return nil, err
		}
		t := reflect.TypeOf(p)
		e := eventType{name: name, data: t.Name() + "Data"}
		s.open[t] = true
		if err := s.addAs(e.data, t); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// addEvents adds the envelope, a schema for each type of event, and their union.
func (s *schemas) addEvents() ([]eventType, error) {
	all, err := s.catalogue()
	if err != nil {
		return nil, err
	}
	for name, add := range handwritten() {
		s.named[name] = add
	}
	union := &schema{Description: "An event of a type of the catalogue."}
	mapping := map[string]string{}
	var known []any
	for _, e := range all {
		s.named[e.schemaName()] = &schema{
			Description: "An event of the type " + e.name + ".",
			AllOf:       []*schema{refTo("Envelope")},
			Type:        "object",
			Properties: map[string]*schema{
				"type":    {Const: new(any(e.name))},
				"channel": {Const: new(any(tapedeck.ChannelOf(e.name)))},
				"data":    refTo(e.data),
			},
			PropertyOrder: []string{"type", "channel", "data"},
			Required:      s.requiredOf(e),
		}
		union.OneOf = append(union.OneOf, refTo(e.schemaName()))
		mapping[e.name] = refPrefix + e.schemaName()
		known = append(known, e.name)
	}
	union.Extra = map[string]any{"discriminator": map[string]any{"propertyName": "type", "mapping": mapping}}
	s.named["KnownEvent"] = union
	s.named["OtherEvent"] = &schema{
		Description: "An event of a type that is not in the catalogue. Its data is any object.",
		AllOf:       []*schema{refTo("Envelope")},
		Type:        "object",
		Properties:  map[string]*schema{"type": {Type: "string", Not: &schema{Enum: known}}},
		Required:    []string{"type"}, PropertyOrder: []string{"type"},
	}
	s.named["Event"] = &schema{
		Description: "An event of any type.",
		AnyOf:       []*schema{refTo("KnownEvent"), refTo("OtherEvent")},
	}
	return all, nil
}

// requiredOf returns the members that an event must have besides those of every
// envelope. Its data may be absent if no member of the data is required.
func (s *schemas) requiredOf(e eventType) []string {
	if len(s.named[e.data].Required) > 0 {
		return []string{"type", "data"}
	}
	return []string{"type"}
}

// maxIDLen is the largest number of characters in an id, see [tapedeck.CheckID].
const maxIDLen = 128

// handwritten returns the schemas of what is not a struct in Go with a member for
// each member in JSON.
func handwritten() map[string]*schema {
	return map[string]*schema{
		"Envelope": envelope(), "NewEvent": newEvent(), "TaskEvent": taskEvent(), "ChannelEvent": channelEvent(),
		"ContentPart": contentPart(), "PatchOperation": patchOperation(),
	}
}

// withLane returns more and the members of an envelope that say where the event
// belongs.
func withLane(more map[string]*schema) map[string]*schema {
	id := func(what string) *schema {
		return &schema{Type: "string", MinLength: new(1), MaxLength: new(maxIDLen), Description: what}
	}
	out := map[string]*schema{
		"thread":     id("The lane of conversation. Absent: main."),
		"invocation": id("The request to an agent that the event belongs to."),
		"instance":   id("The agent instance that caused it."),
		"turn":       {Type: "integer", Minimum: new(1.0), Description: "The model call within the invocation, from 1."},
		"actor":      {Type: "string", Description: "The user, agent or program that caused it, such as user:ada or agent:coder."},
	}
	maps.Copy(out, more)
	return out
}

// envelope describes an event as it is read.
func envelope() *schema {
	return &schema{
		Description: "What every event has. An event is one immutable record of a session.",
		Type:        "object",
		Properties: withLane(map[string]*schema{
			"offset":  {Type: "integer", Minimum: new(0.0), Description: "The position in the session, from 0. The cursor after this event is offset + 1."},
			"type":    {Type: "string", Description: "What happened: a type of the event catalogue, or any other."},
			"channel": {Type: "string", Description: "The kind of the event."}, "timestamp": {Type: "string", Format: "date-time", Description: "When it happened: UTC, with milliseconds."},
			"data": {Type: "object", Description: "The members of the type."},
		}),
		PropertyOrder: []string{"offset", "type", "channel", "timestamp", "thread", "invocation", "instance", "turn", "actor", "data"},
		Required:      []string{"offset", "type", "channel", "timestamp"},
	}
}

// newEvent describes an event of a client that appends it.
func newEvent() *schema {
	return &schema{
		Description: "An event to append. Its data has the form of the Event of the same type. The server sets offset and channel, " +
			"and keeps a given timestamp in the data. Instead, an event may have the form of one of the six channels' own schemas: channel and its members.",
		Type: "object",
		Properties: withLane(map[string]*schema{
			"type":   {Type: "string", Description: "A type of the event catalogue, or any other that does not begin with session."},
			"offset": {Type: "integer", Description: "Ignored."}, "timestamp": {Type: "string", Format: "date-time"},
			"channel": {Type: "string", Description: "Used only if the server does not know the type."}, "data": {Type: "object"},
		}),
		PropertyOrder: []string{"type", "offset", "channel", "timestamp", "thread", "invocation", "instance", "turn", "actor", "data"},
		AnyOf:         []*schema{{Required: []string{"type"}}, {Required: []string{"channel"}}},
	}
}

// taskEvent describes an event of the SSE task protocol.
func taskEvent() *schema {
	return &schema{
		Description: "An event of the SSE task protocol, see docs/protocol/task-events.md.",
		Type:        "object",
		Properties: map[string]*schema{
			"type": {Type: "string"}, "data": {Type: "object"},
			"timestamp": {Type: "string", Format: "date-time"}, "sequence": {Type: "integer"},
		},
		PropertyOrder: []string{"type", "data", "timestamp", "sequence"},
		Required:      []string{"type", "data", "timestamp", "sequence"},
	}
}

// channelEvent describes an event in the form of the six channels.
func channelEvent() *schema {
	return &schema{
		Description: "An event in the form of the six channels, see docs/protocol/channels.md.",
		Type:        "object",
		Properties: map[string]*schema{
			"id": {Type: "string"}, "session_id": {Type: "string"}, "offset": {Type: "integer", Description: "Its number in this form, from 0."},
			"type": {Type: "string"}, "channel": {Type: "string"}, "data": {Type: "object", Description: "The members of the schema of the channel."},
			"timestamp": {Type: "integer", Description: "Milliseconds since 1970."}, "created_at": {Type: "integer", Description: "When the log got it: milliseconds since 1970."},
		},
		PropertyOrder: []string{"id", "session_id", "offset", "type", "channel", "data", "timestamp", "created_at"},
		Required:      []string{"id", "session_id", "offset", "type", "channel", "data", "timestamp", "created_at"},
	}
}

// contentPart describes a part of a message.
func contentPart() *schema {
	return &schema{
		Description: "A part of the content of a message. A part of an unknown type has only its type.",
		Type:        "object",
		Properties: map[string]*schema{
			"type": {Type: "string", Description: "text, image, audio, video, document or another."},
			"text": {Type: "string"},
			"source": {
				Type:          "object",
				Properties:    map[string]*schema{"type": {Type: "string"}, "value": {Type: "string"}},
				PropertyOrder: []string{"type", "value"},
			},
		},
		PropertyOrder: []string{"type", "text", "source"},
		Required:      []string{"type"},
	}
}

// patchOperation describes an operation on the state of an agent.
func patchOperation() *schema {
	return &schema{
		Description: "An operation of a JSON patch (RFC 6902).",
		Type:        "object",
		Properties: map[string]*schema{
			"op":   {Type: "string", Enum: []any{"add", "remove", "replace", "move", "copy", "test"}},
			"path": {Type: "string"}, "from": {Type: "string"}, "value": {},
		},
		PropertyOrder: []string{"op", "path", "from", "value"},
		Required:      []string{"op", "path"},
	}
}
