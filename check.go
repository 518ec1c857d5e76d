package tapedeck

import (
	"encoding/json"
)

// maxFields is the most members that the layout of a type has.
const maxFields = 16

// A checked object is one that has the members and shapes of its layout.
type checked struct {
	layout *layout
	raw    [maxFields][]byte // values as they are, by index of the field; nil for absent
}

// get returns the value of a member, nil if there is none. The name must be one
// of the layout.
func (c *checked) get(name string) []byte {
	for i := range c.layout.fields {
		if c.layout.fields[i].name == name {
			return c.raw[i]
		}
	}
	return nil
}

func (c *checked) string(name string) string { return stringOf(c.get(name)) }

// CheckData reports whether the data of e has all members that its type asks
// for, and each of them its shape. Members that are not of the type may be there;
// so may data of unknown types be anything. The error is [Invalid].
func CheckData(e *Event) error {
	t := typeByName[e.Type]
	if t == nil {
		return nil
	}
	var c checked
	return t.check(e.Data, &c)
}

// CheckInto is [CheckData] for an event of a known type. It sets c to its members.
func CheckInto(e *Event, c *checked) error { return typeByName[e.Type].check(e.Data, c) }

func (t *eventType) check(data json.RawMessage, c *checked) error {
	if err := t.layout.check(t.what, data, c); err != nil {
		return err
	}
	if more := checks[t.name]; more != nil {
		return more(c)
	}
	return nil
}

// check looks at all members of an object that is called what in errors.
func (l *layout) check(what string, data []byte, c *checked) error {
	c.layout = l
	o := readObject(data)
	for name, raw, ok := o.next(); ok; name, raw, ok = o.next() {
		i, f := l.field(name)
		if f == nil {
			if string(name) == "subagentRunId" && isNull(raw) {
				return isNullError(string(name), what) // on no event does it mean anything
			}
			continue
		}
		c.raw[i] = raw // a name given twice: the last counts, as everywhere
		if err := f.check(what, raw); err != nil {
			return err
		}
	}
	if o.bad {
		return Errorf(Invalid, "the %s is not a JSON object", what)
	}
	for i := range l.fields {
		if l.fields[i].required && c.raw[i] == nil {
			return Errorf(Invalid, "the %s has no %s", what, l.fields[i].name)
		}
	}
	return nil
}

func (f *field) check(what string, raw []byte) error {
	switch {
	case !f.shape.fits(raw) && isNull(raw) && !f.required:
		return isNullError(f.name, what)
	case !f.shape.fits(raw):
		return Errorf(Invalid, "%s in the %s must be %s", f.name, what, f.shape)
	case f.shape == shapeStruct:
		return f.nested.check(f.name+" in the "+what, raw, &checked{})
	case f.shape == shapeStructs:
		return f.checkList(what, raw)
	}
	return nil
}

func isNullError(name, what string) error {
	return Errorf(Invalid, "%s in the %s is null", name, what).WithHint("leave it out")
}

func (f *field) checkList(what string, raw []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return Errorf(Invalid, "%s in the %s must be %s", f.name, what, f.shape)
	}
	for _, item := range items {
		if err := f.nested.check("entry of "+f.name+" in the "+what, item, &checked{}); err != nil {
			return err
		}
	}
	return nil
}

// checks has what the layout of a type cannot say.
var checks = map[string]func(*checked) error{
	MessageAdded: func(c *checked) error {
		var m Message
		return checkMessage(c.get("message"), &m)
	},
	TextMessageStart:        checkTextRole,
	TextMessageChunk:        checkTextRole,
	TextMessageContent:      checkCuts("delta"),
	ReasoningMessageContent: checkCuts("delta"),
	ToolCallArgs:            checkCuts("delta"),
	TerminalOutput:          checkCuts("data"),
	ReasoningMessageStart:   checkRole(RoleReasoning),
	ToolCallResult:          checkRole(RoleTool),
	MessagesSnapshot:        func(c *checked) error { return checkMessages(c.get("messages")) },
	RunStarted:              checkInput,
	RunFinished:             checkOutcome,
	PermissionRequested:     checkPermissionID,
}

// Two questions whose ids look the same could be answered one for the other, and
// the id is in the address of the answer. So it has the characters of the ids of
// sessions. It may be longer: runners make it from that of an invocation.
func checkPermissionID(c *checked) error {
	return checkIDText("the id of a permission", c.string("id"))
}

func checkRole(role string) func(*checked) error {
	return func(c *checked) error {
		if raw := c.get("role"); raw != nil && !stringIs(raw, role) {
			return Errorf(Invalid, "the role of this event can only be %s, not %s", role, quote(stringOf(raw)))
		}
		return nil
	}
}

func checkTextRole(c *checked) error {
	raw := c.get("role")
	for _, role := range [...]string{RoleAssistant, RoleUser, RoleSystem, RoleDeveloper} {
		if raw == nil || stringIs(raw, role) {
			return nil
		}
	}
	return Errorf(Invalid, "a text message cannot have the role %s", quote(stringOf(raw))).
		WithHint("it can be assistant, user, system or developer; what a tool says is a %s", ToolCallResult)
}

func checkCuts(delta string) func(*checked) error {
	return func(c *checked) error {
		if raw := c.get("cuts"); raw != nil && !fitsCuts(raw, c.get(delta)) {
			return Errorf(Invalid, "the cuts are not %s", shapeCuts)
		}
		return nil
	}
}

func checkMessage(raw []byte, m *Message) error {
	if err := m.UnmarshalJSON(raw); err != nil {
		return Errorf(Invalid, "the message cannot be read: %s", err)
	}
	return m.Check()
}

func checkMessages(raw []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return Errorf(Invalid, "the messages are not an array")
	}
	for _, item := range items {
		var m Message
		if err := checkMessage(item, &m); err != nil {
			return err
		}
	}
	return nil
}

func checkInput(c *checked) error {
	if raw := c.get("input"); raw != nil {
		o := readObject(raw)
		for name, value, ok := o.next(); ok; name, value, ok = o.next() {
			if string(name) == "messages" {
				return checkMessages(value)
			}
		}
	}
	return nil
}

func checkOutcome(c *checked) error {
	raw := c.get("outcome")
	if raw == nil {
		return nil
	}
	var o Outcome
	if err := decodeInto(raw, &o); err != nil {
		return Errorf(Invalid, "the outcome cannot be read: %s", err)
	}
	if o.Type == OutcomeInterrupt && len(o.Interrupts) == 0 {
		return Errorf(Invalid, "the outcome is an interrupt without interrupts").WithHint("name what the run waits for")
	}
	return nil
}
