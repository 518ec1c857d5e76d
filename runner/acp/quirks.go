package acp

import (
	"cmp"
	"strings"
)

// Quirks describe how an agent differs from the protocol, or from what one would
// expect.
type Quirks struct {
	DeafToEOF      bool   // the agent does not exit at the end of its input, only after SIGTERM
	TitleIsName    bool   // the first title of a tool call is the name of the tool
	PartialInput   bool   // the input of a pending tool call can be incomplete
	TitleIsCommand bool   // the title of a call that executes is the whole command, and updates have no input
	Notices        bool   // text without a message id that begins with "Warning:" is from the adapter, not from the model
	Wordless       string // the name of an option that sounds as if it took words, but only rejects and ends the turn
	ToolName       string // JSON pointer to the name of the tool in an update; "" if updates have no name
	Parent         string // JSON pointer to the call that started the sub-agent that sent the update; "" if updates do not have it
}

// or returns the union of q and other. For a text, q comes first.
func (q Quirks) or(other Quirks) Quirks {
	q.DeafToEOF = q.DeafToEOF || other.DeafToEOF
	q.TitleIsName = q.TitleIsName || other.TitleIsName
	q.PartialInput = q.PartialInput || other.PartialInput
	q.Notices = q.Notices || other.Notices
	q.TitleIsCommand = q.TitleIsCommand || other.TitleIsCommand
	q.Wordless = cmp.Or(q.Wordless, other.Wordless)
	q.ToolName = cmp.Or(q.ToolName, other.ToolName)
	q.Parent = cmp.Or(q.Parent, other.Parent)
	return q
}

// nameOf returns the name of an option for people: what it does. The protocol has no words
// in an answer.
func (q *Quirks) nameOf(option string) string {
	if option != "" && option == q.Wordless {
		return "No, and end the turn: my next message says what to do differently"
	}
	return option
}

// quirks has the quirks of known agents. name is a part of the agent's name, in lower
// case.
var quirks = []struct {
	name string
	Quirks
}{
	{"claude", Quirks{ToolName: "/_meta/claudeCode/toolName", Parent: "/_meta/claudeCode/parentToolUseId"}},
	{"codex", Quirks{DeafToEOF: true, Notices: true, Wordless: "No, and tell Codex what to do differently", ToolName: "/name"}},
	{"opencode", Quirks{TitleIsName: true, PartialInput: true}},
	{"gemini", Quirks{TitleIsCommand: true}},
	{"qwen", Quirks{ToolName: "/_meta/toolName"}},
}

// quirksOf returns the quirks of an agent. name is the agent's own name or the
// configured one.
func quirksOf(name string) Quirks {
	name = strings.ToLower(name)
	for _, q := range quirks {
		if strings.Contains(name, q.name) {
			return q.Quirks
		}
	}
	return Quirks{}
}
