package engine

import "github.com/tapedeck/tapedeck"

// isDelta reports whether events of a type only go on with what another began:
// that says whose it is, and most events of a log are deltas.
func isDelta(typ string) bool {
	switch typ {
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent, tapedeck.ToolCallArgs:
		return true
	}
	return false
}
