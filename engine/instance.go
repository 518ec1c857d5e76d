package engine

import "github.com/tapedeck/tapedeck"

// isDelta reports whether events of a type only continue what another event began.
// That event names the instance. Deltas do not, to save space: they are most of a log.
func isDelta(typ string) bool {
	switch typ {
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent, tapedeck.ToolCallArgs:
		return true
	}
	return false
}
