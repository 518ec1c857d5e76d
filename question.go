package tapedeck

// A Question asks a person whether the agent may do something.
type Question struct {
	ID         string             `json:"id" shape:"id"` // of the request, new in the session
	ToolCallID string             `json:"toolCallId,omitempty"`
	Message    string             `json:"message,omitempty"` // the question, for people
	Action     *PermissionAction  `json:"action,omitempty"`  // what the answer allows or rejects
	Options    []PermissionOption `json:"options"`
}

// A PermissionAction is what an agent wants to do, so that people see it before
// they answer. Every text is bounded. A text that is too long keeps its beginning
// and its end, with a line between them that says how much is missing.
type PermissionAction struct {
	Tool      string               `json:"tool,omitempty"`      // its name
	Command   string               `json:"command,omitempty"`   // the command line that would run
	Folder    string               `json:"folder,omitempty"`    // where it would run
	Changes   []PermissionChange   `json:"changes,omitempty"`   // the files that would change
	Locations []PermissionLocation `json:"locations,omitempty"` // the files that it is about
	Arguments string               `json:"arguments,omitempty"` // of the tool, as JSON: those that no other member shows
	Note      string               `json:"note,omitempty"`      // what the agent says about it
	Cut       *int64               `json:"cut,omitempty"`       // how many bytes are missing in all texts; nil for none
	More      *int64               `json:"more,omitempty"`      // how many files are missing in the lists; nil for none
	Extra     Members              `json:"-"`
}

// A PermissionChange is what would happen to one file.
type PermissionChange struct {
	Path  string  `json:"path"`
	Diff  string  `json:"diff"` // lines that begin with a space, "-", "+" or "@@"
	Extra Members `json:"-"`
}

// A PermissionLocation is a place in a file.
type PermissionLocation struct {
	Path  string  `json:"path"`
	Line  *int64  `json:"line,omitempty"` // from 1; nil for the whole file
	Extra Members `json:"-"`
}

// A PermissionOption is an answer that can be given.
type PermissionOption struct {
	ID     string  `json:"id" shape:"id"`
	Name   string  `json:"name,omitempty"`   // for people
	Kind   string  `json:"kind,omitempty"`   // "allow_once", "allow_always", "reject_once" or "reject_always"
	Covers string  `json:"covers,omitempty"` // of a kind that lasts: what else it answers, for people
	Extra  Members `json:"-"`
}

// A Choice is the answer to a [Question].
type Choice struct {
	ID      string `json:"id" shape:"id"`     // of the request
	Option  string `json:"option,omitempty"`  // the id of the option; "" if nobody chose
	Outcome string `json:"outcome,omitempty"` // "selected", or why nobody chose: "cancelled"
}
