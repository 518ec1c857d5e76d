package tapedeck

import "encoding/json"

// A Question asks a user whether the agent may do something.
type Question struct {
	ID         string             `json:"id" shape:"id"` // of the permission; unique in the session while it is pending
	ToolCallID string             `json:"toolCallId,omitempty"`
	Message    string             `json:"message,omitempty"` // for people
	Action     *PermissionAction  `json:"action,omitempty"`  // what the answer allows or rejects
	Options    []PermissionOption `json:"options"`
	Form       []FormField        `json:"form,omitempty"` // what the user fills in; its values are the input of the answer
}

// A FormField is one value that a [Question] asks for.
type FormField struct {
	ID        string          `json:"id" shape:"id"` // the name of the value; unique in the form
	Label     string          `json:"label,omitempty"`
	Type      string          `json:"type"` // "string", "text" (several lines), "integer", "number", "boolean", "date" (2026-12-24) or "enum"
	Required  bool            `json:"required,omitempty"`
	ReadOnly  bool            `json:"readOnly,omitempty"` // it only shows its default; an answer cannot set it
	Options   []FormOption    `json:"options,omitempty"`  // of an enum
	Default   json.RawMessage `json:"default,omitempty"`  // any JSON; nil if none
	Min       *float64        `json:"min,omitempty"`      // of a number, inclusive
	Max       *float64        `json:"max,omitempty"`
	MinLength *int64          `json:"minLength,omitempty"` // of a string, in characters
	MaxLength *int64          `json:"maxLength,omitempty"`
	Extra     Members         `json:"-"`
}

// A FormOption is one value of a [FormField] of type "enum".
type FormOption struct {
	Value string  `json:"value"`
	Label string  `json:"label,omitempty"` // for people; "" for the value
	Extra Members `json:"-"`
}

// A PermissionAction describes what an agent wants to do, so that users see it
// before they answer. Every text is bounded: a text that is too long keeps its
// beginning and its end, with a line between them that says how much is
// missing.
type PermissionAction struct {
	Tool      string               `json:"tool,omitempty"`      // the tool's name
	Command   string               `json:"command,omitempty"`   // the command line that would run
	Folder    string               `json:"folder,omitempty"`    // the folder in which it would run
	Changes   []PermissionChange   `json:"changes,omitempty"`   // the files that would change
	Locations []PermissionLocation `json:"locations,omitempty"` // other files that are involved
	Arguments string               `json:"arguments,omitempty"` // the tool's arguments that no other member shows, as JSON
	Note      string               `json:"note,omitempty"`      // the agent's own remark
	Cut       *int64               `json:"cut,omitempty"`       // number of bytes missing in all texts; nil if none
	More      *int64               `json:"more,omitempty"`      // number of files missing in the lists; nil if none
	Extra     Members              `json:"-"`
}

// A PermissionChange is the change that would be made to one file.
type PermissionChange struct {
	Path  string  `json:"path"`
	Diff  string  `json:"diff"` // lines that begin with a space, "-", "+" or "@@"
	Extra Members `json:"-"`
}

// A PermissionLocation is a place in a file.
type PermissionLocation struct {
	Path  string  `json:"path"`
	Line  *int64  `json:"line,omitempty"` // from 1; nil means the whole file
	Extra Members `json:"-"`
}

// A PermissionOption is a possible answer.
type PermissionOption struct {
	ID     string  `json:"id" shape:"id"`
	Name   string  `json:"name,omitempty"`   // for people
	Kind   string  `json:"kind,omitempty"`   // "allow_once", "allow_always", "reject_once" or "reject_always"
	Covers string  `json:"covers,omitempty"` // for "allow_always" and "reject_always": what else the answer covers, for people
	Extra  Members `json:"-"`
}

// A Choice is the answer to a [Question].
type Choice struct {
	ID      string  `json:"id" shape:"id"`     // of the permission
	Option  string  `json:"option,omitempty"`  // the id of the chosen option; "" if none was chosen
	Outcome string  `json:"outcome,omitempty"` // "selected"; if no option was chosen, the reason: "cancelled"
	Input   Members `json:"input,omitempty"`   // the values of the form, by the ids of its fields
}
