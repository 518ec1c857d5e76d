package proposal

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tapedeck/tapedeck"
)

// Arguments returns the arguments of a call as a model reads them. Some agents report none;
// then action is what people were asked about, and otherwise title is the agent's words for
// people. action is nil if nobody was asked.
func Arguments(arguments string, action *tapedeck.PermissionAction, title string) string {
	if !isEmpty(arguments) {
		return arguments
	}
	return cmp.Or(written(action), title, arguments)
}

// isEmpty reports whether arguments say nothing about a call.
func isEmpty(arguments string) bool {
	switch strings.TrimSpace(arguments) {
	case "", "{}", "null":
		return true
	}
	return false
}

// written returns an action as JSON, without the name of the tool; "" if it has no more.
func written(action *tapedeck.PermissionAction) string {
	if action == nil {
		return ""
	}
	rest := *action
	rest.Tool = ""
	if text := Encode(rest); !isEmpty(text) {
		return text
	}
	return ""
}

// Encode returns a value as JSON in which a command reads as it was typed: without escapes
// for HTML. It returns "" for a value that cannot be encoded.
func Encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// Title returns what an agent over ACP calls a tool call, from the metadata of the event
// that began it; "" if it has not named it.
func Title(metadata tapedeck.Members) string {
	var d struct {
		Title string `json:"title"`
	}
	_ = json.Unmarshal(metadata["acp"], &d) // metadata of another form has no title
	return d.Title
}
