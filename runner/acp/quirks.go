package acp

import "strings"

// Quirks are how an agent differs from what the protocol says, or from what one
// would expect of it.
type Quirks struct {
	DeafToEOF      bool   // it does not end with its input, only by SIGTERM
	TitleIsName    bool   // the first title of a tool call is the name of the tool
	PartialInput   bool   // the input of a pending tool call is not all of it
	TitleIsCommand bool   // the title of a call that executes is the whole command
	Notices        bool   // text that has no message id and begins with "Warning:" is the adapter's, not the model's
	ToolName       string // where the name of a tool is, as a JSON pointer into the update; "" for nowhere
	Parent         string // where the call is that has started the sub-agent whose update it is, likewise
}

// or returns q with what other has more.
func (q Quirks) or(other Quirks) Quirks {
	q.DeafToEOF = q.DeafToEOF || other.DeafToEOF
	q.TitleIsName = q.TitleIsName || other.TitleIsName
	q.PartialInput = q.PartialInput || other.PartialInput
	q.Notices = q.Notices || other.Notices
	q.TitleIsCommand = q.TitleIsCommand || other.TitleIsCommand
	if q.ToolName == "" {
		q.ToolName = other.ToolName
	}
	if q.Parent == "" {
		q.Parent = other.Parent
	}
	return q
}

// quirks are those of the agents that we have seen, by what is in their names,
// in lower case.
var quirks = []struct {
	name string
	Quirks
}{
	{"claude", Quirks{ToolName: "/_meta/claudeCode/toolName", Parent: "/_meta/claudeCode/parentToolUseId"}},
	{"codex", Quirks{DeafToEOF: true, Notices: true, ToolName: "/name"}},
	{"opencode", Quirks{TitleIsName: true, PartialInput: true}},
	{"gemini", Quirks{TitleIsCommand: true}},
	{"qwen", Quirks{ToolName: "/_meta/toolName"}},
}

// quirksOf returns the quirks of the agent of that name, which may be its own or
// the one that we gave it.
func quirksOf(name string) Quirks {
	name = strings.ToLower(name)
	for _, q := range quirks {
		if strings.Contains(name, q.name) {
			return q.Quirks
		}
	}
	return Quirks{}
}
