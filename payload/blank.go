package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// IsImplied reports whether another event of the same append says already what e says, see
// [tapedeck.Meta].
func IsImplied(e *tapedeck.Event) bool {
	return bytes.Contains(e.Data, []byte(`"implied"`)) && tapedeck.MetaOf(json.RawMessage(jsonobj.Member(e.Data, "metadata"))).Implied
}

// Blank returns the data of e after its payload is erased: what the log needs
// for ids, order and views.
func Blank(e *tapedeck.Event) json.RawMessage {
	b := []byte(`{"erased":true`)
	if t := typeByName[e.Type]; t != nil {
		b = t.layout.blank(b, 1, e.Data)
	}
	kept := tapedeck.Meta{Implied: IsImplied(e)}
	if e.Type == tapedeck.RunFinished {
		var s tapedeck.Session
		s.Apply(e)
		kept.Resumable = s.Resumable
	}
	if kept.Implied || kept.Resumable != nil {
		b = jsonobj.AppendMembers(jsonobj.AppendName(b, 1, "metadata"), kept.In(nil))
	}
	return append(b, '}')
}

// blank appends the remaining members of an object, and empty values for
// required ones. start is the length of b after the object's opening brace.
func (l *layout) blank(b []byte, start int, data []byte) []byte {
	given := make([][]byte, len(l.fields))
	o := jsonobj.Read(data)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		if i, f := l.field(name); f != nil {
			given[i] = raw
		}
	}
	for i := range l.fields {
		f := &l.fields[i]
		v := f.remains(given[i])
		if v == nil && f.required {
			v = []byte(emptyOf[f.shape])
		}
		if v != nil {
			b = append(jsonobj.AppendName(b, start, f.name), v...)
		}
	}
	return b
}

// emptyOf has the erased value of a required member by shape.
var emptyOf = map[shape]string{
	shapeAny: `{}`, shapeSome: `{}`, shapeString: `""`, shapeID: `"erased"`, shapeInteger: `0`, shapeNumber: `0`, shapeBool: `false`,
	shapeObject: `{}`, shapeArray: `[]`, shapeStrings: `[]`, shapeLabels: `{}`, shapeText: `""`, shapePatch: `[]`, shapeCuts: `[]`,
	shapeStruct: `{}`, shapeStructs: `[]`,
}

// What remains of a member depends on its name, which means the same in every
// type. keptNames keep an id; a value that is not a well-formed id is hashed.
// keptMembers stay unchanged. keptWords stay if they are one of the listed
// words. keptParts are structs whose members are treated in the same way.
// emptiedMembers lose their value and stay as members: the event still says that the
// title or the labels were set or removed. Without that, a session whose title was
// removed would get its older title back when its events are folded again.
var (
	keptNames = [...]string{
		"messageId", "toolCallId", "runId", "threadId", "parentRunId", "parentMessageId", "subagentRunId", "parentSubagentRunId",
		"parentToolCallId", "entityId", "id", "parent", "terminal", "element", "stepName", "format",
		"marker", "thread", "beforeInvocation", "undoes", "before", "invocation",
	}
	keptMembers = [...]string{"toOffset", "fromOffset", "previous", "with", "at", "copy", "offset", "status", "resumable", "replace", "owner", "agent", "attempt"}
	keptWords   = map[string][]string{
		"role":    {RoleDeveloper, RoleSystem, RoleUser, RoleAssistant, RoleTool, RoleActivity, RoleReasoning},
		"type":    {OutcomeSuccess, OutcomeInterrupt, OutcomeCancelled, OutcomeSuspended, "function"},
		"subtype": {"message", "tool-call"},
		"code":    {tapedeck.CodeInterrupted, tapedeck.CodeLeaseExpired, CodeRunEnded},
	}
	keptParts      = [...]string{"message", "messages", "toolCalls", "function", "outcome", "interrupts"}
	emptiedMembers = [...]string{"title", "labels"}
)

// remains returns what is left of a member, nil if nothing is.
func (f *field) remains(raw []byte) []byte {
	switch {
	case len(raw) == 0 || jsonobj.IsNull(raw):
		return nil
	case f.nested != nil && slices.Contains(keptParts[:], f.name):
		return f.remainingParts(raw)
	case f.nested != nil:
		return nil
	case slices.Contains(keptNames[:], f.name) && jsonobj.IsString(raw):
		return remainingName(jsonobj.StringOf(raw))
	case slices.Contains(keptMembers[:], f.name) && f.shape.fits(raw):
		return raw
	case slices.Contains(keptWords[f.name], jsonobj.StringOf(raw)):
		return raw
	case slices.Contains(emptiedMembers[:], f.name):
		return []byte(emptyOf[f.shape])
	case f.name == "content" && raw[0] == '{': // an activity has an object
		return []byte(`{}`)
	case f.name == "content":
		return []byte(`""`)
	case f.name == "activityType": // required for an activity message
		return []byte(emptyOf[shapeID])
	}
	return nil
}

func (f *field) remainingParts(raw []byte) []byte {
	if f.shape == shapeStruct {
		return append(f.nested.blank([]byte{'{'}, 1, raw), '}')
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(f.nested.blank(append(b, '{'), len(b)+1, item), '}')
	}
	return append(b, ']')
}

// remainingName returns a name unchanged if it has the form of an id. Otherwise
// it returns a hash of it, so that events with the same name still belong
// together.
func remainingName(s string) []byte {
	if s == "" {
		return nil
	}
	if tapedeck.CheckID("", s) != nil {
		sum := sha256.Sum256([]byte(s))
		s = "erased-" + hex.EncodeToString(sum[:8])
	}
	return jsonobj.AppendJSON(nil, s)
}
