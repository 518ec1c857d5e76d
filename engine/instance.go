package engine

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tapedeck/tapedeck"
)

// instanceID returns the id that stands for an agent in a thread, in every run
// of it there, and in forks, too. The RUN_STARTED says which agent that is, so an
// agent that people start needs no instance.started; one that an agent has
// started has it, for who started it.
func instanceID(agent, thread string) string {
	sum := sha256.Sum256([]byte("agent " + agent + " in " + thread))
	return "ins_" + hex.EncodeToString(sum[:13])
}

// isDelta reports whether events of a type only go on with what another began:
// that says whose it is, and most events of a log are deltas.
func isDelta(typ string) bool {
	switch typ {
	case tapedeck.TextMessageContent, tapedeck.ReasoningMessageContent, tapedeck.ToolCallArgs:
		return true
	}
	return false
}
