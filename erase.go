package tapedeck

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// An Erasure asks a store to take the payloads of events for good, and to append
// the receipt for it: both or neither. Offset, type, channel, time, thread,
// invocation, instance, turn and actor of the events stay; see [Record.Erase].
type Erasure struct {
	Session string
	Ranges  []OffsetRange // in order, apart from each other, none empty; of events that the session has itself
	Events  []Event       // what is appended, even to a closed session; not empty

	// Check, if not nil, is called as that of an [Append] is.
	Check func(s *Session) error

	// Forget, if not nil, is called when it has been committed, and before the
	// store cleans its files of what was there. It is given the forks that
	// have lost something too, and removes what was made of the payloads. Its
	// error is that of the erasure, though the events are erased. A store that
	// keeps files calls it again until it succeeds.
	Forget func(ctx context.Context, forks []string) error
}

// Valid reports what is wrong with an erasure whatever the session: [Invalid].
func (e *Erasure) Valid() error {
	end := int64(0)
	for _, r := range e.Ranges {
		switch {
		case r.From < 0 || r.To <= r.From:
			return Errorf(Invalid, "the range from %d to %d has no events in it", r.From, r.To).
				WithHint("a range goes from an offset up to and without another, which is higher")
		case r.From < end:
			return Errorf(Invalid, "the range from %d to %d is not above the one before it", r.From, r.To)
		}
		end = r.To
	}
	if len(e.Ranges) == 0 || len(e.Events) == 0 {
		return Errorf(Invalid, "there is nothing to erase")
	}
	return nil
}

// Decide says whether session s takes a valid erasure. Check has not been called
// yet.
func (e *Erasure) Decide(s *Session) error {
	first, last := e.Ranges[0].From, e.Ranges[len(e.Ranges)-1].To
	switch {
	case s.Kind != KindSession:
		return Errorf(NotFound, "there is no session %q", s.ID)
	case last > s.Head:
		return Errorf(Invalid, "session %q has offsets from 0 to %d; it has none at %d to erase", s.ID, s.Head, last-1)
	case first < s.ForkedAt:
		return Errorf(Invalid, "session %q shares the events below offset %d with session %q, where they are", s.ID, s.ForkedAt, s.Parent).
			WithHint("erase them in session %s; if that was deleted, they go with the last of its forks", s.Parent)
	}
	return nil
}

// Drafts encodes what e appends, see [Append.Drafts].
func (e *Erasure) Drafts(now time.Time) ([]Draft, error) { return drafts(e.Events, nil, now) }

// Erase returns the record of a session without its payload. Of the data there
// remains {"erased":true} and what keeps the log together: well-formed ids of
// messages, calls, runs and the like, roles, how a run ended, where a jump goes,
// whose the session is. Other members that the type asks for are empty. A name
// that is not a well-formed id is replaced by one made of its digest. Receipts
// stay as they are, and so does what was erased before.
func (r Record) Erase() (Record, error) {
	e, err := r.Event()
	if err != nil || e.Type == SessionRedacted {
		return r, err
	}
	e.Data = e.blank()
	return e.draft().Record(r.Offset), nil
}

// Erased reports whether the payload of e is gone.
func (e *Event) Erased() bool { return string(member(e.Data, "erased")) == "true" }

func (e *Event) blank() json.RawMessage {
	b := []byte(`{"erased":true`)
	if t := typeByName[e.Type]; t != nil {
		b = t.layout.blank(b, 1, e.Data)
	}
	if e.Type == RunFinished {
		if _, resumable := endStatus(e); resumable != nil {
			ours, _ := json.Marshal(map[string]map[string]bool{VendorKey: {"resumable": *resumable}})
			b = append(appendName(b, 1, "metadata"), ours...)
		}
	}
	return append(b, '}')
}

// blank appends those members of an object that remain, and empty ones where the
// layout asks for others. The object began in b before start.
func (l *layout) blank(b []byte, start int, data []byte) []byte {
	given := make([][]byte, len(l.fields))
	o := readObject(data)
	for name, raw, ok := o.next(); ok; name, raw, ok = o.next() {
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
			b = append(appendName(b, start, f.name), v...)
		}
	}
	return b
}

// emptyOf is what a member of each shape is when its value is gone.
var emptyOf = map[shape]string{
	shapeAny: `{}`, shapeSome: `{}`, shapeString: `""`, shapeID: `"erased"`, shapeInteger: `0`, shapeNumber: `0`, shapeBool: `false`,
	shapeObject: `{}`, shapeArray: `[]`, shapeStrings: `[]`, shapeLabels: `{}`, shapeText: `""`, shapePatch: `[]`, shapeCuts: `[]`,
	shapeStruct: `{}`, shapeStructs: `[]`,
}

// What remains of a member goes by its name, as in every type it means the same:
// names, members that stay as they are, words of which there are only these, and
// structs whose own members are looked at.
var (
	keptNames = [...]string{
		"messageId", "toolCallId", "runId", "threadId", "parentRunId", "parentMessageId", "subagentRunId", "parentSubagentRunId",
		"parentToolCallId", "entityId", "id", "parent", "terminal", "element", "stepName", "format",
		"marker", "thread", "beforeInvocation", "undoes",
	}
	keptMembers = [...]string{"toOffset", "fromOffset", "previous", "with", "at", "copy", "offset", "status", "resumable", "replace", "owner", "agent"}
	keptWords   = map[string][]string{
		"role":    {RoleDeveloper, RoleSystem, RoleUser, RoleAssistant, RoleTool, RoleActivity, RoleReasoning},
		"type":    {OutcomeSuccess, OutcomeInterrupt, OutcomeCancelled, OutcomeSuspended, "function"},
		"subtype": {"message", "tool-call"},
		"code":    {CodeInterrupted, CodeLeaseExpired, CodeRunEnded},
	}
	keptParts = [...]string{"message", "messages", "toolCalls", "function", "outcome", "interrupts"}
)

// remains returns what is left of a member, nil for nothing.
func (f *field) remains(raw []byte) []byte {
	switch {
	case len(raw) == 0 || isNull(raw):
		return nil
	case f.nested != nil && slices.Contains(keptParts[:], f.name):
		return f.remainingParts(raw)
	case f.nested != nil:
		return nil
	case slices.Contains(keptNames[:], f.name) && isString(raw):
		return remainingName(stringOf(raw))
	case slices.Contains(keptMembers[:], f.name) && f.shape.fits(raw):
		return raw
	case slices.Contains(keptWords[f.name], stringOf(raw)):
		return raw
	case f.name == "content" && raw[0] == '{': // of an activity
		return []byte(`{}`)
	case f.name == "content":
		return []byte(`""`)
	case f.name == "activityType": // of a message of that role, which must have one
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

// remainingName returns a name, if it is one that cannot say much, else one that
// is made of it: so what belongs together can still be told.
func remainingName(s string) []byte {
	if s == "" {
		return nil
	}
	if CheckID("", s) != nil {
		sum := sha256.Sum256([]byte(s))
		s = "erased-" + hex.EncodeToString(sum[:8])
	}
	return appendJSON(nil, s)
}
