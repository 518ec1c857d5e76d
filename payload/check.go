package payload

import (
	"encoding/json"

	"github.com/tapedeck/tapedeck"
	"github.com/tapedeck/tapedeck/internal/jsonobj"
)

// maxFields is the largest number of members of a type.
const maxFields = 16

// A Checked holds the members of an object that was checked against its layout.
type Checked struct {
	layout *layout
	raw    [maxFields][]byte // raw values by index of the field; nil if absent
}

// Get returns the value of a member, nil if it is absent. The layout must have
// the name.
func (c *Checked) Get(name string) []byte {
	for i := range c.layout.fields {
		if c.layout.fields[i].name == name {
			return c.raw[i]
		}
	}
	return nil
}

// String returns the value of a string member, "" if it is absent.
func (c *Checked) String(name string) string { return jsonobj.StringOf(c.Get(name)) }

// CheckData reports whether the data of e has all required members of its type,
// each with its shape. Other members may exist. Data of an unknown type may be
// anything. The error is [tapedeck.Invalid].
func CheckData(e *tapedeck.Event) error {
	t := typeByName[e.Type]
	if t == nil {
		return nil
	}
	var c Checked
	return t.check(e.Data, &c)
}

// CheckInto is like [CheckData], and sets c to the members. The type of e must
// be known.
func CheckInto(e *tapedeck.Event, c *Checked) error { return typeByName[e.Type].check(e.Data, c) }

func (t *eventType) check(data json.RawMessage, c *Checked) error {
	if err := t.layout.check(t.what, data, c); err != nil {
		return err
	}
	if more := checks[t.name]; more != nil {
		return more(c)
	}
	return nil
}

// check checks all members of an object. In errors, the object is named by
// what.
func (l *layout) check(what string, data []byte, c *Checked) error {
	c.layout = l
	o := jsonobj.Read(data)
	for name, raw, ok := o.Next(); ok; name, raw, ok = o.Next() {
		i, f := l.field(name)
		if f == nil {
			if string(name) == "subagentRunId" && jsonobj.IsNull(raw) {
				return isNullError(string(name), what) // no event has a meaning for it
			}
			continue
		}
		c.raw[i] = raw // if a name is repeated, the last value counts
		if err := f.check(what, raw); err != nil {
			return err
		}
	}
	if o.Bad {
		return tapedeck.Errorf(tapedeck.Invalid, "the %s is not a JSON object", what)
	}
	for i := range l.fields {
		if l.fields[i].required && c.raw[i] == nil {
			return tapedeck.Errorf(tapedeck.Invalid, "the %s has no %s", what, l.fields[i].name)
		}
	}
	return nil
}

func (f *field) check(what string, raw []byte) error {
	switch {
	case !f.shape.fits(raw) && jsonobj.IsNull(raw) && !f.required:
		return isNullError(f.name, what)
	case !f.shape.fits(raw):
		return tapedeck.Errorf(tapedeck.Invalid, "%s in the %s must be %s", f.name, what, f.shape)
	case f.shape == shapeStruct:
		return f.nested.check(f.name+" in the "+what, raw, &Checked{})
	case f.shape == shapeStructs:
		return f.checkList(what, raw)
	}
	return nil
}

func isNullError(name, what string) error {
	return tapedeck.Errorf(tapedeck.Invalid, "%s in the %s is null", name, what).WithHint("leave it out")
}

func (f *field) checkList(what string, raw []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "%s in the %s must be %s", f.name, what, f.shape)
	}
	for _, item := range items {
		if err := f.nested.check("entry of "+f.name+" in the "+what, item, &Checked{}); err != nil {
			return err
		}
	}
	return nil
}

// checks has the checks that a layout cannot express.
var checks = map[string]func(*Checked) error{
	tapedeck.MessageAdded: func(c *Checked) error {
		var m Message
		return checkMessage(c.Get("message"), &m)
	},
	tapedeck.TextMessageStart:        checkTextRole,
	tapedeck.TextMessageChunk:        checkTextRole,
	tapedeck.TextMessageContent:      checkCuts("delta"),
	tapedeck.ReasoningMessageContent: checkCuts("delta"),
	tapedeck.ToolCallArgs:            checkCuts("delta"),
	tapedeck.TerminalOutput:          checkCuts("data"),
	tapedeck.ReasoningMessageStart:   checkRole(RoleReasoning),
	tapedeck.ToolCallResult:          checkRole(RoleTool),
	tapedeck.MessagesSnapshot:        func(c *Checked) error { return checkMessages(c.Get("messages")) },
	tapedeck.RunStarted:              checkInput,
	tapedeck.RunFinished:             checkOutcome,
	tapedeck.PermissionRequested:     checkPermissionID,
}

// checkPermissionID makes ids of permissions as strict as those of sessions,
// except in length, because runners build them from an invocation's id. The id
// is part of the URL of the answer, and two ids that look the same could get
// each other's answer.
func checkPermissionID(c *Checked) error {
	const what, step = "the id of a permission", 100
	id := c.String("id")
	if err := tapedeck.CheckID(what, id[:min(step, len(id))]); err != nil {
		return err
	}
	for i := step; i < len(id); i += step { // in parts, because there is no limit of length
		if err := tapedeck.CheckID(what, "_"+id[i:min(i+step, len(id))]); err != nil {
			return err
		}
	}
	return nil
}

func checkRole(role string) func(*Checked) error {
	return func(c *Checked) error {
		if raw := c.Get("role"); raw != nil && !jsonobj.StringIs(raw, role) {
			return tapedeck.Errorf(tapedeck.Invalid, "the role of this event can only be %s, not %s", role, jsonobj.Quote(jsonobj.StringOf(raw)))
		}
		return nil
	}
}

func checkTextRole(c *Checked) error {
	raw := c.Get("role")
	for _, role := range [...]string{RoleAssistant, RoleUser, RoleSystem, RoleDeveloper} {
		if raw == nil || jsonobj.StringIs(raw, role) {
			return nil
		}
	}
	return tapedeck.Errorf(tapedeck.Invalid, "a text message cannot have the role %s", jsonobj.Quote(jsonobj.StringOf(raw))).
		WithHint("it can be assistant, user, system or developer; what a tool says is a %s", tapedeck.ToolCallResult)
}

func checkCuts(delta string) func(*Checked) error {
	return func(c *Checked) error {
		if raw := c.Get("cuts"); raw != nil && !fitsCuts(raw, c.Get(delta)) {
			return tapedeck.Errorf(tapedeck.Invalid, "the cuts are not %s", shapeCuts)
		}
		return nil
	}
}

func checkMessage(raw []byte, m *Message) error {
	if err := m.UnmarshalJSON(raw); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the message cannot be read: %s", err)
	}
	return m.Check()
}

func checkMessages(raw []byte) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the messages are not an array")
	}
	for _, item := range items {
		var m Message
		if err := checkMessage(item, &m); err != nil {
			return err
		}
	}
	return nil
}

func checkInput(c *Checked) error {
	if raw := c.Get("input"); raw != nil {
		o := jsonobj.Read(raw)
		for name, value, ok := o.Next(); ok; name, value, ok = o.Next() {
			if string(name) == "messages" {
				return checkMessages(value)
			}
		}
	}
	return nil
}

func checkOutcome(c *Checked) error {
	raw := c.Get("outcome")
	if raw == nil {
		return nil
	}
	var o Outcome
	if err := decodeInto(raw, &o); err != nil {
		return tapedeck.Errorf(tapedeck.Invalid, "the outcome cannot be read: %s", err)
	}
	if o.Type == OutcomeInterrupt && len(o.Interrupts) == 0 {
		return tapedeck.Errorf(tapedeck.Invalid, "the outcome is an interrupt without interrupts").WithHint("name what the run waits for")
	}
	return nil
}
